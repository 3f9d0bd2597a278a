"""Payloads that are nowhere here: asking for them, giving them, taking them (R32)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crdt.entry import LogId, decode_header
from crdt.log import Want
from keys.ids import DeviceId, EntryHash, Incarnation, RecordId, hash256
from memory.logs import Logs
from memory.tables import Tables


class Wants:
    """The durable want-list: entries without a payload that no tombstone covers."""

    def __init__(self, connection: sqlite3.Connection, logs: Logs) -> None:
        self._db, self._logs = connection, logs

    def wants(self, limit: int) -> list[Want]:
        """Payloads to ask other nodes for."""
        rows = self._db.execute(
            "SELECT device, incarnation, seq, hash FROM entry JOIN log ON log.id = entry.log"
            " WHERE payload IS NULL AND NOT EXISTS (SELECT 1 FROM tombstone AS t"
            " WHERE t.record = entry.record AND t.effective = 1) ORDER BY entry.id LIMIT ?",
            (limit,),
        )
        return [
            Want(LogId(DeviceId(d), Incarnation(i)), seq, EntryHash(h)) for d, i, seq, h in rows
        ]

    def payloads(self, wanted: Sequence[Want]) -> list[tuple[Want, bytes]]:
        """Those of the wanted payloads that are here."""
        out: list[tuple[Want, bytes]] = []
        for want in wanted:
            found = self._entry(want, "payload")
            if found is not None and found[1] is not None:
                out.append((want, found[1]))
        return out

    def take(self, found: Sequence[tuple[Want, bytes]], tables: Tables) -> list[RecordId]:
        """Store payloads that match their headers; the records they belong to, one per payload."""
        taken: list[RecordId] = []
        for want, payload in found:
            held = self._entry(want, "header")
            if held is None:
                continue
            header = decode_header(held[1])
            fits = hash256(payload) == header.payload_hash
            if not fits or tables.is_withheld(header.record):
                continue
            changed = self._db.execute(
                "UPDATE entry SET payload = ? WHERE id = ? AND payload IS NULL", (payload, held[0])
            ).rowcount
            if changed:
                taken.append(header.record)
        return taken

    def _entry(self, want: Want, column: str) -> tuple[int, bytes] | None:
        row = self._logs.row(want.log)
        if row is None:
            return None
        found: tuple[int, bytes] | None = self._db.execute(
            f"SELECT id, {column} FROM entry WHERE log = ? AND seq = ? AND hash = ?",  # noqa: S608
            (row.id, want.seq, want.hash),
        ).fetchone()
        return found
