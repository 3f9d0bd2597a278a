"""Tombstones: which are effective, what they list, and cleaning the files afterwards (R30-R35)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace

import keys.codec as codec
from crdt.chain import VerifiedEntry, VerifiedRun
from crdt.entry import NO_RECORD, Header, LogId, PayloadKind, derived_id
from crdt.payload import decode_open, decode_tombstone
from keys.authority import Authority
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation, RecordId
from memory.folding import Folder
from memory.rows import LAYERS
from memory.standing import Standings
from memory.tables import Tables
from memory.words import merge_indexes


def end_of(agent: AgentId) -> RecordId:
    """The id that nobody's record has; a tombstone of it ends the whole agent."""
    return derived_id(agent, "agent", b"end")


class Tombstones:
    """The tombstone tables of one agent's file."""

    def __init__(self, connection: sqlite3.Connection, agent: AgentId) -> None:
        self._db, self._agent = connection, agent
        self._layers = {bytes(derived_id(agent, "layer", name.encode())) for name in LAYERS}

    def add(
        self, entry: VerifiedEntry, time_ms: int, opening: bytes, *, chained: bool
    ) -> EntryHash:
        """Store a tombstone; one that came ahead of its chain is now chained."""
        header, payload = entry.header, entry.payload
        assert payload is not None, "a tombstone travels with its payload"
        decoded = decode_tombstone(payload)
        self._db.execute(
            "INSERT INTO tombstone VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
            " ON CONFLICT (hash) DO UPDATE SET chained = max(chained, excluded.chained),"
            " time_ms = CASE WHEN excluded.chained THEN excluded.time_ms ELSE time_ms END",
            (
                header.hash,
                decoded.record,
                header.device,
                header.incarnation,
                header.seq,
                time_ms,
                decoded.reason,
                header.data,
                payload,
                entry.signature,
                opening,
                int(chained),
            ),
        )
        return header.hash

    def has(self, entry: bytes) -> bool:
        """Whether a tombstone is held, its place verified or not."""
        found = self._db.execute("SELECT 1 FROM tombstone WHERE hash = ?", (entry,))
        return found.fetchone() is not None

    def ended(self, authority: Authority) -> bool:
        """Whether the whole agent is forgotten: by a device that holds ``admin`` now."""
        found = self._db.execute(
            "SELECT device FROM tombstone WHERE record = ? AND reason = 'agent_forgotten'"
            " AND effective = 1 AND chained = 1",
            (end_of(self._agent),),
        ).fetchall()
        return any(authority.holds_device(device, "admin").held for (device,) in found)

    def orphaned(self, authority: Authority) -> set[bytes]:
        """What is still here of an agent that is forgotten; its layers hold no memory (R35)."""
        return self.remaining() if self.ended(authority) else set()

    def remaining(self) -> set[bytes]:
        """Every record that a tombstone may name and none does."""
        rows = self._db.execute(
            "SELECT record FROM record WHERE own <> 'erased' AND kind <> 'layer'"
        )
        return {r[0] for r in rows if r[0] not in self._layers}

    def evaluate(
        self, folder: Folder, hashes: Iterable[bytes] | None = None
    ) -> tuple[set[bytes], set[bytes]]:
        """Decide again which tombstones are effective (all, without ``hashes``).

        Returns the records and the fingerprints for which that may change something.
        """
        chosen = (
            [r[0] for r in self._db.execute("SELECT hash FROM tombstone")]
            if hashes is None
            else list(hashes)
        )
        kept = folder.authority.kept_tombstones()
        records: set[bytes] = set()
        macs: set[bytes] = set()
        for entry in chosen:
            record, payload, chained, before = self._db.execute(
                "SELECT record, payload, chained, effective FROM tombstone WHERE hash = ?", (entry,)
            ).fetchone()
            placed = entry in kept or self._in_chain(entry)
            now = self._effective(folder, entry, record, kept, placed=placed)
            if (now, placed) != (bool(before), bool(chained)) or hashes is not None:
                records.add(record)
                self._db.execute(
                    "UPDATE tombstone SET chained = ?, effective = ? WHERE hash = ?",
                    (int(placed), int(now), entry),
                )
            lists = now and placed and not folder.authority.lifted_tombstone(entry)
            macs |= self._list(entry, payload, lists=lists)
        return records, macs

    def _in_chain(self, entry: bytes) -> bool:
        """Whether the entry itself is here, so that its place in the chain is verified."""
        found = self._db.execute(
            "SELECT 1 FROM tombstone JOIN log USING (device, incarnation)"
            " JOIN entry ON entry.log = log.id AND entry.seq = tombstone.seq"
            " AND entry.hash = tombstone.hash WHERE tombstone.hash = ?",
            (entry,),
        )
        return found.fetchone() is not None

    def _effective(
        self, folder: Folder, entry: bytes, record: bytes, kept: frozenset[bytes], *, placed: bool
    ) -> bool:
        if record in self._layers or record == NO_RECORD or self._names_tombstone(record):
            return False  # R35
        if entry in kept:
            return True
        device, incarnation, seq, opening = self._db.execute(
            "SELECT device, incarnation, seq, opening FROM tombstone WHERE hash = ?", (entry,)
        ).fetchone()
        log = LogId(DeviceId(device), Incarnation(incarnation))
        if placed:
            return folder.judge_of(log).inside(seq, EntryHash(entry))
        if folder.logs.row(log) is not None:
            return folder.judge_of(log).inside_ahead(seq)
        heads = decode_open(codec.decode_small(opening)[1]).heads
        verdict = folder.authority.log_verdict(device, incarnation, heads)
        return any(
            all(seq <= cut.seq for cut in (*path, *verdict.settles)) for path in verdict.paths
        )

    def _names_tombstone(self, record: bytes) -> bool:
        return (
            self._db.execute(
                "SELECT 1 FROM entry WHERE record = ? AND payload_kind = 2", (record,)
            ).fetchone()
            is not None
        )

    def _list(self, entry: bytes, payload: bytes, *, lists: bool) -> set[bytes]:
        """Make the listed fingerprints those of an effective tombstone; the macs that changed."""
        wanted = {p.mac for p in decode_tombstone(payload).prints} if lists else set()
        held = {
            r[0]
            for r in self._db.execute(
                "SELECT mac FROM tombstone_print WHERE tombstone = ?", (entry,)
            )
        }
        for mac in wanted - held:
            self._db.execute("INSERT INTO tombstone_print VALUES (?, ?)", (mac, entry))
        for mac in held - wanted:
            self._db.execute(
                "DELETE FROM tombstone_print WHERE mac = ? AND tombstone = ?", (mac, entry)
            )
        return wanted ^ held

    def take_away(self, folder: Folder, standings: Standings, hashes: Iterable[bytes]) -> None:
        """What tombstones do without the keys that a fold needs: withhold at once, and erase."""
        records, _ = self.evaluate(folder, hashes)
        folded, before = folder.refold(r for r in records if folder.tables.is_erased(r))
        standings.settle(records | folded, before)

    def beyond(
        self, folder: Folder, seqs: dict[tuple[bytes, bytes], int], limit: int
    ) -> list[tuple[bytes, bytes, bytes, bytes]]:
        """(header, payload, signature, opening) of tombstones past the given heights."""
        out = []
        for row in self._db.execute(
            "SELECT device, incarnation, seq, header, payload, signature, opening FROM tombstone"
            " WHERE effective = 1 ORDER BY device, incarnation, seq"
        ):
            if row[2] > seqs.get((row[0], row[1]), 0):
                out.append((row[3], row[4], row[5], row[6]))
                if len(out) >= limit:
                    break
        return out

    def opening_of(self, folder: Folder, tombstone: Header) -> bytes:
        """[header, payload, signature] of the first entry of its branch, as ``add`` stores it."""
        row = folder.logs.row(tombstone.log)
        assert row is not None, "a chained tombstone is of a log that is held"
        first = folder.logs.opening_of(row, tombstone.hash)
        found = self._db.execute(
            "SELECT header, payload, signature FROM entry WHERE log = ? AND seq = 1 AND hash = ?",
            (row.id, first),
        ).fetchone()
        return codec.encode(list(found))

    def ahead_of(self, logs: Iterable[LogId]) -> list[bytes]:
        """The tombstones of ``logs`` whose place in the chain is not verified."""
        found = self._db.execute(
            "SELECT hash, device, incarnation FROM tombstone WHERE chained = 0"
        ).fetchall()
        wanted = {(bytes(log.device), bytes(log.incarnation)) for log in logs} if found else set()
        return [h for h, device, incarnation in found if (device, incarnation) in wanted]

    def named_by(self, records: Iterable[bytes]) -> list[bytes]:
        """Tombstones that name one of ``records``."""
        return [
            r[0]
            for record in records
            for r in self._db.execute("SELECT hash FROM tombstone WHERE record = ?", (record,))
        ]


def clean(connection: sqlite3.Connection) -> bool:
    """Get erased bytes out of the files (R34); outside any transaction. False: try again later.

    Merges the word index (this SQLite has no secure delete in FTS5), then truncates the WAL. A
    checkpoint reports busy while another connection reads. Truncated also where nothing was erased:
    a change that did not commit may have left frames, and so words that a tombstone keeps out.
    """
    if not waits(connection):
        return truncate(connection)
    waiting = [r[0] for r in connection.execute("SELECT record FROM cleaning")]
    merge_indexes(connection)
    if not truncate(connection):
        return False
    connection.executemany("DELETE FROM cleaning WHERE record = ?", [(r,) for r in waiting])
    return truncate(connection)


def waits(connection: sqlite3.Connection) -> bool:
    """Whether erased bytes are still in the files."""
    return connection.execute("SELECT 1 FROM cleaning LIMIT 1").fetchone() is not None


def truncate(connection: sqlite3.Connection) -> bool:
    """Write the WAL back and cut it to nothing; False while a reader is in the way."""
    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)


def keep_out(run: VerifiedRun, tables: Tables) -> VerifiedRun:
    """R30: no payload of a record that a tombstone names enters the store."""
    if not tables.any_withheld():
        return run
    kept = tuple(
        replace(e, payload=None)
        if e.header.payload_kind not in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        and tables.is_withheld(e.header.record)
        else e
        for e in run.entries
    )
    return replace(run, entries=kept)
