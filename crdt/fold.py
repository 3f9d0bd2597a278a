"""What one record's entries say: a pure function of the entries and the verdicts on their logs.

1. An entry materialises iff its log allows it, its payload is here and well-formed, all its deps
   materialise and regeneration gives its change hash; else it has one reason, the first of R5.
2. ``kind`` and ``body.*`` come from one creation, the smallest hash of several (R10).
3. What withholds are facts: puts of ``mark.*`` and ``next.*`` (R11). The merged document gives only
   ``field.*`` and ``tag.*``.
4. Versions are the fold over the prefixes in (record time, hash) order (R14).
No clock and no order of arrival enters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple

from crdt.document import DocumentError, RecordDocument
from crdt.entry import Header, PayloadKind, actor_id, derived_id, is_author_bound, is_derived
from crdt.payload import ENGINE, Op, OpsPayload, Scalar, Verb, decode_ops, engine_of
from keys.errors import BadEncoding
from keys.ids import EntryHash, RecordId
from keys.limits import DEPS_MAX, PAST_ENTRIES_MAX, RECORD_BYTES

NEXT: Final = "next."
MARK: Final = "mark."
TAG: Final = "tag."
FIELD: Final = "field."
BODY: Final = "body."
_FACT_INITIALS: Final = MARK[0] + NEXT[0]  # no other key of a record starts with these letters
# ``bytes.fromhex`` alone also takes white space.
_RECORD_DIGITS: Final = re.compile(f"[0-9a-f]{{{2 * RECORD_BYTES}}}").fullmatch


class Reason(StrEnum):
    """Why an entry does not materialise; the first that holds, in this order (R5)."""

    FROZEN = "frozen"
    NOT_ACCEPTED = "not_accepted"
    PAST_CUT = "past_cut"
    ERASED = "erased"
    PAYLOAD_NOWHERE = "payload_nowhere"
    NEEDS_UPGRADE = "needs_upgrade"
    MALFORMED = "malformed"
    WAITING = "waiting"
    MISMATCH = "mismatch"


class Stored(NamedTuple):
    """An entry as the log holds it; ``time_ms`` is its record time (R14)."""

    header: Header
    payload: bytes | None
    time_ms: int


class Verdict(NamedTuple):
    """What the statements and forks say of one entry: a reason against it, or none."""

    reason: Reason | None
    reviews: bool
    withholds: bool = False  # frozen, yet its withholding facts stay effective (R7)


class Fact(NamedTuple):
    """A put of ``mark.*`` or ``next.*`` by a materialised entry. Never removed by an entry."""

    entry: EntryHash
    key: str
    value: str
    counts: bool  # False: ``current`` from a device that held no ``review``

    @property
    def successor(self) -> RecordId | None:
        """The record that replaces this one, for a ``next`` fact."""
        return successor_of(self.key)

    @property
    def word(self) -> str:
        """The state that a ``mark`` fact asserts, or another word (an annotation)."""
        return "" if self.key.startswith(NEXT) else self.value.partition(" ")[0]

    @property
    def reason(self) -> str:
        """The free text that came with the fact."""
        return self.value if self.key.startswith(NEXT) else self.value.partition(" ")[2]


class Step(NamedTuple):
    """One materialised entry and the document after it."""

    header: Header
    time_ms: int
    values: dict[str, Scalar]
    facts: tuple[Fact, ...]


@dataclass(slots=True)
class RecordFold:
    """The fold of one record's entries."""

    record: RecordId
    reasons: dict[EntryHash, Reason] = field(default_factory=dict)
    creations: list[Header] = field(default_factory=list)
    kind: str = ""
    body: dict[str, Scalar] = field(default_factory=dict)
    sources: frozenset[RecordId] = frozenset()
    steps: list[Step] = field(default_factory=list)
    heads: list[EntryHash] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    frozen: set[EntryHash] = field(default_factory=set)  # entries whose facts hold although frozen
    verdicts: dict[EntryHash, Verdict] = field(default_factory=dict)

    @property
    def materialised(self) -> bool:
        """Whether a creation counts, so that the record exists."""
        return bool(self.creations)

    @property
    def values(self) -> dict[str, Scalar]:
        """``field.*`` and ``tag.*`` as they read now."""
        return self.steps[-1].values if self.steps else {}


def successor_of(key: str) -> RecordId | None:
    """The record named by a ``next.<32 hex digits>`` key, None for any other key."""
    if not key.startswith(NEXT) or not _RECORD_DIGITS(key[len(NEXT) :]):
        return None
    return RecordId(bytes.fromhex(key[len(NEXT) :]))


def next_key(record: RecordId) -> str:
    """The key of the fact that ``record`` replaces the record it stands on."""
    return NEXT + record.hex()


def fold_record(
    agent: bytes, record: RecordId, entries: Iterable[Stored], judge: Callable[[Header], Verdict]
) -> RecordFold:
    """Fold the entries of one record that is not erased."""
    folding = _Folding(agent, record, judge)
    for stored in in_order(entries):
        folding.add(stored)
    return folding.finish()


@dataclass(frozen=True, slots=True)
class Base:
    """Where the next edit of a record is made: its heads and the document there."""

    deps: list[EntryHash]
    values: dict[str, Scalar]
    changes: frozenset[bytes]
    document: RecordDocument

    def change(self, actor: bytes, ops: Iterable[Op]) -> bytes | None:
        """The hash of the change that ``ops`` make here; None when they have no effect."""
        return self.document.apply(self.changes, actor, ops)


def base_of(
    agent: bytes, record: RecordId, entries: Iterable[Stored], judge: Callable[[Header], Verdict]
) -> Base:
    """The place for the next edit; for a record without entries, the place of its creation.

    With more than ``DEPS_MAX`` heads the smallest are cited (R6).
    """
    folding = _Folding(agent, record, judge)
    for stored in in_order(entries):
        folding.add(stored)
    heads = folding.finish().heads[:DEPS_MAX]
    changes = frozenset(folding.change[head] for head in heads)
    return Base(heads, folding.out.values, changes, folding.document)


def in_order(entries: Iterable[Stored]) -> list[Stored]:
    """Entries by (record time, hash), none before one of its deps that is here (R14)."""
    ordered = sorted(entries, key=lambda s: (s.time_ms, s.header.hash))
    if len(ordered) < 2:
        return ordered
    here = {s.header.hash for s in ordered}
    missing = {s.header.hash: len(here.intersection(s.header.deps)) for s in ordered}
    followers: dict[EntryHash, list[Stored]] = {}
    for stored in ordered:
        for dep in stored.header.deps:
            followers.setdefault(dep, []).append(stored)
    heap = [
        (s.time_ms, s.header.hash, i) for i, s in enumerate(ordered) if not missing[s.header.hash]
    ]
    place = {s.header.hash: i for i, s in enumerate(ordered)}
    out: list[Stored] = []
    while heap:
        _, _, i = heappop(heap)
        out.append(ordered[i])
        for follower in followers.get(ordered[i].header.hash, ()):
            missing[follower.header.hash] -= 1
            if not missing[follower.header.hash]:
                at = (follower.time_ms, follower.header.hash, place[follower.header.hash])
                heappush(heap, at)
    return out


def sources_of(body: dict[str, Scalar]) -> list[RecordId]:
    """The records that ``body.derived_from`` names: 16 bytes each, one after the other."""
    packed = body.get("body.derived_from")
    if not isinstance(packed, bytes) or len(packed) % RECORD_BYTES:
        return []
    return [RecordId(packed[i : i + RECORD_BYTES]) for i in range(0, len(packed), RECORD_BYTES)]


class _Folding:
    """The state of one fold; entries are added after their deps."""

    def __init__(self, agent: bytes, record: RecordId, judge: Callable[[Header], Verdict]) -> None:
        self.agent, self.record, self.judge = agent, record, judge
        self.out = RecordFold(record)
        self.document = RecordDocument()
        self.applied: list[tuple[frozenset[bytes], bytes, tuple[Op, ...]]] = []
        self.change: dict[EntryHash, bytes] = {}
        self.position: dict[EntryHash, int] = {}
        self.past: dict[EntryHash, int] = {}
        self.created: dict[EntryHash, dict[str, Scalar]] = {}  # what each creation puts
        self.early: tuple[Fact, ...] = ()  # facts of frozen entries before the first creation

    def add(self, stored: Stored) -> None:
        header = stored.header
        verdict = self.out.verdicts[header.hash] = self.judge(header)
        reason = verdict.reason or self._apply(stored, verdict)
        if verdict.withholds:
            self._withhold(stored)
        if reason is not None:
            self.out.reasons[header.hash] = reason

    def _apply(self, stored: Stored, verdict: Verdict) -> Reason | None:
        header = stored.header
        if stored.payload is None:
            return Reason.PAYLOAD_NOWHERE
        if header.payload_kind != PayloadKind.OPS:
            return Reason.NEEDS_UPGRADE if header.payload_kind > 2 else Reason.MALFORMED
        payload = _decode(stored.payload)
        if isinstance(payload, Reason):
            return payload
        if not self._well_formed(header, payload):
            return Reason.MALFORMED
        if any(dep not in self.change for dep in header.deps):
            return Reason.WAITING
        if not self._deps_hold(header):
            return Reason.MALFORMED
        return self._regenerate(stored, payload, verdict)

    def _withhold(self, stored: Stored) -> None:
        """R7: past an unsettled fork nothing becomes readable, but what withholds stays."""
        header = stored.header
        if stored.payload is None or header.payload_kind != PayloadKind.OPS:
            return
        payload = _decode(stored.payload)
        if isinstance(payload, Reason) or not self._well_formed(header, payload):
            return
        facts = tuple(
            fact
            for fact in _facts(header, payload.ops, reviews=False)
            if fact.word == "deprecated" or fact.successor is not None
        )
        self.out.facts.extend(facts)
        self.out.frozen.update(fact.entry for fact in facts)
        if not self.out.creations:
            self.early += facts
        elif facts:
            self.out.steps.append(Step(header, stored.time_ms, self.out.values, facts))

    def _well_formed(self, header: Header, payload: OpsPayload) -> bool:
        if header.deps:
            return all(_may_edit(op) for op in payload.ops)
        puts = {}
        for op in payload.ops:
            if op.verb is not Verb.PUT or not _fact_well_formed(op):
                return False
            puts[op.key] = op.value
        kind = puts.get("kind")
        if not isinstance(kind, str) or not kind:
            return False
        self.created[header.hash] = puts
        if is_derived(self.record):
            key = puts.get("body.key")
            return isinstance(key, bytes) and self.record == derived_id(self.agent, kind, key)
        return is_author_bound(self.record, self.agent, header.log, header.seq)

    def _deps_hold(self, header: Header) -> bool:
        """R6: no dep an ancestor of another; at most ``PAST_ENTRIES_MAX`` entries before."""
        past = 0
        for dep in header.deps:
            past |= self.past[dep]
        if any(past >> self.position[dep] & 1 for dep in header.deps):
            return False
        for dep in header.deps:
            past |= 1 << self.position[dep]
        if past.bit_count() > PAST_ENTRIES_MAX:
            return False
        self.past[header.hash] = past
        return True

    def _regenerate(self, stored: Stored, payload: OpsPayload, verdict: Verdict) -> Reason | None:
        header = stored.header
        deps = frozenset(self.change[dep] for dep in header.deps)
        actor = actor_id(self.agent, header.log, header.seq, payload.salt)
        try:
            made = self.document.apply(deps, actor, payload.ops)
            if made != payload.change_hash:
                self._rebuild()
                return Reason.MALFORMED if made is None else Reason.MISMATCH
            # One creation alone reads as what it puts: no need to ask the document.
            values = self.document.values() if self.applied else self.created[header.hash]
        except DocumentError:
            self._rebuild()
            return Reason.MALFORMED
        self.applied.append((deps, actor, payload.ops))
        self.change[header.hash] = made
        self.position[header.hash] = len(self.position)
        if not header.deps:
            self.out.creations.append(header)
        facts = tuple(_facts(header, payload.ops, verdict.reviews))
        self.out.facts.extend(facts)
        self.out.steps.append(Step(header, stored.time_ms, values, (*self.early, *facts)))
        self.early = ()
        return None

    def _rebuild(self) -> None:
        """Drop a document that took a change it should not have; make it again."""
        self.document = RecordDocument()
        for deps, actor, ops in self.applied:
            self.document.apply(deps, actor, ops)

    def finish(self) -> RecordFold:
        out = self.out
        if not out.creations:
            return out
        out.creations.sort(key=lambda header: header.hash)
        puts = self.created[out.creations[0].hash]
        out.kind = str(puts["kind"])
        out.body = {key: value for key, value in puts.items() if key.startswith(BODY)}
        out.sources = frozenset(
            source for header in out.creations for source in sources_of(self.created[header.hash])
        )
        covered = 0
        for entry in self.position:
            covered |= self.past[entry]
        out.heads = sorted(h for h, i in self.position.items() if not covered >> i & 1)
        return out


def _decode(payload: bytes) -> OpsPayload | Reason:
    try:
        return decode_ops(payload)
    except BadEncoding:
        try:
            known = engine_of(payload) <= ENGINE
        except BadEncoding:
            known = True
        return Reason.MALFORMED if known else Reason.NEEDS_UPGRADE


def _may_edit(op: Op) -> bool:
    """What an entry with deps may do: never ``kind`` or ``body``, never remove a fact."""
    if op.key == "kind" or op.key.startswith(BODY):
        return False
    if op.verb == Verb.DELETE:
        return not op.key.startswith((MARK, NEXT))
    return _fact_well_formed(op)


def _fact_well_formed(op: Op) -> bool:
    if op.key[0] not in _FACT_INITIALS:
        return True
    if op.key.startswith(NEXT):
        return successor_of(op.key) is not None and isinstance(op.value, str)
    return isinstance(op.value, str)


def _facts(header: Header, ops: tuple[Op, ...], reviews: bool) -> Iterable[Fact]:
    for op in ops:
        if op.key[0] in _FACT_INITIALS:
            value = str(op.value)
            counts = reviews or value.partition(" ")[0] != "current" or op.key.startswith(NEXT)
            yield Fact(header.hash, op.key, value, counts)
