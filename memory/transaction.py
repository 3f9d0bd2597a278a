"""All or nothing: one transaction that writes, or one part of a transaction around it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memory.faults import store_error

# How it begins, ends well and is undone.
_WHOLE: Final = ("BEGIN IMMEDIATE", ("COMMIT",), ("ROLLBACK",))
_PART: Final = ("SAVEPOINT part", ("RELEASE part",), ("ROLLBACK TO part", "RELEASE part"))


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what is done inside, or undo it. Raises ``StoreError`` when SQLite cannot do it.

    Inside another one it is a part of that: undone alone, durable when the outer one commits.
    """
    begin, done, undo = _PART if connection.in_transaction else _WHOLE
    try:
        connection.execute(begin)
        try:
            yield
            for sql in done:
                connection.execute(sql)
        except BaseException:
            if connection.in_transaction:  # SQLite may have undone everything already
                for sql in undo:
                    connection.execute(sql)
            raise
    except sqlite3.Error as exc:
        raise store_error(exc, file_of(connection), "write") from exc


def file_of(connection: sqlite3.Connection) -> Path:
    """The file behind a connection."""
    try:
        return Path(connection.execute("PRAGMA database_list").fetchone()[2] or "memory")
    except sqlite3.Error:
        return Path("the database")
