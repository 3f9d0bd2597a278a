"""All or nothing: one transaction that writes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from keys.errors import StoreError


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
        raise StoreError(f"cannot write the database: {exc}", hint="check the disk") from exc
