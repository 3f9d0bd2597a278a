"""The fingerprint keys that a read model was folded with (R25).

A key lies in its file before the model is folded with it. After a kill between the two, the next
start finds here that the model is still that of other keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from crdt.fingerprint import FingerprintKey
from keys.authority import Authority


def committed(keys: Iterable[FingerprintKey], authority: Authority) -> list[FingerprintKey]:
    """The keys that a statement commits to: nobody else could fold with another."""
    wanted = set(authority.key_commitments())
    return [key for key in keys if key.commitment in wanted]


def note(connection: sqlite3.Connection, keys: Iterable[FingerprintKey]) -> None:
    """The model is folded with these keys; inside the transaction that does it."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('fold_keys', ?)", (_names(keys),))


def are_noted(connection: sqlite3.Connection, keys: Iterable[FingerprintKey]) -> bool:
    """Whether the model is folded with exactly these keys."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'fold_keys'").fetchone()
    return found is not None and found[0] == _names(keys)


def _names(keys: Iterable[FingerprintKey]) -> bytes:
    return b"".join(sorted(key.commitment for key in keys))
