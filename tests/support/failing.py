"""A connection that fails at a chosen statement, as a full or broken disk makes one fail."""

from __future__ import annotations

import sqlite3
from typing import Any


class FailingConnection:
    """Counts the statements it runs; ``fail_at`` n raises instead of running the n-th from now."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.inner = connection
        self.count = 0
        self._fail_at: int | None = None

    def fail_at(self, number: int | None) -> None:
        """Start counting anew; None: nothing fails."""
        self.count, self._fail_at = 0, number

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._step(sql)
        return self.inner.execute(sql, *values)

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        self._step(sql)
        return self.inner.executemany(sql, values)

    def close(self) -> None:
        self.inner.close()

    def _step(self, sql: str) -> None:
        if sql == "ROLLBACK":
            return  # what cannot fail: SQLite does it by itself when the file is opened again
        self.count += 1
        if self.count == self._fail_at:
            raise sqlite3.OperationalError("disk I/O error")
