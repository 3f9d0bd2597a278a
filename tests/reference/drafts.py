"""What a hostile device writes: entries of every kind, well-formed and not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crdt.document import DocumentError, RecordDocument
from crdt.entry import (
    Header,
    LogId,
    PayloadKind,
    actor_id,
    author_bound_id,
    derived_id,
    tombstone_id,
)
from crdt.fingerprint import FingerprintKey, fingerprints
from crdt.payload import Fingerprint, Op, delete, encode_ops, encode_tombstone, put
from keys import codec
from keys.ids import RecordId

TEXTS = ("bees live on the roof", "Bees live  on the ROOF.", "the key is under the mat", "rain")
KINDS = ("observation",) * 8 + (
    "summary",
    "perspective",
    "property",
    "relation",
    "section",
    "entity",
    "entity",
    "skill",
    "identity",
    "diary",
    "turn",
)


@dataclass
class Draft:
    """An entry before it has a place in a log."""

    record: bytes
    kind: int
    payload: bytes
    deps: list[bytes] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    change: bytes | None = None
    note: str = ""
    seen: list[bytes] = field(default_factory=list)  # statement heads, of an opening
    hash: bytes = b""


class Drafts:
    """Makes entries that build on what was written before in one world."""

    def __init__(self, rng: random.Random, agent: bytes, keys: list[FingerprintKey]) -> None:
        self.rng, self.agent, self.keys = rng, agent, keys
        self.made: dict[bytes, list[Draft]] = {}
        self.facts: list[tuple[bytes, bytes, str]] = []  # record, entry, key
        self.stones: list[Draft] = []
        self.texts: dict[bytes, str] = {}
        self._documents: dict[bytes, RecordDocument] = {}

    def some_record(self) -> bytes:
        """Mostly one that exists."""
        if not self.made or self.rng.random() < 0.04:
            return self.rng.randbytes(16)
        return self.rng.choice(list(self.made))

    def written(self, draft: Draft, header: Header) -> None:
        """Note an entry that got its place."""
        draft.hash = bytes(header.hash)
        if draft.kind == PayloadKind.TOMBSTONE:
            self.stones.append(draft)
        if draft.kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE):
            return
        self.made.setdefault(draft.record, []).append(draft)
        for op in draft.ops:
            if op.key.startswith(("mark.", "next.")):
                self.facts.append((draft.record, draft.hash, op.key))

    def draft(self, log: LogId, seq: int) -> Draft:
        """One entry for a place in a log."""
        roll = self.rng.random()
        if not self.made or roll < 0.34:
            return self.create(log, seq)
        if roll < 0.45:
            return self._create_derived(log, seq)
        if roll < 0.54:
            return self._tombstone()
        if roll < 0.61:
            return self._malformed(log, seq)
        return self._edit(log, seq, self._edit_ops())

    # -- creations -------------------------------------------------------------------------------

    def _creation_ops(self, kind: str) -> list[Op]:
        rng = self.rng
        ops = [
            put("kind", kind),
            put("body.text", rng.choice(TEXTS)),
            put("body.category", rng.choice(("fact", "fact", "fact", "rule"))),
            put(
                "body.provenance",
                rng.choice(("user", "user", "user", "agent", "agent", "tool", "import", "Web ")),
            ),
            put("field.layer", rng.choice(("day", "week"))),
            put("field.weight", rng.choice((0.5, 1.0))),
        ]
        if kind in ("property", "relation", "section"):
            keys = {"property": ("entity",), "relation": ("from", "to"), "section": ("file",)}
            ops += [put(f"body.{key}", self.some_record()) for key in keys[kind]]
            ops.append(put("body.name", rng.choice(("likes", "Likes ", "home"))))
        if kind == "entity" and rng.random() < 0.5:
            ops.append(put("field.title", rng.choice(TEXTS)))
        if rng.random() < 0.3:
            ops.append(put("tag." + rng.choice("ab"), rng.randbytes(8)))
        if rng.random() < 0.25:
            sources = [self.some_record() for _ in range(rng.randint(1, 2))]
            ops.append(put("body.derived_from", b"".join(sources)))
        if rng.random() < 0.05:
            ops.append(put("body.imported", rng.randbytes(16)))
        if rng.random() < 0.05:
            ops.append(self._mark())
        return ops

    def create(self, log: LogId, seq: int) -> Draft:
        """A creation bound to its place."""
        record = author_bound_id(self.agent, log, seq, self.rng.choice((0, 1_000)))
        return self.ops(record, log, seq, self._creation_ops(self.rng.choice(KINDS)), [])

    def _create_derived(self, log: LogId, seq: int) -> Draft:
        kind = self.rng.choice(("summary", "layer", "skill"))
        key = self.rng.choice((b"day", b"x"))
        record = derived_id(self.agent, kind, key)
        ops = [*self._creation_ops(kind), put("body.key", key)]
        return self.ops(record, log, seq, ops, [])

    # -- edits -----------------------------------------------------------------------------------

    def _mark(self) -> Op:
        words = ("deprecated no", "deprecated", "current kept", "current", "current", "maybe later")
        return put("mark." + self.rng.randbytes(2).hex(), self.rng.choice(words))

    def _edit_ops(self) -> list[Op]:
        rng = self.rng
        roll = rng.random()
        if roll < 0.40:
            return [self._mark()]
        if roll < 0.62:
            return [put("next." + self.some_record().hex(), rng.choice(("", "better")))]
        if roll < 0.72:
            return [put("tag." + rng.choice("abc"), rng.randbytes(8))]
        if roll < 0.80:
            return [delete("tag." + rng.choice("abc"))]
        layer = put("field.layer", rng.choice(("day", "week", "month")))
        weight = put("field.weight", rng.choice((0.25, 0.5, 1.0, 2.0)))
        return rng.choice(([layer], [weight], [layer, weight], [layer, self._mark()]))

    def replace(self, log: LogId, seq: int, record: bytes, successor: bytes) -> Draft:
        """The fact that another record replaces one."""
        fact = put("next." + successor.hex(), "better")
        return self.ops(record, log, seq, [fact], self._deps(record))

    def _edit(self, log: LogId, seq: int, ops: list[Op]) -> Draft:
        record = self.rng.choice(list(self.made))
        return self.ops(record, log, seq, ops, self._deps(record))

    def _deps(self, record: bytes) -> list[bytes]:
        """Heads of what some device has seen of a record: often all, sometimes less."""
        made = self.made[record]
        some = (
            made
            if self.rng.random() < 0.5
            else self.rng.sample(made, self.rng.randint(1, len(made)))
        )
        before = {d.hash: set(d.deps) for d in made}
        chosen = {d.hash for d in some}
        seen: set[bytes] = set()
        todo = [d for h in chosen for d in before[h]]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += before.get(at, ())
        return sorted(chosen - seen)

    def ops(self, record: bytes, log: LogId, seq: int, ops: list[Op], deps: list[bytes]) -> Draft:
        """Operations on a record, with the change that they make where all of ``deps`` do."""
        salt = self.rng.randbytes(16)
        changes = {d.hash: d.change for d in self.made.get(record, ())}
        needed = [changes.get(d) for d in deps]
        ordered = sorted(ops, key=lambda op: op.key.encode())
        change = None
        if None not in needed:
            document = self._documents.get(record) or RecordDocument()
            try:
                actor = actor_id(self.agent, log, seq, salt)
                change = document.apply(frozenset(c for c in needed if c), actor, ordered)
                self._documents[record] = document
            except DocumentError:
                self._documents.pop(record, None)
        payload = encode_ops(salt, ordered, change or self.rng.randbytes(32))
        return Draft(record, PayloadKind.OPS, payload, deps, ordered, change)

    # -- tombstones and what is wrong ------------------------------------------------------------

    def _tombstone(self) -> Draft:
        rng = self.rng
        named = self.some_record()
        if rng.random() < 0.1:
            named = rng.choice(
                [
                    bytes(derived_id(self.agent, "layer", b"day")),
                    bytes(16),
                    *(s.record for s in self.stones),
                ]
            )
        prints = []
        if rng.random() < 0.6:
            texts = [
                str(op.value)
                for d in self.made.get(named, ())
                for op in d.ops
                if op.key == "body.text"
            ]
            prints = fingerprints(self.keys, rng.choice(texts or TEXTS))
        return self._stone(named, prints)

    def tombstone_of(self, named: bytes, texts: Sequence[str]) -> Draft:
        """A tombstone that lists the fingerprints of ``texts``."""
        return self._stone(named, sorted(p for t in texts for p in fingerprints(self.keys, t)))

    def _stone(self, named: bytes, prints: list[Fingerprint]) -> Draft:
        payload = encode_tombstone(RecordId(named), "person", prints)
        record = tombstone_id(self.agent, RecordId(named))
        return Draft(bytes(record), PayloadKind.TOMBSTONE, payload, note=f"erase {named.hex()}")

    def _malformed(self, log: LogId, seq: int) -> Draft:
        ways: list[Callable[[LogId, int], Draft]] = [
            self._wrong_change,
            self._wrong_author,
            self._ancestor_deps,
            self._foreign_deps,
            self._missing_deps,
            self._body_later,
            self._deletes_mark,
            self._no_effect,
            self._unknown_engine,
            self._unknown_kind,
            self._not_ops,
            self._no_kind,
        ]
        way = self.rng.choice(ways)
        draft = way(log, seq)
        draft.note = way.__name__
        return draft

    def _wrong_change(self, log: LogId, seq: int) -> Draft:
        draft = self._edit(log, seq, [self._mark()])
        draft.payload = encode_ops(self.rng.randbytes(16), draft.ops, self.rng.randbytes(32))
        return draft

    def _wrong_author(self, log: LogId, seq: int) -> Draft:
        record = author_bound_id(self.agent, log, seq + 1, 0)
        return self.ops(record, log, seq, self._creation_ops("observation"), [])

    def _ancestor_deps(self, log: LogId, seq: int) -> Draft:
        record = self.rng.choice(list(self.made))
        deps = {d.hash for d in self.made[record]}
        return self.ops(record, log, seq, [self._mark()], sorted(deps)[:4])

    def _foreign_deps(self, log: LogId, seq: int) -> Draft:
        record = self.rng.choice(list(self.made))
        other = self.rng.choice([d.hash for made in self.made.values() for d in made])
        return self.ops(record, log, seq, [self._mark()], [other])

    def _missing_deps(self, log: LogId, seq: int) -> Draft:
        record = self.rng.choice(list(self.made))
        deps = sorted({self.made[record][-1].hash, self.rng.randbytes(32)})
        return self.ops(record, log, seq, [self._mark()], deps)

    def _body_later(self, log: LogId, seq: int) -> Draft:
        return self._edit(log, seq, [put("body.text", "another text")])

    def _deletes_mark(self, log: LogId, seq: int) -> Draft:
        facts = [f for f in self.facts if f[0] in self.made]
        key = self.rng.choice(facts)[2] if facts else "mark.none"
        return self._edit(log, seq, [delete(key)])

    def _no_effect(self, log: LogId, seq: int) -> Draft:
        return self._edit(log, seq, [delete("tag.never")])

    def _unknown_engine(self, log: LogId, seq: int) -> Draft:
        draft = self._edit(log, seq, [self._mark()])
        draft.payload = codec.encode([9, self.rng.randbytes(16), "later", 1])
        return draft

    def _unknown_kind(self, log: LogId, seq: int) -> Draft:
        draft = self._edit(log, seq, [self._mark()])
        return Draft(draft.record, 7, self.rng.randbytes(20), draft.deps)

    def _not_ops(self, log: LogId, seq: int) -> Draft:
        draft = self._edit(log, seq, [self._mark()])
        garbage = self.rng.choice((self.rng.randbytes(30), codec.encode([1, 2, 3])))
        return Draft(draft.record, PayloadKind.OPS, garbage, draft.deps)

    def _no_kind(self, log: LogId, seq: int) -> Draft:
        record = author_bound_id(self.agent, log, seq, 0)
        return self.ops(record, log, seq, self._creation_ops("observation")[1:], [])
