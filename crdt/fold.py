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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from crdt.document import DocumentError, RecordDocument
from crdt.entry import Header, PayloadKind, actor_id, derived_id, is_author_bound, is_derived
from crdt.facts import (
    BODY,
    FACT_INITIALS,
    MARK,
    NEXT,
    OWNER_KEYS,
    PART_KINDS,
    Fact,
    Reason,
    RecordFold,
    Step,
    Stored,
    Verdict,
    successor_of,
)
from crdt.payload import ENGINE, Op, OpsPayload, Scalar, Verb, decode_ops, engine_of
from keys.errors import BadEncoding
from keys.ids import EntryHash, RecordId
from keys.limits import DEPS_MAX, PAST_ENTRIES_MAX, RECORD_BYTES


def fold_record(
    agent: bytes, record: RecordId, entries: Iterable[Stored], judge: Callable[[Header], Verdict]
) -> RecordFold:
    """Fold the entries of one record that is not erased."""
    entries = list(entries)
    if len(entries) == 1 and (alone := _fold_alone(agent, record, entries[0], judge)) is not None:
        return alone
    folding = _Folding(agent, record, judge)
    for stored in in_order(entries):
        folding.add(stored)
    return folding.finish()


def _fold_alone(
    agent: bytes, record: RecordId, stored: Stored, judge: Callable[[Header], Verdict]
) -> RecordFold | None:
    """The fold of a record of one creation that materialises, as most do; None for any other."""
    header = stored.header
    verdict = judge(header)
    if verdict.reason is not None or stored.payload is None or header.deps:
        return None
    if header.payload_kind != PayloadKind.OPS:
        return None
    payload = _decode(stored.payload)
    if isinstance(payload, Reason):
        return None
    puts = _creation(agent, record, header, payload)
    if puts is None:
        return None
    actor = actor_id(agent, header.log, header.seq, payload.salt)
    try:
        if RecordDocument().apply(frozenset(), actor, payload.ops) != payload.change_hash:
            return None
    except DocumentError:
        return None
    facts = list(_facts(header, payload.ops, verdict.reviews))
    return RecordFold(
        record,
        creations=[header],
        kind=str(puts["kind"]),
        body={key: value for key, value in puts.items() if key.startswith(BODY)},
        sources=frozenset(sources_of(puts)),
        steps=[Step(header, stored.time_ms, puts, tuple(facts))],
        heads=[header.hash],
        facts=facts,
        verdicts={header.hash: verdict},
    )


@dataclass(frozen=True, slots=True)
class Base:
    """Where the next edit of a record is made: its heads, what is before it, the document there."""

    deps: list[EntryHash]
    past: int  # entries that the edit has in its causal past (R6)
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
    return Base(heads, folding.past_of(heads), folding.out.values, changes, folding.document)


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
    """What a record is made from: ``body.derived_from``, 16 bytes each, and whose part it is."""
    owners = owners_of(body)
    packed = body.get("body.derived_from")
    if not isinstance(packed, bytes) or len(packed) % RECORD_BYTES:
        return owners
    ids = [RecordId(packed[i : i + RECORD_BYTES]) for i in range(0, len(packed), RECORD_BYTES)]
    return ids + owners if owners else ids


def owners_of(body: Mapping[str, Scalar]) -> list[RecordId]:
    """The records that a part belongs to: what ``OWNER_KEYS`` of its creation name."""
    if body.get("kind") not in PART_KINDS:
        return []
    found = [body.get(key) for key in OWNER_KEYS]
    return [RecordId(v) for v in found if isinstance(v, bytes) and len(v) == RECORD_BYTES]


class _Folding:
    """The state of one fold; entries are added after their deps."""

    def __init__(self, agent: bytes, record: RecordId, judge: Callable[[Header], Verdict]) -> None:
        self.agent, self.record, self.judge = agent, record, judge
        self.out = RecordFold(record)
        self.document = RecordDocument()
        self.wary = False  # each change is tried on a copy of the document
        self.clean: RecordDocument | None = None  # the document without the change that is tried
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
        puts = _creation(self.agent, self.record, header, payload)
        if puts is None:
            return False
        self.created[header.hash] = puts
        return True

    def _deps_hold(self, header: Header) -> bool:
        """R6: no dep an ancestor of another; at most ``PAST_ENTRIES_MAX`` entries before."""
        past = 0
        for dep in header.deps:
            past |= self.past[dep]
        if any(past >> self.position[dep] & 1 for dep in header.deps):
            return False
        past |= sum(1 << self.position[dep] for dep in header.deps)
        if past.bit_count() > PAST_ENTRIES_MAX:
            return False
        self.past[header.hash] = past
        return True

    def _regenerate(self, stored: Stored, payload: OpsPayload, verdict: Verdict) -> Reason | None:
        header = stored.header
        deps = frozenset(self.change[dep] for dep in header.deps)
        actor = actor_id(self.agent, header.log, header.seq, payload.salt)
        made, values = self._made(deps, actor, payload)
        if made is None or made != payload.change_hash:
            self._drop()
            return Reason.MALFORMED if made is None else Reason.MISMATCH
        if not self.applied:  # one creation alone reads as what it puts
            values = self.created[header.hash]
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

    def _made(
        self, deps: frozenset[bytes], actor: bytes, payload: OpsPayload
    ) -> tuple[bytes | None, dict[str, Scalar]]:
        """The change that the document takes, and how it then reads; None where it takes none.

        An engine that fails is asked a second time, of a document that was made again: a reason is
        kept, so only what fails each time may be one.
        """
        for _ in range(2):
            try:
                if self.wary:
                    self.clean, self.document = self.document, self.document.copy()
                made = self.document.apply(deps, actor, payload.ops)
                right = made == payload.change_hash and bool(self.applied)
                return made, self._shared(self.document.values()) if right else {}
            except DocumentError:
                self._rebuild()
        return None, {}

    def _drop(self) -> None:
        """Take back the change of an entry that does not count.

        The first time by making the document again; where one such entry is there may be thousands,
        so each later one is tried on a copy (of 4,000 changes: 9 ms, made again: 700 ms).
        """
        if self.wary and self.clean is not None:
            self.document, self.clean = self.clean, None
            return
        self._rebuild()
        self.wary = True

    def _shared(self, values: dict[str, Scalar]) -> dict[str, Scalar]:
        """The same values, those that are as before being the same objects.

        Every step keeps how the record reads; a long text is not to be held once for each.
        """
        before = self.out.values
        for key, value in values.items():
            known = before.get(key)
            if isinstance(known, (str, bytes)) and type(known) is type(value) and known == value:
                values[key] = known
        return values

    def _rebuild(self) -> None:
        """Drop a document that took a change it should not have, or failed; make it again."""
        self.clean = None
        self.document = RecordDocument()
        for deps, actor, ops in self.applied:
            self.document.apply(deps, actor, ops)

    def past_of(self, deps: Iterable[EntryHash]) -> int:
        """How many entries are before one that cites ``deps``."""
        past = 0
        for dep in deps:
            past |= self.past[dep] | 1 << self.position[dep]
        return past.bit_count()

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


def _creation(
    agent: bytes, record: RecordId, header: Header, payload: OpsPayload
) -> dict[str, Scalar] | None:
    """What a well-formed creation of ``record`` puts; None when it is not one (R9, R10)."""
    puts = {}
    for op in payload.ops:
        if op.verb is not Verb.PUT or not _fact_well_formed(op):
            return None
        puts[op.key] = op.value
    kind = puts.get("kind")
    if not isinstance(kind, str) or not kind:
        return None
    if is_derived(record):
        key = puts.get("body.key")
        fits = isinstance(key, bytes) and record == derived_id(agent, kind, key)
    else:
        fits = is_author_bound(record, agent, header.log, header.seq)
    return puts if fits else None


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
    if op.key[0] not in FACT_INITIALS:
        return True
    if op.key.startswith(NEXT):
        return successor_of(op.key) is not None and isinstance(op.value, str)
    return isinstance(op.value, str)


def _facts(header: Header, ops: tuple[Op, ...], reviews: bool) -> Iterable[Fact]:
    for op in ops:
        if op.key[0] in FACT_INITIALS:
            value = str(op.value)
            counts = reviews or value.partition(" ")[0] != "current" or op.key.startswith(NEXT)
            yield Fact(header.hash, op.key, value, counts)
