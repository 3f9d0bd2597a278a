"""The word indexes and the places of turns: what search finds records by. SQL and nothing else.

1. A record with a text is in exactly one index: ``words`` while it is new or current, else
   ``withheld_words``. So the score of what a reader finds depends on no text withheld from it.
2. Both are contentless: what is taken out must be what went in, which the row still says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from memory.rows import LIVE_STATES, Row
from memory.terms import index_terms

OPEN: Final = "words"
WITHHELD: Final = "withheld_words"
INDEXES: Final = (OPEN, WITHHELD)

Place = tuple[str, str]
"""The index that a record is in, and what it is found by; both empty where it has no text."""


def place_of(state: str, text: str, title: str | None, speaker: str | None) -> Place:
    """Where a record in a state belongs: found by its text, its title and who said it."""
    if not text:
        return "", ""
    parts = [part for part in (speaker, title) if part and part != text]
    return (OPEN if state in LIVE_STATES else WITHHELD), "\n".join([*parts, text])


class WordIndex:
    """Statements on the word indexes and on ``turn``, inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def place(self, n: int) -> Place:
        """Where the record with a number is now, as its row says."""
        found = self._db.execute(
            "SELECT state, text, title, speaker FROM record WHERE n = ?", (n,)
        ).fetchone()
        return place_of(*found) if found else ("", "")

    def put(self, fresh: Iterable[tuple[int, Place]]) -> None:
        """Index records that are in no index."""
        rows: dict[str, list[tuple[int, str]]] = {index: [] for index in INDEXES}
        for n, (index, said) in fresh:
            if index:
                rows[index].append((n, index_terms(said)))
        for index, values in rows.items():
            if values:
                self._db.executemany(
                    f"INSERT INTO {index} (rowid, terms) VALUES (?, ?)",  # noqa: S608 - a constant
                    values,
                )

    def take(self, n: int, place: Place) -> None:
        """Take a record out of the index that it is in."""
        index, said = place
        if index:
            self._db.execute(
                f"INSERT INTO {index} ({index}, rowid, terms) VALUES ('delete', ?, ?)",  # noqa: S608
                (n, index_terms(said)),
            )

    def move(self, n: int, state: str) -> None:
        """Move a record whose row has another state until now to where that state belongs."""
        before = self.place(n)
        after = (OPEN if state in LIVE_STATES else WITHHELD, before[1])
        if before[0] and before != after:
            self.take(n, before)
            self.put([(n, after)])

    def place_turns(self, rows: Sequence[tuple[int, Row]]) -> None:
        """Note where turns stand in their sessions."""
        turns = [
            (
                n,
                row.session,
                str(row.body.get("channel") or ""),
                row.created_ms,
                row.seq,
                row.record,
            )
            for n, row in rows
            if row.kind == "turn" and row.session
        ]
        if turns:
            self._db.executemany("INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?)", turns)

    def forget_all(self) -> None:
        """Empty both indexes: everything is folded anew."""
        for index in INDEXES:
            self._db.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")  # noqa: S608


def merge_indexes(connection: sqlite3.Connection) -> None:
    """Leave no trace of what was taken out (R34): this SQLite has no secure delete in FTS5."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("INSERT INTO withheld_words (withheld_words) VALUES ('optimize')")
