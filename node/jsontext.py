"""JSON from outside: the one reader, strict and bounded, of calls, imports and files.

1. UTF-8 only, no key twice in an object, no NaN or Infinity in any spelling, nothing after the
   value; and no half of a surrogate pair, unless the caller looks for those itself.
2. Values are counted on the raw bytes before any is built: a text of small containers takes about
   thirty times its bytes. ``JSON_VALUES_MAX`` are free, and one for each ``JSON_VALUE_BYTES``.
3. ``parse_json`` raises ``ValueError`` and nothing else; its words quote nothing of the text.
"""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from typing import Any, Final, NoReturn

from keys.limits import JSON_VALUE_BYTES, JSON_VALUES_MAX

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Possessive, so that nothing is remembered of what has matched.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_OPENERS: Final = (b",", b"[", b"{")


def parse_json(data: bytes, *, halves: bool = False) -> Any:
    """The value of a whole JSON text; raises ``ValueError`` with a reason that quotes nothing.

    ``halves``: halves of surrogate pairs are let through; what stores text refuses them by name.
    """
    _check_count(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ValueError("not UTF-8") from exc
    try:
        value = json.loads(
            text,
            object_pairs_hook=_no_key_twice,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as exc:
        what = exc.msg.lower().removesuffix(" at")
        raise ValueError(f"not JSON: {what} at character {exc.pos + 1}") from exc
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    # Only an escape makes a surrogate: the bytes were UTF-8.
    if (
        not halves
        and "\\u" in text
        and _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False))
    ):
        raise ValueError("half of a surrogate pair")
    return value


def _check_count(data: bytes) -> None:
    """Rule 2; commas and brackets inside strings are looked at only where it matters."""
    most = JSON_VALUES_MAX + len(data) // JSON_VALUE_BYTES
    if sum(map(data.count, _OPENERS)) <= most:
        return
    found = end = 0
    for start, after in chain((m.span() for m in _STRING.finditer(data)), [(len(data), 0)]):
        found += sum(data.count(sign, end, start) for sign in _OPENERS)
        end = after
        if found > most:
            raise ValueError(f"more than {most} values")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number too large for JSON here")
    return number
