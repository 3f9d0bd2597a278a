"""A log store in memory: every rule of ``crdt.log.LogStore`` but the fold.

It keeps verified entries and statements. Of the read model it knows one thing: a tombstone takes
the payloads of its record away, those that are here and those that come later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crdt.chain import RawEntry, VerifiedEntry, VerifiedRun
from crdt.entry import LogId, PayloadKind
from crdt.log import (
    AheadTombstone,
    Appended,
    ServedEntry,
    ServedRun,
    Stretch,
    Tip,
    Vector,
    Want,
)
from crdt.payload import decode_tombstone
from crdt.vector import statements_digest, vector_digest
from keys.errors import BadChain
from keys.ids import AgentId, EntryHash, RecordId, hash256
from keys.limits import BRANCHES_MAX, HASH_BYTES, RUN_ENTRIES_MAX
from keys.statements import Statement

ROOT = EntryHash(bytes(HASH_BYTES))


class MemoryLog:
    """One agent's log and statements."""

    def __init__(self, agent: AgentId) -> None:
        self._agent = agent
        self.entries: dict[EntryHash, VerifiedEntry] = {}
        self.erased: dict[RecordId, EntryHash] = {}
        self.ahead: dict[EntryHash, AheadTombstone] = {}
        self.statements: dict[bytes, Statement] = {}
        self.reads = 0

    @property
    def agent(self) -> AgentId:
        return self._agent

    # -- vectors ---------------------------------------------------------------------------------

    def vector(self) -> Vector:
        followed = {e.header.prev for e in self.entries.values()}
        vector: Vector = {}
        for found, entry in self.entries.items():
            if found not in followed:
                vector.setdefault(entry.header.log, []).append(Tip(entry.header.seq, found))
        return {log: sorted(tips) for log, tips in vector.items()}

    def vector_digest(self) -> bytes:
        return vector_digest(self.vector())

    # -- statements ------------------------------------------------------------------------------

    def statements_digest(self) -> bytes:
        return statements_digest(self.statements)

    def statement_ids(self) -> list[bytes]:
        return sorted(self.statements)

    def statements_missing(self, have: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
        return [(s.data, s.signature) for s in self._past_first() if s.id not in have]

    def add_statements(self, statements: Sequence[Statement]) -> int:
        before = len(self.statements)
        for statement in statements:
            if statement.agent in (b"", self._agent):
                self.statements.setdefault(bytes(statement.id), statement)
        return len(self.statements) - before

    def _past_first(self) -> list[Statement]:
        done: dict[bytes, Statement] = {}
        while True:
            ready = [
                s
                for i, s in sorted(self.statements.items())
                if i not in done and all(before in done for before in s.after)
            ]
            if not ready:
                return list(done.values())
            done |= {bytes(s.id): s for s in ready}

    # -- tombstones ahead of their chain ---------------------------------------------------------

    def tombstones_beyond(self, have: Vector, limit: int) -> list[tuple[RawEntry, RawEntry]]:
        pairs = [
            (entry, self._opening(entry))
            for stretch in self.plan(have)
            for entry in self._path(stretch)
            if entry.header.payload_kind == PayloadKind.TOMBSTONE
        ]
        pairs += [(a.tombstone, a.opening) for h, a in self.ahead.items() if h not in self.entries]
        return [(_raw(tombstone), _raw(opening)) for tombstone, opening in pairs[:limit]]

    def add_ahead(self, tombstones: Sequence[AheadTombstone]) -> int:
        before = len(self.ahead)
        for found in tombstones:
            if found.tombstone.header.hash not in self.entries:
                self.ahead.setdefault(found.tombstone.header.hash, found)
        return len(self.ahead) - before

    def _opening(self, entry: VerifiedEntry) -> VerifiedEntry:
        while entry.header.seq > 1:
            entry = self.entries[entry.header.prev]
        return entry

    # -- serving ---------------------------------------------------------------------------------

    def plan(self, have: Vector) -> list[Stretch]:
        return [
            s
            for log, tips in sorted(self.vector().items(), key=_place)
            for s in self._stretches(log, tips, have.get(log, []))
        ]

    def missing_entries(self, have: Vector) -> int:
        return sum(s.until.seq - s.after.seq for s in self.plan(have))

    def _stretches(self, log: LogId, tips: list[Tip], theirs: list[Tip]) -> list[Stretch]:
        """Of each branch what they lack: all of it where they are on a branch that is not here."""
        had: set[EntryHash] = {ROOT}
        for tip in theirs:
            had |= set(self._back(tip.hash))
        foreign = [t for t in theirs if t.hash not in self.entries]
        if any(t.seq > max(tips).seq for t in foreign):
            return []
        out = []
        for tip in reversed(tips):
            after = next(h for h in [*self._back(tip.hash), ROOT] if h in had)
            if after != tip.hash:
                at = Tip(self.entries[after].header.seq, after) if after != ROOT else Tip(0, ROOT)
                out.append(Stretch(log, at, tip))
                had |= set(self._back(tip.hash))
        return out

    def _back(self, found: EntryHash) -> Iterator[EntryHash]:
        while found in self.entries:
            yield found
            found = self.entries[found].header.prev

    def _path(self, stretch: Stretch) -> list[VerifiedEntry]:
        path = []
        for found in self._back(stretch.until.hash):
            if found == stretch.after.hash:
                break
            path.append(self.entries[found])
        return path[::-1]

    def read_run(self, stretch: Stretch, bytes_target: int) -> tuple[ServedRun, Stretch | None]:
        self.reads += 1
        taken: list[ServedEntry] = []
        end, size = 0, 0
        path = self._path(stretch)
        for entry in path[:RUN_ENTRIES_MAX]:
            taken.append(self._served(entry))
            size += len(entry.header.data) + len(entry.payload or b"")
            if entry.signature and not entry.header.commit_left:
                end = len(taken)
                if size >= bytes_target:
                    break
        assert end, "a run ends at a held signature"
        last = path[end - 1].header
        rest = Stretch(stretch.log, Tip(last.seq, last.hash), stretch.until)
        run = ServedRun(stretch.log, tuple(taken[:end]))
        return run, None if last.hash == stretch.until.hash else rest

    def _served(self, entry: VerifiedEntry) -> ServedEntry:
        tombstone = b""
        if entry.payload is None:
            tombstone = bytes(self.erased.get(entry.header.record, b""))
        return ServedEntry(_raw(entry), tombstone)

    # -- appending -------------------------------------------------------------------------------

    def append_runs(self, runs: Sequence[VerifiedRun], now_us: int) -> Appended:
        kept = dict(self.entries), dict(self.erased)
        try:
            return self._append(runs)
        except BadChain:
            self.entries, self.erased = kept
            raise

    def _append(self, runs: Sequence[VerifiedRun]) -> Appended:
        new = known = 0
        for run in runs:
            before = self.entries.get(run.prev)
            if run.first_seq > 1 and (
                before is None
                or before.header.log != run.log
                or before.header.seq != run.first_seq - 1
            ):
                raise BadChain("a run does not follow what is held")
            for entry in run.entries:
                held = self.entries.get(entry.header.hash)
                new, known = new + (held is None), known + (held is not None)
                self._keep(entry, held)
            if len(self.vector()[run.log]) > BRANCHES_MAX:
                raise BadChain("more branches than are kept")
        return Appended(new, known)

    def _keep(self, entry: VerifiedEntry, held: VerifiedEntry | None) -> None:
        payload = entry.payload
        if self._withheld(entry.header.record):
            payload = None
        if held is not None:
            payload = held.payload
        signature = entry.signature or (held.signature if held else b"")
        self.entries[entry.header.hash] = VerifiedEntry(entry.header, payload, signature)
        self.ahead.pop(entry.header.hash, None)
        if entry.header.payload_kind == PayloadKind.TOMBSTONE and payload is not None:
            self._erase(decode_tombstone(payload).record, entry.header.hash)

    def _withheld(self, record: RecordId) -> bool:
        """Whether a tombstone names a record, in its chain or ahead of it (R30)."""
        named = (decode_tombstone(a.tombstone.payload or b"").record for a in self.ahead.values())
        return record in self.erased or record in named

    def _erase(self, record: RecordId, tombstone: EntryHash) -> None:
        self.erased.setdefault(record, tombstone)
        for found, entry in self.entries.items():
            if entry.header.record == record:
                self.entries[found] = VerifiedEntry(entry.header, None, entry.signature)

    # -- payloads --------------------------------------------------------------------------------

    def wants(self, limit: int) -> list[Want]:
        wanted = [
            Want(e.header.log, e.header.seq, e.header.hash)
            for e in self.entries.values()
            if e.payload is None and not self._withheld(e.header.record)
        ]
        return sorted(wanted, key=lambda w: (w.log.device, w.log.incarnation, w.seq))[:limit]

    def payloads(self, wanted: Sequence[Want]) -> list[tuple[Want, bytes]]:
        self.reads += 1
        here = ((want, self.entries.get(want.hash)) for want in wanted)
        return [(w, e.payload) for w, e in here if e is not None and e.payload is not None]

    def add_payloads(self, found: Sequence[tuple[Want, bytes]], now_us: int) -> int:
        taken = 0
        for want, payload in found:
            entry = self.entries.get(want.hash)
            if entry is None or entry.payload is not None or self._withheld(entry.header.record):
                continue
            if hash256(payload) == entry.header.payload_hash:
                self.entries[want.hash] = VerifiedEntry(entry.header, payload, entry.signature)
                taken += 1
        return taken


def _raw(entry: VerifiedEntry) -> RawEntry:
    return RawEntry(entry.header.data, entry.payload, entry.signature)


def _place(item: tuple[LogId, list[Tip]]) -> bytes:
    return item[0].device + item[0].incarnation
