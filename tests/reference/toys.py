"""Ledgers written by hand, for one rule each; ``agree`` feeds them to stores in many orders."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from crdt.entry import LogId, author_bound_id
from crdt.payload import Op, Scalar, put
from keys.ids import RecordId
from keys.signing import DeviceKey, SigningKey
from keys.statements import Statement
from tests.reference.compare import differences
from tests.reference.drafts import Draft
from tests.reference.ledger import (
    DEVICES,
    FOUNDER,
    OWNERS,
    Commit,
    Ledger,
    certificate,
    founding_recovery,
    proof,
)
from tests.reference.nodes import node
from tests.reference.states import Believed

Make = Callable[[LogId, int], Draft]
ORDERS = 10
A, B, C = DEVICES[:3]
ADA, BEN = OWNERS[1:3]


class Toy(Ledger):
    """A ledger whose founder has certified device A."""

    def __init__(self) -> None:
        super().__init__(random.Random(7), recovery=founding_recovery())
        self.say(certificate(0, 0, 1_000))

    # -- statements ------------------------------------------------------------------------------

    def act(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        by: SigningKey = FOUNDER,
        after: Sequence[Statement] | None = None,
        wall_ms: int = 1_000,
    ) -> Statement:
        """One statement; without ``after`` its signer has seen everything said so far."""
        seen = self.heads(self.statements if after is None else after)
        return self.sign(by, kind, body | {"wall_ms": wall_ms}, seen)

    def certify(
        self, device: DeviceKey, owner: SigningKey, by: SigningKey | None = None
    ) -> Statement:
        """A certificate, after the owner's own statements."""
        number = next(i for i, o in enumerate(OWNERS) if o is owner)
        body = {
            "owner": owner.public,
            "device": device.public,
            "name": "x",
            "proof": proof(DEVICES.index(device), number),
        }
        return self.act("certify", body, by=by or owner, after=self.level(owner.public))

    def decertify(
        self,
        device: DeviceKey,
        owner: SigningKey,
        *cuts: Commit,
        by: SigningKey | None = None,
    ) -> Statement:
        """A decertification that cuts logs of this agent at the ends of commits."""
        rows = [[bytes(self.agent), bytes(c.log.incarnation), c.last.seq, c.end] for c in cuts]
        body = {"owner": owner.public, "device": device.public, "cuts": rows}
        return self.act("decertify", body, by=by or owner, after=self.level(owner.public))

    def grant(self, subject: SigningKey, *rights: str, **options: Any) -> Statement:
        """A grant; options: recovery, until_ms, by, after."""
        body = _subject(subject) | {
            "rights": sorted(rights),
            "recovery": options.pop("recovery", b""),
            "sealed": [],
            "until_ms": options.pop("until_ms", 0),
        }
        return self.act("grant", body, **options)

    def revoke(self, subject: SigningKey, *rights: str, **options: Any) -> Statement:
        """A revocation; options: cuts (commits or rows), keep, keeps, replaces, by, after."""
        cuts = [
            [bytes(c.log.device), bytes(c.log.incarnation), c.last.seq, c.end]
            if isinstance(c, Commit)
            else c
            for c in options.pop("cuts", ())
        ]
        body = _subject(subject) | {
            "rights": sorted(rights),
            "cuts": cuts,
            "keep": sorted(options.pop("keep", ())),
            "keeps": sorted(bytes(s.id) for s in options.pop("keeps", ())),
            "replaces": sorted(bytes(s.id) for s in options.pop("replaces", ())),
            "key": b"",
        }
        return self.act("revoke", body, **options)

    def judge(self, kind: str, record: bytes, *heads: bytes, **options: Any) -> Statement:
        """An approval or a rejection."""
        return self.act(kind, {"items": [[record, sorted(heads)]]}, **options)

    def lift(
        self,
        record: bytes,
        facts: Sequence[tuple[bytes, str]] = (),
        tombstones: Sequence[bytes] = (),
        **options: Any,
    ) -> Statement:
        """A lift of facts or of tombstones."""
        rows = [[entry, key] for entry, key in facts]
        body = {"record": record, "facts": rows, "tombstones": list(tombstones)}
        return self.act("lift", body, **options)

    def settle(self, at: Commit, **options: Any) -> Statement:
        """A settling of a fork at the end of a commit."""
        place = {"device": at.log.device, "incarnation": at.log.incarnation, "hash": at.end}
        body = {k: bytes(v) for k, v in place.items()}
        return self.act("settle", body | {"seq": at.last.seq}, **options)

    # -- logs ------------------------------------------------------------------------------------

    def log(self, device: DeviceKey, after: Sequence[Statement] | None = None) -> Commit:
        """A new log, whose opening has seen everything said so far."""
        return self.open_log(device, self.heads(self.statements if after is None else after))

    def write(self, before: Commit, *makes: Make, wall_ms: int = 1_000, shared: int = 0) -> Commit:
        """A commit after ``before``; ``shared`` entries are those of the commit already there."""
        there = [c for c in self.commits if c.before == before.end]
        begun = there[0].run.entries[:shared] if shared else ()
        drafts: list[Draft] = []
        for i, make in enumerate(makes):
            drafts.append(make(before.log, before.last.seq + shared + 1 + i))
        return self.commit(before.log, before, drafts, wall_ms, begun)

    def create(
        self, text: str, kind: str = "observation", at: bytes | None = None, **more: Scalar
    ) -> Make:
        """A creation; ``at`` is a derived id.

        ``more`` are further keys, with ``_`` for a dot and ``__`` for itself.
        """
        values: dict[str, Scalar] = {"kind": kind, "body.text": text, "body.provenance": "user"}
        values |= {
            key.replace("__", "-").replace("_", ".", 1).replace("-", "_"): value
            for key, value in more.items()
        }

        def make(log: LogId, seq: int) -> Draft:
            record = at or author_bound_id(self.agent, log, seq, 1_000)
            ops = [put(key, value) for key, value in values.items()]
            return self.drafts.ops(record, log, seq, ops, [])

        return make

    def edit(self, record: bytes, *ops: Op, deps: Sequence[bytes]) -> Make:
        """An edit that builds on ``deps``."""
        return lambda log, seq: self.drafts.ops(record, log, seq, list(ops), sorted(deps))

    def mark(self, record: bytes, value: str, *deps: bytes) -> Make:
        """A mark on a record."""
        return self.edit(record, put("mark.m", value), deps=deps)

    def next(self, record: bytes, successor: bytes, *deps: bytes) -> Make:
        """The fact that another record replaces this one."""
        return self.edit(record, put("next." + successor.hex(), ""), deps=deps)

    def erase(self, record: bytes, *texts: str) -> Make:
        """A tombstone that lists the fingerprints of ``texts``."""
        return lambda _log, _seq: self.drafts.tombstone_of(record, texts)

    # -- the verdict -----------------------------------------------------------------------------

    def agree(self) -> dict[bytes, Believed]:
        """What every node believes, in whatever order things come."""
        stores = [node(self, order) for order in range(ORDERS)]
        found, _, believed = differences(self, stores)
        assert not found, "\n".join([*self.story, *found])
        return believed


def entry(commit: Commit, number: int = 0) -> bytes:
    """The hash of one entry of a commit."""
    return bytes(commit.run.entries[number].header.hash)


def record(commit: Commit, number: int = 0) -> RecordId:
    """The record of one entry of a commit."""
    return commit.run.entries[number].header.record


def _subject(subject: SigningKey) -> dict[str, Any]:
    kind = "device" if isinstance(subject, DeviceKey) else "owner"
    return {"subject_kind": kind, "subject": subject.public}
