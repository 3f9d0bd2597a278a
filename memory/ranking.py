"""Which records answer a query best, without scoring every record that holds a common word.

1. A word that stands in more than ``COMMON_MATCHES`` records says little, and weighing it exactly
   takes a walk over all of them. The rarer words of a query rank, and each common word adds
   ``COMMON_SCORE``; what is found by common words alone comes after that, newest first.
2. Turns count what was said around them (``turns.py``), and with file sections take at most half
   of the places while anything else fills them: talk does not crowd out facts.
3. A word that asks for the newest (``RECENCY_WORDS``) orders what answers about equally well by
   record time; it is looked for like any other word, and decides nothing else.
4. After the first ``FLOOR_FREE`` only what scores ``FLOOR_SHARE`` of the best is returned, of
   talk and of the rest.
5. What is chosen depends on the set of records alone, so that every node gives the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from memory.newest import among_newest
from memory.terms import RECENCY_WORDS, match_expression
from memory.turns import Hit, Surroundings
from memory.words import INDEXES, OPEN

COMMON_MATCHES: Final = 4_000
COMMON_SCORE: Final = 0.5  # less than any rarer word gives
CANDIDATES: Final = 100  # at least, and two for each result asked for
VERBATIM: Final = ("turn", "section")  # what was said or filed, not what was made of it
ABOUT_EQUAL: Final = 0.6  # of the best score: an answer to the same question
FLOOR_FREE: Final = 10
FLOOR_SHARE: Final = 0.02


class Ranking:
    """One query over the records that a condition lets through.

    ``past``: the condition is on what was believed once, so that what is withheld now is looked
    through as well; then turns are weighed by their own words.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        join: str,
        where: str,
        values: Mapping[str, Any],
        *,
        past: bool = False,
    ) -> None:
        self._db, self._join, self._where, self._values = connection, join, where, values
        self._past = past

    def best(self, terms: Sequence[str], limit: int) -> list[Hit]:
        """The best records that hold any of ``terms``: by score, then id."""
        recent = [term for term in terms if term in RECENCY_WORDS]
        plain = [term for term in terms if term not in RECENCY_WORDS] or recent
        hits = _above_floor(self._answers(plain, limit))
        if recent:
            hits = _newest_first(hits)
            if plain != recent and len(hits) < limit:
                hits += _below(hits, self._answers(recent, limit))
        return _within_quota(hits, limit)

    def holds(self, term: str) -> bool:
        """Whether any record that the condition lets through holds a word."""
        return any(
            self._db.execute(
                f"SELECT 1 FROM {index} JOIN record AS r ON r.n = {index}.rowid {self._join}"  # noqa: S608
                f" WHERE {index} MATCH :match AND {self._where} LIMIT 1",
                {**self._values, "match": match_expression([term])},
            ).fetchone()
            for index in (INDEXES if self._past else (OPEN,))
        )

    def _answers(self, terms: Sequence[str], limit: int) -> list[Hit]:
        """Candidates, best first: more than ``limit``, and so many that are not verbatim."""
        count = max(CANDIDATES, 2 * limit)
        hits = self._relevant(terms, count, limit)
        others = sum(hit.kind not in VERBATIM for hit in hits)
        if len(hits) >= count and others < limit:
            kinds = ", ".join(f"'{kind}'" for kind in VERBATIM)
            more = self._scored(terms, limit, f" AND r.kind NOT IN ({kinds})")
            known = {hit.n for hit in hits}
            hits = _in_order([*hits, *(hit for hit in more if hit.n not in known)])
        return hits

    def _relevant(self, terms: Sequence[str], count: int, limit: int) -> list[Hit]:
        if self._past:
            return self._scored(terms, count)
        common = [term for term in terms if self._is_common(term)]
        rare = [term for term in terms if term not in common]
        if not common:
            return self._in_context(terms, self._scored(terms, count))
        chosen = self._in_context(rare, self._scored(rare, count)) if rare else []
        best = self._with_common(chosen, common)
        return best + self._newest(common, {hit.n for hit in best}, limit - len(best))

    def _newest(self, common: Sequence[str], known: set[int], limit: int) -> list[Hit]:
        """What fills the places that no rarer word does; weighed exactly only where it must be."""
        if limit <= 0:
            return []
        found = among_newest(
            self._db, self._join, self._where, self._values, common, limit + len(known)
        )
        scores = {n: count * COMMON_SCORE for n, count in found if n not in known}
        if len(scores) < limit:
            exact = self._scored(common, limit + len(known))
            return [hit for hit in exact if hit.n not in known][:limit]
        listed = ", ".join(map(str, scores))
        rows = self._db.execute(
            f"SELECT n, kind, created_ms, record FROM record WHERE n IN ({listed})"  # noqa: S608
        )
        about = {n: rest for n, *rest in rows}
        return [Hit(n, score, *about[n]) for n, score in scores.items()][:limit]

    def _in_context(self, terms: Sequence[str], hits: list[Hit]) -> list[Hit]:
        """The same, turns weighed by what was said around them as well."""
        found = [hit.n for hit in hits if hit.kind == "turn"]
        if not found:
            return hits
        holders = {
            term: frozenset(
                n
                for (n,) in self._db.execute(
                    "SELECT rowid FROM words WHERE words MATCH ?", (match_expression([term]),)
                )
            )
            for term in terms
        }
        around = Surroundings(self._db, self._join, self._where, self._values)
        turns = around.scored(found, holders)
        known = {hit.n for hit in turns}
        return _in_order([*turns, *(hit for hit in hits if hit.n not in known)])

    def _with_common(self, chosen: list[Hit], common: Sequence[str]) -> list[Hit]:
        """The chosen, each word of ``common`` that one holds counted as ``COMMON_SCORE``."""
        scores = {hit.n: hit.score for hit in chosen}
        places = ", ".join(map(str, scores))
        for term in common:
            holders = self._db.execute(
                f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({places})",  # noqa: S608
                (match_expression([term]),),
            )
            for (n,) in holders.fetchall():
                scores[n] += COMMON_SCORE
        return _in_order([hit._replace(score=scores[hit.n]) for hit in chosen])

    def _is_common(self, term: str) -> bool:
        found = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
            (match_expression([term]), COMMON_MATCHES + 1),
        ).fetchone()[0]
        return bool(found > COMMON_MATCHES)

    def _scored(self, terms: Sequence[str], limit: int, only: str = "") -> list[Hit]:
        each = [
            f"SELECT {index}.rowid, -bm25({index}) AS score, r.kind, r.created_ms,"  # noqa: S608 - see filters
            f" r.record AS id FROM {index} JOIN record AS r ON r.n = {index}.rowid {self._join}"
            f" WHERE {index} MATCH :match AND {self._where}{only}"
            for index in (INDEXES if self._past else (OPEN,))
        ]
        rows = self._db.execute(
            " UNION ALL ".join(each) + " ORDER BY score DESC, id LIMIT :limit",
            {**self._values, "match": match_expression(list(terms)), "limit": limit},
        )
        return [Hit(*row) for row in rows]


def _in_order(hits: list[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.record))


def _newest_first(hits: list[Hit]) -> list[Hit]:
    """Those that answer about equally well by record time, and what is left after them."""
    if not hits:
        return hits
    best = hits[0].score
    equal = [hit for hit in hits if hit.score >= ABOUT_EQUAL * best]
    equal.sort(key=lambda hit: (-hit.created_ms, hit.record))
    scored = [hit._replace(score=best * (2 - i / len(equal))) for i, hit in enumerate(equal)]
    chosen = {hit.n for hit in equal}
    return scored + [hit for hit in hits if hit.n not in chosen]


def _below(hits: list[Hit], more: list[Hit]) -> list[Hit]:
    """``more`` without ``hits``, their scores brought below the last of those."""
    known = {hit.n for hit in hits}
    share = hits[-1].score / (2 * more[0].score) if hits and more else 1.0
    return [hit._replace(score=hit.score * share) for hit in more if hit.n not in known]


def _above_floor(hits: list[Hit]) -> list[Hit]:
    """Talk and the rest each by its own best: what both say most often is weighed differently."""
    kept: set[int] = set()
    for verbatim in (True, False):
        same = [hit for hit in hits if (hit.kind in VERBATIM) is verbatim]
        least = FLOOR_SHARE * same[0].score if same else 0.0
        kept |= {hit.n for i, hit in enumerate(same) if i < FLOOR_FREE or hit.score >= least}
    return [hit for hit in hits if hit.n in kept]


def _within_quota(hits: list[Hit], limit: int) -> list[Hit]:
    """The best, of which verbatim records take half the places unless others leave them more."""
    others = sum(hit.kind not in VERBATIM for hit in hits)
    left = max(limit // 2, limit - others)
    out: list[Hit] = []
    for hit in hits:
        if hit.kind in VERBATIM:
            if not left:
                continue
            left -= 1
        out.append(hit)
    return out[:limit]
