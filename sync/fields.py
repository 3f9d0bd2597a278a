"""Exact checks of decoded values: each gives back the value typed, or raises ``BadEncoding``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from keys.errors import BadEncoding


def blob(value: object, size: int, size_max: int | None = None) -> bytes:
    """Bytes of ``size``, or of ``size`` to ``size_max``."""
    size_max = size if size_max is None else size_max
    if type(value) is not bytes or not size <= len(value) <= size_max:
        raise BadEncoding(f"bytes of length {size} are expected")
    return value


def number(value: object, low: int, high: int) -> int:
    """An integer from ``low`` to ``high``."""
    if type(value) is not int or not low <= value <= high:
        raise BadEncoding(f"a number from {low} to {high} is expected")
    return value


def truth(value: object) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise BadEncoding("true or false is expected")
    return value


def text(value: object, bytes_max: int) -> str:
    """Text of at most ``bytes_max`` bytes as UTF-8."""
    if type(value) is not str or len(value) > bytes_max or len(value.encode()) > bytes_max:
        raise BadEncoding(f"text of at most {bytes_max} bytes is expected")
    return value


def items(value: object, length_max: int) -> list[Any]:
    """A list of at most ``length_max``."""
    if type(value) is not list or len(value) > length_max:
        raise BadEncoding(f"a list of at most {length_max} is expected")
    return value


def row(value: object, length: int) -> list[Any]:
    """A list of exactly ``length``."""
    if type(value) is not list or len(value) != length:
        raise BadEncoding(f"a list of {length} is expected")
    return value


def fields(value: object, names: tuple[str, ...], *, may_grow: bool = False) -> list[Any]:
    """The values of a map's fields ``names``; with ``may_grow`` others are passed over."""
    if type(value) is not dict or not value.keys() >= set(names):
        raise BadEncoding("a map with these fields is expected: " + ", ".join(names))
    if len(value) != len(names) and not may_grow:
        raise BadEncoding("a map with a field that this version does not know")
    return [value[name] for name in names]


def rising(values: list[bytes]) -> list[bytes]:
    """The same list, sorted and distinct."""
    if any(a >= b for a, b in pairwise(values)):
        raise BadEncoding("a list that is not sorted and distinct")
    return values
