"""Writing: local acts become signed entries of this device's own log.

1. ``seq`` and ``prev`` are read from the log inside the transaction that inserts.
2. An edit cites the record's heads; operations without effect are dropped, and an edit that has
   none left is not written (R6). What no node would take, past the limit, is refused.
3. The log is opened by the first write: when there is none, after a doubt about continuity (R38),
   when it is forked or cut, and when rights were gained that its opening had not seen.
4. A commit is at most ``COMMIT_ENTRIES_MAX`` entries; larger acts are several commits in one
   transaction.
5. What holds a secret is refused before anything of it is kept (``screening``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from crdt.chain import VerifiedEntry, VerifiedRun
from crdt.entry import (
    NO_PREV,
    NO_RECORD,
    Header,
    LogId,
    PayloadKind,
    Via,
    actor_id,
    author_bound_id,
    decode_header,
    make_header,
    tombstone_id,
)
from crdt.facts import MARK, NEXT, Stored
from crdt.fold import Base, base_of
from crdt.log import Tip
from crdt.payload import (
    Fingerprint,
    Op,
    Verb,
    encode_open,
    encode_ops,
    encode_tombstone,
)
from keys.errors import RefusedError, StoreError
from keys.ids import DeviceId, EntryHash, Incarnation, RecordId, hash256
from keys.limits import (
    COMMIT_BYTES_MAX,
    COMMIT_ENTRIES_MAX,
    INCARNATION_BYTES,
    PAST_ENTRIES_MAX,
    SALT_BYTES,
)
from keys.signing import ENTRY_DOMAIN, DeviceKey, random_bytes
from memory.logs import LogRow, NewEntry
from memory.screening import screen
from memory.store import AgentStore

CHANGES_MAX = PAST_ENTRIES_MAX - 256  # of one record: the rest is for what withholds it


class TooManyChangesError(RefusedError):
    """A memory has been changed so often that no node would take another change (R6)."""

    code = "too_many_changes"


@dataclass(slots=True)
class _Draft:
    record: RecordId
    payload: bytes
    kind: PayloadKind
    deps: list[EntryHash] = field(default_factory=list)


AGENT_FORGOTTEN: Final = "agent_forgotten"


class Author:
    """Writes into one agent's store as one device."""

    def __init__(self, store: AgentStore, key: DeviceKey) -> None:
        self.store, self._key = store, key
        self.renew = False  # a doubt about continuity: the next write opens a new incarnation
        self.stopped: RefusedError | None = None  # why nothing may be written at all (S-A7)
        self._clock_us = 0
        self.on_opening: Callable[[Incarnation], None] | None = None  # before its first commit
        store.withheld_hook = self._erase_own

    @property
    def device(self) -> DeviceId:
        """The device that writes."""
        return self._key.device

    @property
    def may_write(self) -> bool:
        """Whether this device holds ``write`` now."""
        return self.store.authority.holds_device(self._key.device, "write").held

    @property
    def may_review(self) -> bool:
        """Whether this device holds ``review`` now, so that its ``current`` marks count (R11)."""
        return self.store.authority.holds_device(self._key.device, "review").held

    @contextmanager
    def commit(self, via: Via, now_us: int) -> Iterator[Commit]:
        """One transaction of local acts; what the block adds is written when it ends."""
        if self.stopped is not None:
            raise self.stopped.with_traceback(None)
        if not self.may_write:
            raise RefusedError(
                "this device may not write to this agent",
                hint="ask its owner: roost grant AGENT DEVICE write",
            )
        if self.store.tombstones.ended(self.store.authority):
            raise RefusedError(
                "this agent was forgotten", hint="begin anew: roost agent create NAME"
            )
        if self.store.waiting_for_key:
            raise StoreError(
                "this agent's fingerprint key has not arrived yet",
                hint="sync with a device that has it: roost sync --once",
            )
        with self.together():
            commit = self._begin(via, now_us)
            yield commit
            new = commit.finish()
            if new:
                self.store.after_append(new)

    @contextmanager
    def together(self) -> Iterator[None]:
        """One transaction around commits, each of which may fail alone; raises ``StoreError``."""
        doubt = self.renew
        try:
            with self.store.changing():
                yield
        except BaseException:
            self.renew = doubt  # the new incarnation went with the transaction
            raise

    def _begin(self, via: Via, now_us: int) -> Commit:
        self._clock_us = max(now_us, 1)
        log, tip, opening = self._own_log(self._clock_us)
        return Commit(self.store, self._key, log, tip, opening, via, self._clock_us)

    def own_incarnation(self) -> Incarnation | None:
        """The incarnation that this device writes under, None before the first write."""
        found = self.store.connection.execute(
            "SELECT value FROM meta WHERE key = 'incarnation'"
        ).fetchone()
        return Incarnation(found[0]) if found else None

    def own_tip(self) -> tuple[Incarnation, int] | None:
        """The incarnation written under and the last own seq, for the marker (R38)."""
        incarnation = self.own_incarnation()
        row = incarnation and self.store.logs.row(LogId(self._key.device, incarnation))
        return (row.log.incarnation, row.tip.seq) if row else None

    def _own_log(self, now_us: int) -> tuple[LogId, Tip, VerifiedEntry | None]:
        incarnation = self.own_incarnation()
        if incarnation is not None and not self.renew:
            row = self.store.logs.row(LogId(self._key.device, incarnation))
            if row is not None and self._continues(row):
                return row.log, row.tip, None
        fresh = Incarnation(random_bytes(INCARNATION_BYTES))
        if self.on_opening is not None:
            self.on_opening(fresh)
        self.store.connection.execute(
            "INSERT OR REPLACE INTO meta VALUES ('incarnation', ?)", (bytes(fresh),)
        )
        self.renew = False
        log = LogId(self._key.device, fresh)
        payload = encode_open(self.store.authority.heads())
        header = make_header(
            self.store.agent,
            log,
            1,
            NO_PREV,
            record=NO_RECORD,
            payload_kind=PayloadKind.OPEN,
            payload=payload,
            deps=[],
            wall_ms=now_us // 1000,
            via=Via.LOCAL,
            commit_left=0,
        )
        opening = self._sign(header, payload)
        return log, Tip(1, header.hash), opening

    def _continues(self, row: LogRow) -> bool:
        """Whether the log may go on: whole, ended by no cut, and with all rights held now."""
        log = row.log
        verdict = self.store.authority.log_verdict(log.device, log.incarnation, row.heads)
        if row.fork_seq is not None or verdict.settles or () not in verdict.paths:
            return False  # an entry after the tip would be past a cut (R18)
        reviews = self.store.authority.holds_device(self._key.device, "review").held
        return () in verdict.reviews or not reviews

    def _sign(self, header: Header, payload: bytes) -> VerifiedEntry:
        return VerifiedEntry(header, payload, self._key.sign(ENTRY_DOMAIN, header.hash))

    def _erase_own(self, held: set[bytes]) -> list[NewEntry]:
        """R31: what we wrote and now reads withheld for an erasure gets its own tombstone."""
        if self.stopped is not None or not self.may_write:
            return []
        mine = [(r, why) for r in sorted(held) if (why := self._own_reason(r)) is not None]
        if not mine:
            return []
        commit = self._begin(Via.CONSOLIDATOR, self._clock_us)
        for record, why in mine:
            commit.erase(RecordId(record), why)
        return commit.finish()

    def _own_reason(self, record: bytes) -> str | None:
        tables, standings = self.store.folder.tables, self.store.standings
        if tables.is_withheld(record) or not self._answers_for(record):
            return None
        if self.store.tombstones.ended(self.store.authority):
            return AGENT_FORGOTTEN
        if standings.source_erased(record):
            return "derived"
        if any(standings.print_erased(mac) for mac in tables.macs(record)):
            return "returning"
        return None

    def _answers_for(self, record: bytes) -> bool:
        """R31: who wrote it, or if that device may write no more, one writer by rendezvous."""
        author = self.store.folder.tables.author(record)
        authority = self.store.authority
        if author == self._key.device:
            return True
        if not author or authority.holds_device(author, "write").held:
            return False
        writers = [d for d in authority.devices() if authority.holds_device(d, "write").held]
        return max(writers, key=lambda d: hash256(record, d), default=b"") == self._key.device

    def stamp(self, now_us: int) -> None:
        """The clock for entries that the fold of pulled entries makes us write (R31)."""
        self._clock_us = now_us


class Commit:
    """Acts of one transaction, in order; entries are made when it ends."""

    def __init__(  # noqa: PLR0913 - made in one place only
        self,
        store: AgentStore,
        key: DeviceKey,
        log: LogId,
        tip: Tip,
        opening: VerifiedEntry | None,
        via: Via,
        now_us: int,
    ) -> None:
        self.store, self._key, self.log, self.via = store, key, log, via
        self.now_us = now_us
        self._tip, self._opening = tip, opening
        self._order: list[RecordId] = []
        self._ops: dict[RecordId, dict[str, Op]] = {}
        self._created: set[RecordId] = set()
        self._tombstones: dict[RecordId, tuple[RecordId, str]] = {}

    def create(self, ops: Sequence[Op]) -> RecordId:
        """Add a record; its id is bound to the place of its creation (R9)."""
        seq = self._tip.seq + 1 + len(self._order)
        record = author_bound_id(self.store.agent, self.log, seq, self.now_us // 1000)
        self._add(record, ops)
        self._created.add(record)
        return record

    def create_derived(self, record: RecordId, ops: Sequence[Op]) -> RecordId:
        """Add a record whose id every device derives; the full set of keys (R10)."""
        self._add(record, ops)
        self._created.add(record)
        return record

    def edit(self, record: RecordId, ops: Sequence[Op]) -> None:
        """Change a record; several edits of one record in a commit become one entry."""
        self._add(record, ops)

    def erase(self, record: RecordId, reason: str) -> None:
        """Write a tombstone that carries the record's fingerprints."""
        self._order.append(tombstone_id(self.store.agent, record))
        self._tombstones[self._order[-1]] = (record, reason)

    def _add(self, record: RecordId, ops: Sequence[Op]) -> None:
        screen(ops)
        if record not in self._ops:
            self._order.append(record)
            self._ops[record] = {}
        self._ops[record].update({op.key: op for op in ops})

    def finish(self) -> list[NewEntry]:
        """Make, sign and append the entries; what was appended."""
        drafts: list[_Draft] = []
        place = self._tip.seq
        for record in self._order:
            draft = self._draft(record, place + len(drafts) + 1)
            if draft is not None:
                drafts.append(draft)
            elif record in self._created:
                raise StoreError("a creation without effect", record=str(record))
        entries = [self._opening] if self._opening else []
        for chunk in _chunks(drafts):
            entries += self._sign_chunk(chunk)
        if not entries or (self._opening and len(entries) == 1):
            return []
        first = entries[0].header
        run = VerifiedRun(self.log, first.seq, first.prev, tuple(entries))
        return self.store.logs.append(run, self.now_us, self.store.authority.times)

    def _draft(self, record: RecordId, seq: int) -> _Draft | None:
        if record in self._tombstones:
            named, reason = self._tombstones[record]
            # Nothing can return to an agent that is forgotten, and nobody shall try what it held.
            listed = self.store.folder.prints_of(named) if reason != AGENT_FORGOTTEN else ()
            prints = [Fingerprint(p.norm, p.key, p.mac) for p in listed]
            return _Draft(record, encode_tombstone(named, reason, prints), PayloadKind.TOMBSTONE)
        base = self._base(record)
        ops = [op for op in self._ops[record].values() if _has_effect(op, base)]
        if not ops:
            return None
        if base.past > (PAST_ENTRIES_MAX if _withholds(ops) else CHANGES_MAX):
            raise TooManyChangesError(
                f"this memory has been changed {CHANGES_MAX:,} times and takes no more changes",
                hint="roost revise makes a new one of it",
                record=str(record),
            )
        ops.sort(key=lambda op: op.key.encode())
        salt = random_bytes(SALT_BYTES)
        change = base.change(actor_id(self.store.agent, self.log, seq, salt), ops)
        if change is None:
            return None
        return _Draft(record, encode_ops(salt, ops, change), PayloadKind.OPS, base.deps)

    def _base(self, record: RecordId) -> Base:
        stored = (
            []
            if record in self._created
            else [
                Stored(decode_header(data), payload, time_ms)
                for _, data, payload, time_ms, _ in self.store.folder.tables.entries(record)
            ]
        )
        return base_of(self.store.agent, record, stored, self.store.folder.judge)

    def _sign_chunk(self, chunk: Sequence[_Draft]) -> list[VerifiedEntry]:
        out: list[VerifiedEntry] = []
        for i, draft in enumerate(chunk):
            left = len(chunk) - 1 - i
            header = make_header(
                self.store.agent,
                self.log,
                self._tip.seq + 1,
                self._tip.hash,
                record=draft.record,
                payload_kind=draft.kind,
                payload=draft.payload,
                deps=draft.deps,
                wall_ms=self.now_us // 1000,
                via=self.via,
                commit_left=left,
            )
            self._tip = Tip(header.seq, header.hash)
            signed = left == 0 or draft.kind == PayloadKind.TOMBSTONE
            signature = self._key.sign(ENTRY_DOMAIN, header.hash) if signed else b""
            out.append(VerifiedEntry(header, draft.payload, signature))
        return out


def _withholds(ops: Iterable[Op]) -> bool:
    """Whether they retire or replace the record, for which there is always to be room."""
    return any(op.key.startswith((MARK, NEXT)) for op in ops)


def _has_effect(op: Op, base: Base) -> bool:
    if op.key not in base.values:
        return op.verb == Verb.PUT
    if op.verb == Verb.DELETE:
        return True
    held = base.values[op.key]
    return held != op.value or type(held) is not type(op.value)


def _chunks(drafts: Sequence[_Draft]) -> Iterator[list[_Draft]]:
    """Commits: at most 512 entries and 8 MiB each (R3)."""
    chunk: list[_Draft] = []
    size = 0
    for draft in drafts:
        cost = len(draft.payload) + 4096
        if chunk and (len(chunk) >= COMMIT_ENTRIES_MAX or size + cost > COMMIT_BYTES_MAX):
            yield chunk
            chunk, size = [], 0
        chunk.append(draft)
        size += cost
    if chunk:
        yield chunk
