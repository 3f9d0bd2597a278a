"""All or nothing: one transaction that writes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from memory.faults import store_error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what is done inside, or undo it. Raises ``StoreError`` when SQLite cannot do it."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as exc:
        raise store_error(exc, file_of(connection), "write") from exc


def file_of(connection: sqlite3.Connection) -> Path:
    """The file behind a connection."""
    try:
        return Path(connection.execute("PRAGMA database_list").fetchone()[2] or "memory")
    except sqlite3.Error:
        return Path("the database")
