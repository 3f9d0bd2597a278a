"""Which of the newest records hold words that most records hold.

Such words tell little about a record; what they find is ranked by how many of them it holds, then
by record time. Looked through are the newest records alone, so that the price does not grow with
their number, and a part at a time until enough hold every word. What is found depends on the set of
records alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from keys.limits import RECORD_BYTES
from memory.terms import match_expression

LOOKED_THROUGH: Final = 2_000
PART: Final = 200
GAP: Final = 500  # numbers between two records that are walked over


def among_newest(
    connection: sqlite3.Connection,
    join: str,
    where: str,
    values: Mapping[str, Any],
    terms: Sequence[str],
    limit: int,
) -> list[tuple[int, int]]:
    """(number, how many of ``terms`` it holds) of at most ``limit`` records, the best first.

    Only records that the condition lets through; it may be that others hold the words as well.
    """
    held: dict[int, int] = {}
    last = b"\xff" * RECORD_BYTES
    for _ in range(LOOKED_THROUGH // PART):
        numbers, last = _part(connection, last)
        if not numbers:
            break
        counts = dict.fromkeys(_let_through(connection, join, where, values, numbers), 0)
        for term in terms:
            for n in _holders(connection, term, numbers):
                if n in counts:
                    counts[n] += 1
        held |= {n: count for n, count in counts.items() if count}
        if sum(count == len(terms) for count in held.values()) >= limit:
            break
    return sorted(held.items(), key=lambda item: -item[1])[:limit]  # newest first among equals


def _part(connection: sqlite3.Connection, last: bytes) -> tuple[list[int], bytes]:
    """The next records by id, which begins with when they were made; the last id of them."""
    rows = connection.execute(
        "SELECT n, record FROM record WHERE record < ? ORDER BY record DESC LIMIT ?", (last, PART)
    ).fetchall()
    return [n for n, _ in rows], rows[-1][1] if rows else last


def _let_through(
    connection: sqlite3.Connection,
    join: str,
    where: str,
    values: Mapping[str, Any],
    numbers: Sequence[int],
) -> list[int]:
    places = ", ".join(map(str, numbers))
    rows = connection.execute(
        f"SELECT r.n FROM record AS r {join} WHERE r.n IN ({places}) AND {where}"  # noqa: S608 - see filters
        " ORDER BY r.record DESC",
        values,
    )
    return [n for (n,) in rows]


def _holders(connection: sqlite3.Connection, term: str, numbers: Sequence[int]) -> Iterator[int]:
    """Records that hold a word, of those with ``numbers`` and some between them.

    The index is walked from one number to another: to look each one up costs far more.
    """
    match = match_expression([term])
    ordered = sorted(numbers)
    starts = [i for i, n in enumerate(ordered) if i == 0 or n - ordered[i - 1] > GAP]
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        rows = connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
            (match, ordered[start], ordered[end - 1]),
        )
        yield from (n for (n,) in rows)
