"""Refolding records: from log to read model, in the transaction that changed the log.

1. A record is refolded when one of its entries, its log's verdict, a statement about it, a
   tombstone of it or the existence of its successor changed; nothing else touches its row.
2. Folds come first, then existence (which successors count), then rows, then standing between
   records; so the outcome is a function of the set, not of the order inside a batch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import keys.codec as codec
from crdt.entry import Header, LogId, PayloadKind, decode_header
from crdt.facts import Reason, RecordFold, Stored, Verdict
from crdt.fingerprint import FingerprintKey, fingerprints
from crdt.fold import fold_record
from crdt.payload import Fingerprint
from keys.authority import Authority
from keys.ids import AgentId, RecordId
from memory.foldkeys import committed
from memory.judge import Judge, LogJudge, OpeningsJudge
from memory.logs import LogRow, Logs, NewEntry
from memory.rows import Row, VersionRow, build_row, what_shows
from memory.shapes import compared_value
from memory.tables import NEVER_SEEN, EntryRow, Old, Tables


@dataclass(slots=True)
class Batch:
    """What one refolding works on."""

    headers: dict[bytes, Header]  # of entries just appended: decoded already
    stored: dict[bytes, list[Stored]] = field(default_factory=dict)
    folds: dict[bytes, RecordFold | None] = field(default_factory=dict)  # None: erased
    old: dict[bytes, Old] = field(default_factory=dict)
    was_frozen: set[bytes] = field(default_factory=set)  # without a row, yet maybe in force (R7)
    rows: dict[bytes, Row] = field(default_factory=dict)
    entries: dict[bytes, list[EntryRow]] = field(default_factory=dict)  # of this round
    erased: set[bytes] = field(default_factory=set)  # of this round


class Folder:
    """Folds records of one agent's file under one set of statements."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        agent: AgentId,
        logs: Logs,
        authority: Authority,
        keys: list[FingerprintKey],
    ) -> None:
        self._db, self.agent, self.logs = connection, agent, logs
        self.authority, self.keys = authority, committed(keys, authority)
        self.tables = Tables(connection)
        self._judges: dict[LogId, Judge] = {}

    def judge_of(self, log: LogId) -> Judge:
        """The judge of one log, made once per set of statements and branches."""
        judge = self._judges.get(log)
        if judge is None:
            row = self.logs.row(log)
            assert row is not None, "only logs that are held are judged"
            judge = self._judges[log] = self._make_judge(row)
        return judge

    def _make_judge(self, row: LogRow) -> Judge:
        if row.fork_seq != 0:
            return self._judge_by(row, row.heads)
        judges = {o: self._judge_by(row, heads) for o, heads in self.logs.openings(row).items()}
        return OpeningsJudge(judges, self.logs.branch_entries(row))

    def _judge_by(self, row: LogRow, heads: Iterable[bytes]) -> LogJudge:
        verdict = self.authority.log_verdict(row.log.device, row.log.incarnation, heads)
        return LogJudge(self.logs, row, verdict)

    def forget_judges(self) -> None:
        """Statements or branches changed: judge anew."""
        self._judges.clear()

    def judge(self, header: Header) -> Verdict:
        """The verdict on one entry."""
        return self.judge_of(header.log).judge(header)

    def prints_of(self, record: bytes) -> list[Fingerprint]:
        """The fingerprints that a tombstone of ``record`` lists: those of its text, if compared."""
        found = self._db.execute(
            "SELECT kind, text, detail FROM record WHERE record = ?", (record,)
        ).fetchone()
        if found is None:
            return []
        kind, text, detail = found
        value = compared_value(kind, text, codec.unpack(detail).get("body", {}))
        return fingerprints(self.keys, value) if value else []

    def records(self) -> list[bytes]:
        """Every record of the log, and every erased one, by id."""
        rows = self._db.execute(
            "SELECT DISTINCT record FROM entry WHERE payload_kind NOT IN (0, 2)"
            " UNION SELECT record FROM tombstone WHERE effective = 1 AND chained = 1"
            " ORDER BY record"
        )
        return [r[0] for r in rows]

    def records_of(self, row: LogRow) -> list[bytes]:
        """Every record that a log says something of."""
        rows = self._db.execute(
            "SELECT DISTINCT record FROM entry WHERE log = ? AND payload_kind NOT IN (0, 2)",
            (row.id,),
        )
        return [r[0] for r in rows]

    def refold(
        self, records: Iterable[bytes], new: Sequence[NewEntry] = ()
    ) -> tuple[set[bytes], set[bytes]]:
        """Refold ``records`` and what depends on their existence.

        Returns all records that were folded, and the fingerprints that they had before.

        ``new`` are the entries just appended, if any were: they need no reading back.
        """
        batch = Batch({i.entry.header.hash: i.entry.header for i in new})
        todo = set(records)
        while todo:
            raised: set[bytes] = set()
            self._read(todo, batch, new)
            new = ()  # what follows may have raised their times
            for record in sorted(todo):
                self._fold(record, batch, raised)
            todo = raised or self._predecessors(batch) - batch.folds.keys()
            if not todo:
                self._build(batch)
                todo = self._once_equal(batch) - batch.folds.keys()
        before = {
            mac
            for record, old in batch.old.items()
            if old.n is not None
            for mac in self.tables.macs(record)
        }
        self.tables.write(batch.folds.keys(), batch.rows, batch.old, self._prints(batch))
        return set(batch.folds), before

    def _build(self, batch: Batch) -> None:
        for record in batch.folds.keys() - batch.rows.keys():
            fold = batch.folds[record]
            if fold is None:
                batch.rows[record] = self._erased_row(record, batch)
            elif fold.materialised:
                batch.rows[record] = build_row(
                    fold,
                    batch.stored[record],
                    self.agent,
                    self.authority,
                    lambda successor: self._exists(successor, batch),
                )

    # -- one record ------------------------------------------------------------------------------

    def _read(self, records: Collection[bytes], batch: Batch, new: Sequence[NewEntry]) -> None:
        """Read what the folds of ``records`` start from."""
        batch.entries = self.tables.entries_of(records, *([new[0].id] if new else []))
        for _, _, entry, time_ms in new:
            header = entry.header
            if header.payload_kind not in (PayloadKind.OPEN, PayloadKind.TOMBSTONE):
                row = EntryRow(header.hash, header.data, entry.payload, time_ms, None)
                batch.entries[header.record].append(row)
        batch.erased = self.tables.erased_among(records)
        unseen = [record for record in records if record not in batch.old]
        olds = self.tables.olds(unseen)
        for record in unseen:
            old = batch.old[record] = olds.get(record, NEVER_SEEN)
            if old.n is None and any(e.reason == Reason.FROZEN for e in batch.entries[record]):
                batch.was_frozen.add(record)

    def _fold(self, record: bytes, batch: Batch, raised: set[bytes]) -> None:
        entries = batch.entries[record]
        stored = [
            Stored(batch.headers.get(h) or decode_header(data), payload, time_ms)
            for h, data, payload, time_ms, _ in entries
        ]
        stored = self._raise_times(record, stored, raised)
        batch.stored[record] = stored
        if record in batch.erased:
            batch.folds[record] = None
            self.tables.drop_payloads(record)
            reasons: dict[bytes, str] = {
                s.header.hash: self.judge(s.header).reason or Reason.ERASED for s in stored
            }
        else:
            fold = fold_record(self.agent, RecordId(record), stored, self.judge)
            batch.folds[record] = fold
            reasons = {bytes(entry): reason for entry, reason in fold.reasons.items()}
        self.tables.set_reasons(entries, reasons)

    def _raise_times(self, record: bytes, stored: list[Stored], raised: set[bytes]) -> list[Stored]:
        """R14: an entry that came after what builds on it raises the record times of that."""
        if len(stored) < 2:
            return stored
        times = {s.header.hash: s.time_ms for s in stored}
        late = [
            (s, max(times.get(d, 0) for d in s.header.deps))
            for s in stored
            if s.header.deps and max(times.get(d, 0) for d in s.header.deps) > s.time_ms
        ]
        if not late:
            return stored
        for item, time_ms in late:
            row = self.logs.row(item.header.log)
            assert row is not None, "an entry is of a log that is held"
            raised |= self.logs.raise_time(row.id, item.header.hash, time_ms)
        again = [
            Stored(decode_header(data), payload, time_ms)
            for _, data, payload, time_ms, _ in self.tables.entries(record)
        ]
        return self._raise_times(record, again, raised)

    def _erased_row(self, record: bytes, batch: Batch) -> Row:
        """What remains of an erased record: who wrote when, from the headers, never what."""
        row = Row(RecordId(record), own="erased")
        marks = [
            (s.time_ms, bytes(s.header.hash), bytes(s.header.device), s.header.via, "")
            for s in batch.stored[record]
            if s.header.payload_kind == PayloadKind.OPS and self.judge(s.header).reason is None
        ]
        tombstones = self.tables.tombstones_of(record)
        marks += [(t, h, device, via, reason) for h, t, device, via, reason in tombstones]
        marks.sort()
        row.versions = [
            VersionRow(entry, t, "erased", device, via, reason, b"")
            for t, entry, device, via, reason in marks
        ]
        row.created_ms, row.changed_ms = marks[0][0], marks[-1][0]
        row.detail = {"tombstones": sorted(h for h, *_ in tombstones)}
        return row

    # -- existence -------------------------------------------------------------------------------

    def _exists(self, record: bytes, batch: Batch) -> bool:
        """Whether a successor counts: it materialises (or did) and is not ``proposed`` (R11)."""
        if record in batch.folds:
            return self._counts(record, batch)
        old = self.tables.old(record)
        return old.counts if old.n is not None else self._frozen(record)

    def _counts(self, record: bytes, batch: Batch) -> bool:
        fold = batch.folds[record]
        if fold is None:
            return True
        if not fold.materialised:
            return any(verdict.withholds for verdict in fold.verdicts.values())
        acts, policy = self.authority.acts.get(record, ()), self.authority.policy
        return not what_shows(fold, batch.stored[record], self.agent, acts, policy).proposal

    def _frozen(self, record: bytes) -> bool:
        """R7: what a frozen record replaced does not become readable."""
        return any(
            reason == Reason.FROZEN and self.judge(decode_header(data)).withholds
            for _, data, _, _, reason in self.tables.entries(record)
        )

    def _predecessors(self, batch: Batch) -> set[bytes]:
        """Records once replaced by one whose existence changed: states and versions follow it."""
        changed = [
            record
            for record in batch.folds
            if record in batch.was_frozen or self._counts(record, batch) != batch.old[record].counts
        ]
        return self.tables.linked_to(changed, ("next", "lifted"))

    # -- values ----------------------------------------------------------------------------------

    def _once_equal(self, batch: Batch) -> set[bytes]:
        """Records replaced by one whose value changed, so that they may refuse theirs or not."""
        changed = [
            record
            for record, fold in batch.folds.items()
            if fold is None
            or (batch.rows[record].text if fold.materialised else "") != batch.old[record].text
        ]
        return self.tables.linked_to(changed, ("next",))

    def _prints(self, batch: Batch) -> dict[bytes, tuple[list[bytes], bool]]:
        """Per record that takes part in R27: the macs of its text, and whether it refuses them."""
        macs: dict[bytes, list[bytes]] = {
            record: [p.mac for p in fingerprints(self.keys, value)]
            for record, row in batch.rows.items()
            if (value := row.value)
        }

        def macs_of(record: bytes) -> set[bytes]:
            if record not in batch.folds:
                return set(self.tables.macs(record))
            is_erased = batch.folds[record] is None
            return self.tables.listed(record) if is_erased else set(macs.get(record, ()))

        out: dict[bytes, tuple[list[bytes], bool]] = {}
        for record, found in macs.items():
            row = batch.rows[record]
            refuses = row.own == "deprecated" or (
                row.own == "superseded"
                and any(
                    not macs_of(s) & set(found) for s in row.successors if self._exists(s, batch)
                )
            )
            out[record] = (found, refuses)
        return out
