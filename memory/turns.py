"""Turns are ranked with what was said around them: an answer seldom repeats the question's words.

1. A word that a turn before or after holds counts for a turn too, at a share (``WEIGHTS``), as if
   it stood in the turn that often; BM25 over that, without regard to length.
2. Looked up when asked, never stored: a turn that is withheld, expired, of another channel or does
   not pass the filters lends nothing from then on, and every node ranks alike.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

WEIGHTS: Final = {-2: 0.2, -1: 0.4, 1: 0.3, 2: 0.1}  # what a turn at that distance lends
K1: Final = 1.2  # as FTS5 has it: how soon a repeated word counts no more
_REACH: Final = max(WEIGHTS)


class Hit(NamedTuple):
    """A record that answers a query, and its score: the higher the better."""

    n: int
    score: float
    kind: str
    created_ms: int
    record: bytes


class Surroundings:
    """The turns around those found, as far as a query's conditions let them through."""

    def __init__(
        self, connection: sqlite3.Connection, join: str, where: str, values: Mapping[str, Any]
    ) -> None:
        self._db, self._join, self._where, self._values = connection, join, where, values

    def scored(self, found: Sequence[int], holders: Mapping[str, frozenset[int]]) -> list[Hit]:
        """The turns ``found`` and those close to them, by what they and those around them hold.

        ``holders`` are the records that hold each word of the query. A turn without a session is
        not among them.
        """
        lends = self._lends(found)
        total: int = self._db.execute("SELECT count(*) FROM words_docsize").fetchone()[0]
        scores: defaultdict[int, float] = defaultdict(float)
        for holding in holders.values():
            times: defaultdict[int, float] = defaultdict(float)
            for n in holding.intersection(lends):
                for to, weight in lends[n]:
                    times[to] += weight
            idf = _idf(total, len(holding))
            for to, count in times.items():
                scores[to] += idf * count * (K1 + 1) / (count + K1)
        listed = ", ".join(map(str, scores))
        rows = self._db.execute(
            "SELECT r.n, r.created_ms, r.record FROM record AS r"  # noqa: S608 - see filters
            f" {self._join} WHERE r.n IN ({listed}) AND {self._where}",
            dict(self._values),
        )
        return [Hit(n, scores[n], "turn", created_ms, record) for n, created_ms, record in rows]

    def _lends(self, found: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        """To whom each turn lends its words, itself among them, and at what share."""
        place, here = "(at_ms, seq, record)", "(hit.at_ms, hit.seq, hit.record)"
        same = "session = hit.session AND channel = hit.channel"
        listed = ", ".join(map(str, found))
        # The rows of a subquery with a LIMIT are joined in its order.
        rows = self._db.execute(
            "SELECT hit.n,"  # noqa: S608 - constants and numbers
            f" (SELECT group_concat(n) FROM (SELECT n FROM turn WHERE {same} AND {place} < {here}"
            "  ORDER BY at_ms DESC, seq DESC, record DESC LIMIT :reach)),"
            f" (SELECT group_concat(n) FROM (SELECT n FROM turn WHERE {same} AND {place} > {here}"
            "  ORDER BY at_ms, seq, record LIMIT :reach))"
            f" FROM turn AS hit WHERE hit.n IN ({listed})",
            {"reach": _REACH},
        )
        return {
            n: [
                (n, 1.0),
                *((m, WEIGHTS[i]) for i, m in enumerate(_numbers(before), 1)),
                *((m, WEIGHTS[-i]) for i, m in enumerate(_numbers(after), 1)),
            ]
            for n, before, after in rows
        }


def _idf(total: int, holding: int) -> float:
    """How much a word says; above nothing even where most records hold it, as a speaker's name."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def _numbers(joined: str | None) -> list[int]:
    return [int(n) for n in joined.split(",")] if joined else []
