"""The log tables: appending verified runs, tips, forks, and what is served.

1. A log grows only by verified runs that follow what is held; a gap raises ``BadChain``.
2. A second entry at a place held already makes the log forked: both branches are kept (R7).
3. A run is served up to an entry whose signature is held (R4).
4. Record times only rise (R14): an entry is never earlier than what it builds on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from crdt.chain import RawEntry, VerifiedEntry, VerifiedRun
from crdt.entry import NO_PREV, Header, LogId, PayloadKind, decode_header
from crdt.log import ServedEntry, ServedRun, Stretch, Tip, Vector
from crdt.payload import decode_open
from keys.errors import BadChain
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation, RecordId
from keys.limits import BRANCHES_MAX, HASH_BYTES, RUN_BYTES_MAX, RUN_ENTRIES_MAX

ZERO: Final = Tip(0, NO_PREV)


class _Row(NamedTuple):
    """An entry as it is read for serving."""

    header: bytes
    payload: bytes | None
    signature: bytes
    payload_kind: int
    record: bytes
    seq: int
    hash: bytes


@dataclass(slots=True)
class LogRow:
    """One row of ``log``."""

    id: int
    log: LogId
    heads: tuple[bytes, ...]
    tip: Tip
    fork_seq: int | None


class NewEntry(NamedTuple):
    """An entry that entered the log just now."""

    id: int
    row: LogRow
    entry: VerifiedEntry
    time_ms: int


class Logs:
    """The log tables of one agent's file. Every method runs inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, agent: AgentId) -> None:
        self._db = connection
        self.agent = agent

    # -- reading ---------------------------------------------------------------------------------

    def rows(self) -> list[LogRow]:
        """All logs, in their local order."""
        found = self._db.execute(
            "SELECT id, device, incarnation, heads, tip_seq, tip_hash, fork_seq FROM log"
        )
        return [_row(r) for r in found]

    def row(self, log: LogId) -> LogRow | None:
        """One log, None when nothing of it is held."""
        found = self._db.execute(
            "SELECT id, device, incarnation, heads, tip_seq, tip_hash, fork_seq FROM log"
            " WHERE device = ? AND incarnation = ?",
            (log.device, log.incarnation),
        ).fetchone()
        return _row(found) if found else None

    def tips(self, row: LogRow) -> list[Tip]:
        """The tips of one log: one unless it is forked."""
        if row.fork_seq is None:
            return [row.tip]
        branch = self.branch_entries(row)
        followed = {prev for _, prev in branch.values()}
        return sorted(Tip(seq, h) for h, (seq, _) in branch.items() if h not in followed)

    def branch_entries(self, row: LogRow) -> dict[EntryHash, tuple[int, EntryHash]]:
        """Hash -> (seq, prev) of the entries past a fork's last common commit."""
        found = self._db.execute(
            "SELECT header FROM entry WHERE log = ? AND seq > ?", (row.id, row.fork_seq or 0)
        )
        headers = [decode_header(r[0]) for r in found]
        return {h.hash: (h.seq, h.prev) for h in headers}

    def vector(self) -> Vector:
        """The tips of every log."""
        return {row.log: self.tips(row) for row in self.rows()}

    def hash_at(self, row_id: int, seq: int) -> list[EntryHash]:
        """The hashes held at one place of a log."""
        found = self._db.execute("SELECT hash FROM entry WHERE log = ? AND seq = ?", (row_id, seq))
        return [EntryHash(r[0]) for r in found]

    def commit_end(self, row_id: int, at: Tip) -> Tip:
        """The last commit end at or before an entry that is held, along its own chain (R3)."""
        while at.seq:
            header = decode_header(
                self._db.execute(
                    "SELECT header FROM entry WHERE log = ? AND seq = ? AND hash = ?",
                    (row_id, at.seq, at.hash),
                ).fetchone()[0]
            )
            if header.commit_left == 0:
                break
            at = Tip(at.seq - 1, header.prev)
        return at

    def openings(self, row: LogRow) -> dict[EntryHash, tuple[bytes, ...]]:
        """Per opening of a log the statement heads it cites: one unless the log forks at once."""
        if row.fork_seq != 0:
            return dict.fromkeys(self.hash_at(row.id, 1), row.heads)
        found = self._db.execute(
            "SELECT hash, payload FROM entry WHERE log = ? AND seq = 1", (row.id,)
        )
        return {EntryHash(h): decode_open(payload).heads for h, payload in found}

    def opening_of(self, row: LogRow, entry: EntryHash) -> EntryHash:
        """The opening of the branch that an entry is on."""
        if row.fork_seq != 0:
            return self.hash_at(row.id, 1)[0]
        branch = self.branch_entries(row)
        while branch[entry][0] > 1:
            entry = branch[entry][1]
        return entry

    # -- appending -------------------------------------------------------------------------------

    def append(
        self, run: VerifiedRun, now_us: int, statement_times: dict[bytes, int]
    ) -> list[NewEntry]:
        """Append what a run adds; raises ``BadChain`` for a gap or too many branches."""
        row = self.row(run.log)
        if row is None:
            if run.first_seq != 1:
                raise BadChain("a log starts with its opening", log=str(run.log))
            row = self._open(run)
        entries, before = self._beyond(row, run)
        if not entries:
            return []
        if before != row.tip:
            self._fork(row, before)
        new = self._insert(row, entries, before, now_us, statement_times)
        last = entries[-1].header
        if before == row.tip or last.seq > row.tip.seq:
            row.tip = Tip(last.seq, last.hash)
        self._db.execute(
            "UPDATE log SET tip_seq = ?, tip_hash = ?, fork_seq = ? WHERE id = ?",
            (row.tip.seq, row.tip.hash, row.fork_seq, row.id),
        )
        return new

    def _open(self, run: VerifiedRun) -> LogRow:
        opening = run.entries[0].payload
        assert opening is not None, "verify_run lets no opening pass without its payload"
        heads = decode_open(opening).heads
        cursor = self._db.execute(
            "INSERT INTO log (device, incarnation, heads, tip_seq, tip_hash)"
            " VALUES (?, ?, ?, 0, ?)",
            (run.log.device, run.log.incarnation, b"".join(heads), NO_PREV),
        )
        assert cursor.lastrowid is not None
        return LogRow(cursor.lastrowid, run.log, heads, ZERO, None)

    def _beyond(self, row: LogRow, run: VerifiedRun) -> tuple[tuple[VerifiedEntry, ...], Tip]:
        """The entries not held, and the held entry that they follow."""
        if run.first_seq == row.tip.seq + 1 and run.prev == row.tip.hash:
            return run.entries, row.tip
        before = Tip(run.first_seq - 1, run.prev)
        if before.seq and run.prev not in self.hash_at(row.id, before.seq):
            raise BadChain("a run that does not follow what is held", log=str(run.log))
        if self.commit_end(row.id, before) != before:
            raise BadChain("a run that begins inside a commit", log=str(run.log))
        for i, entry in enumerate(run.entries):
            if entry.header.hash not in self.hash_at(row.id, entry.header.seq):
                return run.entries[i:], before
            before = Tip(entry.header.seq, entry.header.hash)
        return (), before

    def _fork(self, row: LogRow, before: Tip) -> None:
        """Two entries follow one: freeze at the last commit end both branches share (R3, R7)."""
        known = self.tips(row) if row.tip.seq else []
        if before not in known and len(known) >= BRANCHES_MAX:
            raise BadChain(f"a log with more than {BRANCHES_MAX} branches", log=str(row.log))
        if before in known:
            return
        seq = self.commit_end(row.id, before).seq
        row.fork_seq = seq if row.fork_seq is None else min(seq, row.fork_seq)

    def _insert(
        self,
        row: LogRow,
        entries: Sequence[VerifiedEntry],
        before: Tip,
        now_us: int,
        statement_times: dict[bytes, int],
    ) -> list[NewEntry]:
        number: int = self._db.execute("SELECT coalesce(max(id), 0) FROM entry").fetchone()[0]
        time_ms = self._time_of(row, before)
        fresh: dict[EntryHash, int] = {}
        new: list[NewEntry] = []
        rows = []
        for entry in entries:
            header = entry.header
            time_ms = max(time_ms, header.wall_ms)
            if header.payload_kind == PayloadKind.OPEN:
                assert entry.payload is not None, "verify_run lets no opening pass without it"
                heads = decode_open(entry.payload).heads
                time_ms = max([time_ms, *(statement_times.get(h, 0) for h in heads)])
            if header.deps:
                time_ms = max(time_ms, self._deps_time(header, fresh))
            fresh[header.hash] = time_ms
            size = len(header.data) + header.payload_len
            number += 1
            rows.append(
                (
                    number,
                    row.id,
                    header.seq,
                    header.hash,
                    header.data,
                    entry.payload,
                    entry.signature,
                    header.record,
                    header.payload_kind,
                    size,
                    time_ms,
                    now_us,
                )
            )
            new.append(NewEntry(number, row, entry, time_ms))
        self._db.executemany(
            "INSERT INTO entry (id, log, seq, hash, header, payload, signature, record,"
            " payload_kind, size, time_ms, received_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        return new

    def _time_of(self, row: LogRow, tip: Tip) -> int:
        found = self._db.execute(
            "SELECT time_ms FROM entry WHERE log = ? AND seq = ? AND hash = ?",
            (row.id, tip.seq, tip.hash),
        ).fetchone()
        return int(found[0]) if found else 0

    def _deps_time(self, header: Header, fresh: dict[EntryHash, int]) -> int:
        """The latest of an entry's deps that are operations on its own record; others are none."""
        times = [fresh[d] for d in header.deps if d in fresh]
        if len(times) < len(header.deps):
            wanted = set(header.deps)
            found = self._db.execute(
                "SELECT hash, time_ms FROM entry WHERE record = ? AND payload_kind NOT IN (0, 2)",
                (header.record,),
            )
            times += [t for h, t in found if h in wanted]
        return max(times, default=0)

    def raise_time(self, row_id: int, entry: EntryHash, time_ms: int) -> set[RecordId]:
        """Raise an entry's record time, and that of what follows it; the records it touches."""
        touched: set[RecordId] = set()
        frontier = {bytes(entry)}
        found = self._db.execute(
            "SELECT id, hash, header, time_ms FROM entry WHERE log = ? AND seq >="
            " (SELECT seq FROM entry WHERE log = ? AND hash = ?) ORDER BY seq",
            (row_id, row_id, entry),
        ).fetchall()
        for number, entry_hash, data, held in found:
            header = decode_header(data)
            if entry_hash not in frontier and header.prev not in frontier:
                continue
            frontier.add(entry_hash)
            if held < time_ms:
                self._db.execute("UPDATE entry SET time_ms = ? WHERE id = ?", (time_ms, number))
                touched |= self._raised(header, time_ms)
        return touched

    def _raised(self, header: Header, time_ms: int) -> set[RecordId]:
        """The record that shows an entry's time; a tombstone's is the one that it names."""
        if header.payload_kind != PayloadKind.TOMBSTONE:
            return {header.record}
        named = self._db.execute(
            "UPDATE tombstone SET time_ms = ? WHERE hash = ? RETURNING record",
            (time_ms, header.hash),
        ).fetchall()
        return {RecordId(r[0]) for r in named}

    # -- serving ---------------------------------------------------------------------------------

    def plan(self, have: Vector) -> list[Stretch]:
        """What ``have`` lacks, logs in the order in which their next entry arrived here."""
        stretches: list[tuple[int, Stretch]] = []
        for row in self.rows():
            theirs = have.get(row.log, [])
            for tip in self.tips(row):
                after = self._common(row, tip, theirs)
                if after.seq < tip.seq:
                    first = self._db.execute(
                        "SELECT min(id) FROM entry WHERE log = ? AND seq = ?",
                        (row.id, after.seq + 1),
                    ).fetchone()[0]
                    stretches.append((first, Stretch(row.log, after, tip)))
        return [s for _, s in sorted(stretches, key=lambda pair: pair[0])]

    def _common(self, row: LogRow, tip: Tip, theirs: Sequence[Tip]) -> Tip:
        """The last entry on the way to ``tip`` that a node with the tips ``theirs`` holds."""
        if row.fork_seq is None:
            held = [t for t in theirs if t.seq <= tip.seq and t.hash in self.hash_at(row.id, t.seq)]
            return max(held, default=ZERO)
        branch = self.branch_entries(row)
        known = {t.hash for t in theirs}
        at = tip
        while at.seq > row.fork_seq:
            if at.hash in known:
                return at
            at = Tip(at.seq - 1, branch[at.hash][1])
        held = [t for t in theirs if t.seq >= at.seq and t.hash in branch] + [
            t for t in theirs if t.seq <= at.seq and t.hash in self.hash_at(row.id, t.seq)
        ]
        if any(t.seq >= at.seq for t in held):
            return at
        return max(held, default=ZERO)

    def read_run(self, stretch: Stretch, target: int) -> tuple[ServedRun, Stretch | None]:
        """The next run of a stretch, up to the first held signature past ``target`` bytes (R4)."""
        row = self.row(stretch.log)
        assert row is not None, "a stretch is of a log that is held"
        chosen: list[_Row] = []
        size, best, end = 0, 0, stretch.after
        for item in self._chain(row, stretch):
            size += len(item.header) + len(item.payload or b"")
            if best and (size > RUN_BYTES_MAX or len(chosen) >= RUN_ENTRIES_MAX):
                break
            chosen.append(item)
            if item.signature and decode_header(item.header).commit_left == 0:
                best, end = len(chosen), Tip(item.seq, EntryHash(item.hash))
                if size >= target or best >= RUN_ENTRIES_MAX:
                    break
        assert best, "a log is held up to entries whose signatures are held"
        served = tuple(
            self._served(item, last=i == best - 1) for i, item in enumerate(chosen[:best])
        )
        rest = Stretch(stretch.log, end, stretch.until) if end.seq < stretch.until.seq else None
        return ServedRun(stretch.log, served), rest

    def _chain(self, row: LogRow, stretch: Stretch) -> Iterator[_Row]:
        """The stretch's entries along its own branch, read as they are wanted."""
        path = None if row.fork_seq is None else self._path(row, stretch)
        found = self._db.execute(
            "SELECT header, payload, signature, payload_kind, record, seq, hash FROM entry"
            " WHERE log = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (row.id, stretch.after.seq, stretch.until.seq),
        )
        for values in found:
            item = _Row(*values)
            if path is None or item.hash in path or item.seq <= (row.fork_seq or 0):
                yield item

    def _path(self, row: LogRow, stretch: Stretch) -> set[EntryHash]:
        branch = self.branch_entries(row)
        path, at = set(), stretch.until.hash
        while at in branch:
            path.add(at)
            at = branch[at][1]
        return path

    def _served(self, item: _Row, *, last: bool) -> ServedEntry:
        singly = item.payload_kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        tombstone = b""
        if item.payload is None:
            found = self._db.execute(
                "SELECT hash FROM tombstone WHERE record = ? AND effective = 1 AND chained = 1"
                " ORDER BY hash",
                (item.record,),
            ).fetchone()
            tombstone = found[0] if found else b""
        kept = item.signature if last or singly else b""
        return ServedEntry(RawEntry(item.header, item.payload, kept), tombstone)


def _row(found: tuple[int, bytes, bytes, bytes, int, bytes, int | None]) -> LogRow:
    number, device, incarnation, heads, tip_seq, tip_hash, fork_seq = found
    cut = tuple(heads[i : i + HASH_BYTES] for i in range(0, len(heads), HASH_BYTES))
    log = LogId(DeviceId(device), Incarnation(incarnation))
    return LogRow(number, log, cut, Tip(tip_seq, EntryHash(tip_hash)), fork_seq)
