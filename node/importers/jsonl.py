"""JSON Lines, read one line at a time: each non-empty line is one object.

Strict, so that what is written is what the file says: UTF-8 only, no key twice in an object, no
NaN or Infinity, no lone surrogates, nothing after the object, a bound on the length of a line.
A bad line is a ``Problem``; the lines after it are still read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NoReturn

from keys.limits import IMPORT_LINE_BYTES_MAX
from node.importers.rows import Problem, Row

_BOM: Final = b"\xef\xbb\xbf"
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def read_objects(stream: BinaryIO) -> Iterator[tuple[int, Row] | Problem]:
    """The objects of a stream with the numbers of their lines, from 1."""
    for number, line in _lines(stream):
        if isinstance(line, Problem):
            yield line
        elif line.strip():
            yield _object(number, line)


def parse_json(data: bytes) -> Any:
    """The value of a whole JSON text; raises ``ValueError`` with a reason that quotes nothing."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ValueError("not UTF-8") from exc
    try:
        value = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        what = exc.msg.lower().removesuffix(" at")
        raise ValueError(f"not JSON: {what} at character {exc.pos + 1}") from exc
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    # Only an escape makes a surrogate: the bytes were UTF-8.
    if "\\u" in text and _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair")
    return value


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | Problem]]:
    """Each line with its number; one over the bound is skipped, and a problem takes its place."""
    number = 0
    while line := stream.readline(IMPORT_LINE_BYTES_MAX + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) <= IMPORT_LINE_BYTES_MAX:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(IMPORT_LINE_BYTES_MAX)
        yield number, Problem(number, f"longer than {IMPORT_LINE_BYTES_MAX} bytes")


def _object(number: int, line: bytes) -> tuple[int, Row] | Problem:
    try:
        value = parse_json(line)
    except ValueError as exc:
        return Problem(number, str(exc))
    if not isinstance(value, dict):
        return Problem(number, "not a JSON object")
    return number, value


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
