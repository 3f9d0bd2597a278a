"""The parameters of a call: taken one by one, of exact types; what is left over is an error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from keys.errors import UsageError
from memory.notes import clean
from node.caller import LOCAL, Caller
from node.times import parse_time

_MISSING: Final = object()


class UnknownParameterError(UsageError):
    """A parameter that the verb does not know."""

    code = "unknown_parameter"


class Params:
    """Reads the parameters of one call. ``done`` refuses the ones nobody asked for.

    ``caller`` is who calls: from the credential, never one of the parameters.
    """

    def __init__(self, given: Mapping[str, Any], caller: Caller = LOCAL) -> None:
        self._given = {k: v for k, v in given.items() if v is not None}
        self._asked: set[str] = set()
        self.caller = caller

    def copy(self) -> Params:
        """The same, to be taken from once more: for an act that may run again."""
        other = Params(self._given, self.caller)
        other._asked = set(self._asked)
        return other

    def _take(self, name: str) -> object:
        self._asked.add(name)
        return self._given.pop(name, _MISSING)

    def text(self, name: str) -> str:
        """A required text."""
        value = self.optional_text(name)
        if value is None:
            raise UsageError(f"{name} is missing")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._take(name)
        if value is _MISSING:
            return None
        if not isinstance(value, str):
            raise UsageError(f"{name} must be text")
        return clean(value)  # a lone surrogate can be neither stored nor looked for (M-H13)

    def peek(self, name: str) -> object:
        """A parameter without taking it; None where it is absent."""
        return self._given.get(name)

    def flag(self, name: str) -> bool:
        """A truth value; absent is false."""
        value = self._take(name)
        if value is _MISSING:
            return False
        if not isinstance(value, bool):
            raise UsageError(f"{name} must be true or false")
        return value

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        value = self._take(name)
        if value is _MISSING:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"{name} must be a whole number")
        return value

    def real(self, name: str, default: float) -> float:
        """A number."""
        value = self._take(name)
        if value is _MISSING:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise UsageError(f"{name} must be a number")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; absent is empty."""
        value = self._take(name)
        if value is _MISSING:
            return ()
        if not isinstance(value, list) or any(not isinstance(v, str) for v in value):
            raise UsageError(f"{name} must be a list of texts")
        return tuple(map(clean, value))

    def pairs(self, name: str, most: int) -> list[list[str]]:
        """A list of at most ``most`` pairs of texts; absent is empty."""
        value = self._take(name)
        if value is _MISSING:
            return []
        if not isinstance(value, list) or len(value) > most or not all(map(_is_pair, value)):
            raise UsageError(f"{name} must be a list of at most {most} pairs of texts")
        return value

    def rows(self, name: str, most: int) -> list[dict[str, Any]]:
        """A list of at most ``most`` objects."""
        value = self._take(name)
        if not isinstance(value, list) or any(not isinstance(v, dict) for v in value):
            raise UsageError(f"{name} must be a list of objects")
        if len(value) > most:
            raise UsageError(f"{name} has at most {most} rows")
        return value

    def time(self, name: str) -> int | None:
        """A time as microseconds UTC, or None."""
        value = self.optional_text(name)
        return None if value is None else parse_time(value)

    def done(self) -> None:
        """Raise ``UnknownParameterError`` for what the verb does not know, naming the nearest."""
        if self._given:
            raise unknown_parameter(min(self._given), self._asked)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)


def unknown_parameter(name: str, known: Iterable[str]) -> UnknownParameterError:
    """The error for a parameter that nobody knows, with the nearest that is known."""
    near = difflib.get_close_matches(name, sorted(known), 1, 0.5)
    return UnknownParameterError(
        f"unknown parameter {name[:40]!r}", hint=f"did you mean {near[0]}?" if near else None
    )
