"""The fold written out from RULES.md: from everything held to which entries materialise.

Slow on purpose. Nothing depends on an order of arrival: the inputs are sets (entries with the
payloads present, statements, fingerprint keys). What RULES.md leaves open is decided as follows.

1. ``waiting`` and ``held`` are one reason; what is wrong with an entry's deps as such shows only
   when they all materialise.
2. The facts of a frozen entry count when its payload is well-formed; it cannot be regenerated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from crdt.document import DocumentError, RecordDocument
from crdt.entry import Header, PayloadKind, actor_id, derived_id, is_author_bound, is_derived
from crdt.fingerprint import FingerprintKey
from crdt.payload import (
    ENGINE,
    Op,
    OpsPayload,
    Scalar,
    TombstonePayload,
    Verb,
    decode_ops,
    decode_tombstone,
    engine_of,
)
from keys.errors import BadEncoding
from keys.limits import PAST_ENTRIES_MAX, RECORD_BYTES
from keys.statements import Statement
from tests.reference.places import Held, Places

OWNER_KEYS = ("body.entity", "body.file", "body.from", "body.to")
LAYERS = ("day", "week", "month", "year", "decade", "century", "millennium")


@dataclass(frozen=True)
class Fact:
    """R11: one put of ``mark.*`` or ``next.*``."""

    entry: bytes
    key: str
    value: str
    counts: bool

    @property
    def successor(self) -> bytes | None:
        """The record that a ``next`` fact names."""
        return bytes.fromhex(self.key[5:]) if self.key.startswith("next.") else None

    @property
    def word(self) -> str:
        """The word of a ``mark`` fact."""
        return self.value.partition(" ")[0] if self.key.startswith("mark.") else ""


def owners(put: dict[str, Scalar]) -> set[bytes]:
    """R13: whose part a record is."""
    if put.get("kind") not in ("property", "relation", "section"):
        return set()
    found = [put.get(key) for key in OWNER_KEYS]
    return {v for v in found if isinstance(v, bytes) and len(v) == RECORD_BYTES}


class Fold(Places):
    """``fold(entries, statements, keys)``."""

    def __init__(
        self,
        agent: bytes,
        entries: Iterable[Held],
        statements: Iterable[Statement],
        keys: Iterable[FingerprintKey],
    ) -> None:
        super().__init__(agent, entries, statements)
        self.keys = list(keys)
        self.reasons: dict[bytes, str | None] = {}
        self.ops: dict[bytes, OpsPayload] = {}
        for record in self.records:
            self._judge(record)

    @cached_property
    def records(self) -> dict[bytes, list[Held]]:
        """Every record with the entries that are operations on it."""
        out: dict[bytes, list[Held]] = {}
        for e in self.all.values():
            if not e.apart:
                out.setdefault(bytes(e.header.record), []).append(e)
        return {record: self._in_order(entries) for record, entries in out.items()}

    def _in_order(self, entries: list[Held]) -> list[Held]:
        """Entries of a record by (record time, hash), each after those it builds on (R14)."""
        todo = sorted(entries, key=lambda e: (self.times[e.hash], e.hash))
        out: list[Held] = []
        while todo:
            waits = {e.hash for e in todo}
            ready = next(e for e in todo if waits.isdisjoint(map(bytes, e.header.deps)))
            todo.remove(ready)
            out.append(ready)
        return out

    # -- tombstones ------------------------------------------------------------------------------

    @cached_property
    def tombstones(self) -> list[tuple[Held, TombstonePayload]]:
        """The tombstones that are effective (R30, R35), those ahead of their chain included."""
        out = []
        for e in [*self.all.values(), *self.ahead]:
            if e.header.payload_kind != PayloadKind.TOMBSTONE:
                continue
            assert e.payload is not None, "a tombstone travels with its payload"
            stone = decode_tombstone(e.payload)
            counts = e.hash in self.rights.kept or self.place(e).inside
            if counts and bytes(stone.record) not in self.everlasting:
                out.append((e, stone))
        return out

    @cached_property
    def everlasting(self) -> set[bytes]:
        """R35: what a tombstone cannot name: a tombstone, a layer or an opening."""
        stones = {
            bytes(e.header.record)
            for e in self.all.values()
            if e.header.payload_kind == PayloadKind.TOMBSTONE
        }
        layers = {bytes(derived_id(self.agent, "layer", name.encode())) for name in LAYERS}
        return stones | layers | {bytes(RECORD_BYTES)}

    @cached_property
    def erased(self) -> set[bytes]:
        """The records that effective tombstones erase."""
        return {bytes(stone.record) for e, stone in self.tombstones if self.erases(e)}

    @cached_property
    def named_ahead(self) -> set[bytes]:
        """R30: the records that tombstones ahead of their chain withhold."""
        return {bytes(stone.record) for e, stone in self.tombstones if not self.erases(e)}

    def erases(self, e: Held) -> bool:
        """R30: the tombstone's place in the chain is verified, or a revocation names it."""
        return e.opening is None or e.hash in self.rights.kept

    # -- entries ---------------------------------------------------------------------------------

    def causes(self, entries: Iterable[bytes]) -> set[bytes]:
        """The causal past of entries of one record, themselves included."""
        out: set[bytes] = set()
        todo = list(entries)
        while todo:
            at = todo.pop()
            if at not in out and at in self.all:
                out.add(at)
                todo += map(bytes, self.all[at].header.deps)
        return out

    def _judge(self, record: bytes) -> None:
        """R5: the reason of every entry of a record, or None."""
        document = RecordDocument()
        for e in self.records[record]:
            reason = self._reason(e)
            if reason is None and (wrong := self._make(e, document)):
                reason, document = wrong, self._document(self.records[record], self.reasons)
            self.reasons[e.hash] = reason

    def _reason(self, e: Held) -> str | None:
        header, payload = e.header, e.payload
        if (reason := self.place(e).reason) is not None:
            return reason
        if bytes(header.record) in self.erased:
            return "erased"
        if payload is None:
            return "payload_nowhere"
        if header.payload_kind != PayloadKind.OPS or not _engine_known(payload):
            return "needs_upgrade"
        if not self.well_formed(e):
            return "malformed"
        siblings = {x.hash for x in self.records[bytes(header.record)]}
        deps = {bytes(d) for d in header.deps}
        if not deps <= siblings or any(self.reasons[d] is not None for d in deps):
            return "waiting"
        if any(self.causes([d]) & (deps - {d}) for d in deps):  # R6
            return "malformed"
        return "malformed" if len(self.causes(deps)) > PAST_ENTRIES_MAX else None

    def well_formed(self, e: Held) -> bool:
        """Whether the operations of an entry may stand where they stand (R6, R9-R11)."""
        assert e.payload is not None
        try:
            self.ops[e.hash] = payload = decode_ops(e.payload)
        except BadEncoding:
            return False
        if not all(_may_stand(op, creates=not e.header.deps) for op in payload.ops):
            return False
        return bool(e.header.deps) or self._may_create(e.header, payload.ops)

    def _may_create(self, header: Header, ops: tuple[Op, ...]) -> bool:
        """R9, R10: an id bound to this place, or derived from (kind, key)."""
        put = {op.key: op.value for op in ops}
        kind, key = put.get("kind"), put.get("body.key")
        if not isinstance(kind, str) or not kind:
            return False
        if not is_derived(header.record):
            return is_author_bound(header.record, self.agent, header.log, header.seq)
        return isinstance(key, bytes) and header.record == derived_id(self.agent, kind, key)

    def _make(self, e: Held, document: RecordDocument) -> str:
        """Regenerate an entry's change: empty, or the reason why that fails (R5, R6)."""
        payload, header = self.ops[e.hash], e.header
        actor = actor_id(self.agent, header.log, header.seq, payload.salt)
        deps = frozenset(self.ops[bytes(d)].change_hash for d in header.deps)
        try:
            made = document.apply(deps, actor, payload.ops)
        except DocumentError:
            return "malformed"
        if made is None:
            return "malformed"
        return "" if made == payload.change_hash else "mismatch"

    def _document(
        self, entries: Iterable[Held], reasons: dict[bytes, str | None]
    ) -> RecordDocument:
        document = RecordDocument()
        for e in entries:
            if reasons.get(e.hash, "") is None:
                self._make(e, document)
        return document

    # -- one record ------------------------------------------------------------------------------

    def materialised(self, record: bytes) -> list[Held]:
        """The entries of a record that materialise, each after those it builds on."""
        return [e for e in self.records.get(record, ()) if self.reasons[e.hash] is None]

    def merged(self, entries: Iterable[Held]) -> dict[str, Scalar]:
        """The merged document of entries (R10)."""
        return self._document(entries, self.reasons).values()

    def canonical(self, entries: Iterable[Held]) -> dict[str, Scalar]:
        """R10: what the creation with the smallest hash put; empty without a creation."""
        creations = [e.hash for e in entries if not e.header.deps]
        return {op.key: op.value for op in self.ops[min(creations)].ops} if creations else {}

    def sources(self, record: bytes) -> set[bytes]:
        """R10: what a record was derived from, the union over all its creations."""
        out = set()
        for e in self.materialised(record):
            if not e.header.deps:
                put = self.canonical([e])
                value = put.get("body.derived_from")
                out |= owners(put)
                if isinstance(value, bytes) and len(value) % RECORD_BYTES == 0:
                    out |= {value[i : i + 16] for i in range(0, len(value), RECORD_BYTES)}
        return out

    def facts(self, entries: Iterable[Held]) -> list[Fact]:
        """R11: the facts in force, that no lift about their record names."""
        lifts = [s for s in self.rights.of("lift") if self.rights.valid(s)]
        lifted = {
            (bytes(s.body["record"]), bytes(f[0]), f[1]) for s in lifts for f in s.body["facts"]
        }
        return [
            f
            for f in self.put_facts(entries)
            if (bytes(self.all[f.entry].header.record), f.entry, f.key) not in lifted
        ]

    def put_facts(self, entries: Iterable[Held]) -> list[Fact]:
        """R11, R7: the facts that entries put; of frozen ones those that withhold."""
        out = []
        for e in entries:
            place = self.place(e)
            frozen = place.reason == "frozen" and place.inside
            if not (self.reasons[e.hash] is None or (frozen and self._readable(e))):
                continue
            for op in self.ops[e.hash].ops:
                if op.key.startswith(("mark.", "next.")):
                    fact = Fact(e.hash, op.key, str(op.value), place.reviews)
                    if not frozen or fact.word == "deprecated" or fact.successor is not None:
                        out.append(fact)
        return out

    def _readable(self, e: Held) -> bool:
        known = e.header.payload_kind == PayloadKind.OPS and e.payload is not None
        return known and _engine_known(e.payload or b"") and self.well_formed(e)


def _engine_known(payload: bytes) -> bool:
    try:
        return engine_of(payload) <= ENGINE
    except BadEncoding:
        return True


def _may_stand(op: Op, *, creates: bool) -> bool:
    """R10, R11: what an operation may touch, and the form of facts."""
    once = op.key == "kind" or op.key.startswith("body.")
    if op.verb == Verb.DELETE:
        return not creates and not once and not op.key.startswith(("mark.", "next."))
    if once and not creates:
        return False
    if op.key.startswith("next."):
        digits = op.key[5:]
        is_id = len(digits) == 2 * RECORD_BYTES and set(digits) <= set("0123456789abcdef")
        return is_id and isinstance(op.value, str)
    return not op.key.startswith("mark.") or isinstance(op.value, str)
