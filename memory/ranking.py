"""Which records answer a query best, without scoring every record that holds a common word.

1. A word that stands in more than ``COMMON_MATCHES`` records says little, and weighing it exactly
   takes a walk over all of them. The rarer words of a query rank, and each common word adds
   ``COMMON_SCORE``; what is found by common words alone comes after that, newest first.
2. What is chosen depends on the set of records alone, so that every node gives the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from memory.newest import among_newest
from memory.terms import match_expression

COMMON_MATCHES: Final = 4_000
COMMON_SCORE: Final = 0.5  # less than any rarer word gives
CANDIDATES: Final = 50  # at least, and two for each result asked for

Scored = tuple[int, float]
"""A record's number and its score, the higher the better."""


class Ranking:
    """One query over the records that a condition lets through."""

    def __init__(
        self, connection: sqlite3.Connection, join: str, where: str, values: Mapping[str, Any]
    ) -> None:
        self._db, self._join, self._where, self._values = connection, join, where, values

    def best(self, terms: Sequence[str], limit: int) -> list[Scored]:
        """The best records that hold any of ``terms``: by score, then id."""
        common = [term for term in terms if self._is_common(term)]
        rare = [term for term in terms if term not in common]
        if not common:
            return self._scored(terms, limit)
        chosen = self._scored(rare, max(CANDIDATES, 2 * limit)) if rare else []
        best = self._with_common(chosen, common)[:limit]
        return best + self._newest(common, {n for n, _ in chosen}, limit - len(best))

    def _newest(self, common: Sequence[str], known: set[int], limit: int) -> list[Scored]:
        """What fills the places that no rarer word does; weighed exactly only where it must be."""
        if limit <= 0:
            return []
        found = among_newest(
            self._db, self._join, self._where, self._values, common, limit + len(known)
        )
        fresh = [(n, count * COMMON_SCORE) for n, count in found if n not in known]
        if len(fresh) < limit:
            exact = self._scored(common, limit + len(known))
            fresh = [(n, score) for n, score in exact if n not in known]
        return fresh[:limit]

    def _with_common(self, chosen: list[Scored], common: Sequence[str]) -> list[Scored]:
        """The chosen, each word of ``common`` that one holds counted as ``COMMON_SCORE``."""
        scores = dict(chosen)  # in the order of score and id, which sorting keeps among equals
        places = ", ".join(map(str, scores))
        for term in common:
            holders = self._db.execute(
                f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({places})",  # noqa: S608
                (match_expression([term]),),
            )
            for (n,) in holders.fetchall():
                scores[n] += COMMON_SCORE
        return sorted(scores.items(), key=lambda item: -item[1])

    def _is_common(self, term: str) -> bool:
        found = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
            (match_expression([term]), COMMON_MATCHES + 1),
        ).fetchone()[0]
        return bool(found > COMMON_MATCHES)

    def _scored(self, terms: Sequence[str], limit: int) -> list[Scored]:
        return self._db.execute(
            "SELECT words.rowid, -bm25(words) AS score FROM words"  # noqa: S608 - see query._where
            f" JOIN record AS r ON r.n = words.rowid {self._join}"
            f" WHERE words MATCH :match AND {self._where}"
            " ORDER BY score DESC, r.record LIMIT :limit",
            {**self._values, "match": match_expression(list(terms)), "limit": limit},
        ).fetchall()
