"""JSON Lines, read one line at a time: each non-empty line is one object.

Strict, so that what is written is what the file says (see ``jsontext``), with a bound on the length
of a line.
A bad line is a ``Problem``; the lines after it are still read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from keys.limits import IMPORT_LINE_BYTES_MAX
from node.importers.rows import Problem, Row
from node.jsontext import parse_json

_BOM: Final = b"\xef\xbb\xbf"


def read_objects(stream: BinaryIO) -> Iterator[tuple[int, Row] | Problem]:
    """The objects of a stream with the numbers of their lines, from 1."""
    for number, line in _lines(stream):
        if isinstance(line, Problem):
            yield line
        elif line.strip():
            yield _object(number, line)


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
