"""Stamps from the future: nothing follows them, and a person is told whose they are (S-B3).

A stamp orders, accepts and refuses nothing, so what is far ahead of this node's clock when it
arrives is taken like anything else; the farthest of each device is kept for ``status``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from crdt.chain import VerifiedRun
from keys.ids import DeviceId

AHEAD_MS: Final = 24 * 3_600_000  # a stamp farther ahead than this is told of
_KEY: Final = "ahead:"


def note(connection: sqlite3.Connection, runs: Iterable[VerifiedRun], now_us: int) -> None:
    """Keep the farthest stamp of each device; inside the transaction that appends ``runs``."""
    limit_ms = now_us // 1000 + AHEAD_MS
    for run in runs:
        stamp = max(entry.header.wall_ms for entry in run.entries)
        if stamp > limit_ms:
            connection.execute(
                "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE"
                " SET value = max(value, excluded.value)",
                (_KEY + run.log.device.hex(), stamp.to_bytes(8, "big")),
            )


def ahead(connection: sqlite3.Connection, now_us: int) -> list[tuple[DeviceId, int]]:
    """(device, by how many ms its farthest stamp is ahead of ``now_us``), as long as it is."""
    rows = connection.execute(
        "SELECT key, value FROM meta WHERE key >= ? AND key < ? ORDER BY key",
        (_KEY, _KEY[:-1] + ";"),
    )
    found = [
        (DeviceId(bytes.fromhex(key[len(_KEY) :])), int.from_bytes(value, "big") - now_us // 1000)
        for key, value in rows
    ]
    return [(device, offset_ms) for device, offset_ms in found if offset_ms > 0]
