"""The statements of owners that this node keeps beside the agents: a table of ``node.db``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from keys.ids import OwnerId
from keys.statements import OWNER_KINDS, Statement, parse, parse_stored
from memory.transaction import transaction

OWNER_STATEMENTS_MAX = 4_096


class OwnerStatements:
    """The table ``owner_statement``; only verified statements enter."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def of(self, owner: OwnerId) -> list[Statement]:
        """The statements of one owner."""
        rows = self._db.execute(
            "SELECT data, signature FROM owner_statement WHERE owner = ? ORDER BY id", (owner,)
        )
        return [parse_stored(data, signature) for data, signature in rows]

    def verify(self) -> None:
        """Check every signature held; raises ``BadInput``."""
        for data, signature in self._db.execute("SELECT data, signature FROM owner_statement"):
            parse(data, signature)

    def add(self, statements: Iterable[Statement]) -> None:
        """Keep the owners' statements among ``statements``, up to a bound for the whole table."""
        with transaction(self._db):
            held = self._db.execute("SELECT count(*) FROM owner_statement").fetchone()[0]
            for s in statements:
                if s.kind in OWNER_KINDS and held < OWNER_STATEMENTS_MAX:
                    held += self._db.execute(
                        "INSERT OR IGNORE INTO owner_statement VALUES (?, ?, ?, ?)",
                        (s.id, s.body["owner"], s.data, s.signature),
                    ).rowcount
