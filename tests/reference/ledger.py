"""Statements and logs of one agent as key-holding devices make them, and orders of their arrival.

A ledger is a set. All signatures are real, and everything in it passes the checks at the border
(``statements.parse`` and ``verify_run``): what is wrong with it is for the fold to find.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from crdt.chain import RawEntry, VerifiedEntry, VerifiedRun, verify_run
from crdt.entry import (
    NO_PREV,
    NO_RECORD,
    Header,
    LogId,
    PayloadKind,
    Via,
    make_header,
)
from crdt.fingerprint import FingerprintKey
from crdt.log import AheadTombstone
from crdt.payload import encode_open
from keys import statements
from keys.ids import AgentId, EntryHash, Incarnation, RecordId
from keys.recovery import recovery_hash
from keys.signing import ENTRY_DOMAIN, DeviceKey, OwnerKey, SigningKey
from keys.statements import OWNER_KINDS, Statement
from tests.reference.drafts import Draft, Drafts

DEVICES = tuple(DeviceKey(bytes([i]) * 32) for i in range(1, 6))
OWNERS = tuple(OwnerKey(bytes([i]) * 32) for i in range(11, 15))
LATER_OWNERS = tuple(OwnerKey(bytes([i]) * 32) for i in range(15, 19))
RECOVERIES = tuple(SigningKey(bytes([i]) * 32) for i in range(21, 26))
KEYS = tuple(FingerprintKey(bytes([i]) * 32) for i in (31, 32))
FOUNDER = OWNERS[0]
NAMES = (
    {o.public: f"owner{i}" for i, o in enumerate(OWNERS)}
    | {d.public: f"device{i}" for i, d in enumerate(DEVICES)}
    | {o.public: f"later{i}" for i, o in enumerate(LATER_OWNERS)}
    | {r.public: f"recovery{i}" for i, r in enumerate(RECOVERIES)}
)
SINGLY = (PayloadKind.OPEN, PayloadKind.TOMBSTONE)


@cache
def proof(device: int, owner: int) -> bytes:
    """A device's signature over (owner, device)."""
    return statements.device_proof(DEVICES[device], OWNERS[owner].public)


@cache
def certificate(device: int, owner: int, wall_ms: int) -> Statement:
    """An owner's first certificate of a device, the same for every agent."""
    body = {
        "owner": OWNERS[owner].public,
        "device": DEVICES[device].public,
        "name": "laptop",
        "proof": proof(device, owner),
        "wall_ms": wall_ms,
    }
    return statements.sign(OWNERS[owner], "certify", body, agent=b"", after=[])


@dataclass(frozen=True)
class Commit:
    """One commit of one log: its run, and the hash of the entry that it follows."""

    run: VerifiedRun
    before: bytes

    @property
    def log(self) -> LogId:
        """The log that it belongs to."""
        return self.run.log

    @property
    def last(self) -> Header:
        """The header of its last entry."""
        return self.run.entries[-1].header

    @property
    def end(self) -> bytes:
        """The hash of its last entry."""
        return bytes(self.last.hash)


@dataclass
class Delivery:
    """One thing that a node receives."""

    runs: list[VerifiedRun] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    ahead: list[AheadTombstone] = field(default_factory=list)


class Ledger:
    """One agent's statements and commits, and how they came about (``story``)."""

    def __init__(self, rng: random.Random, *, recovery: bytes = b"", checked: bool = True) -> None:
        self.rng, self.checked = rng, checked
        self.statements: list[Statement] = []
        self.commits: list[Commit] = []
        self.lost: set[bytes] = set()  # entries whose payload no node has
        self.absent: set[bytes] = set()  # statements that no node has
        self.unchained: set[bytes] = set()  # commits of which only tombstones arrive, ahead (R30)
        self.keys = [KEYS[0]]
        self._events: list[Statement | tuple[Header, Draft]] = []
        self.agent = AgentId(bytes(32))
        body = {
            "owner": FOUNDER.public,
            "name": "muse",
            "nonce": rng.randbytes(16),
            "recovery": recovery,
            "key": self.keys[0].commitment,
            "wall_ms": 1_000,
        }
        self.agent = statements.agent_of(self.sign(FOUNDER, "found", body, after=[]))
        self.drafts = Drafts(rng, self.agent, self.keys)

    # -- statements ------------------------------------------------------------------------------

    def sign(
        self, key: SigningKey, kind: str, body: dict[str, Any], after: list[bytes]
    ) -> Statement:
        """Make one statement and note it."""
        agent = b"" if kind in statements.AGENTLESS_KINDS else bytes(self.agent)
        return self.say(statements.sign(key, kind, body, agent=agent, after=after))

    def say(self, made: Statement) -> Statement:
        """Note a statement."""
        self.statements.append(made)
        self._events.append(made)
        return made

    @property
    def story(self) -> list[str]:
        """What happened, a line for each statement and entry."""
        there = {bytes(e.header.hash) for c in self.commits for e in c.run.entries}
        there |= {bytes(s.id) for s in self.statements}
        return [_line(e) for e in self._events if _id(e) in there]

    def heads(self, some: Sequence[Statement]) -> list[bytes]:
        """The heads of what somebody has seen who has seen ``some``."""
        by_id = {bytes(s.id): s for s in self.statements}
        seen: set[bytes] = set()
        todo = [bytes(s.id) for s in some]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += by_id[at].after
        followed = {a for i in seen for a in by_id[i].after}
        return sorted(seen - followed)[:16]

    def level(self, owner: bytes) -> list[Statement]:
        """The statements of one owner himself."""
        return [s for s in self.statements if s.kind in OWNER_KINDS and s.body["owner"] == owner]

    # -- logs ------------------------------------------------------------------------------------

    def open_log(self, device: DeviceKey, heads: list[bytes], log: LogId | None = None) -> Commit:
        """A new log, or a second opening of one."""
        log = log or LogId(device.device, Incarnation(self.rng.randbytes(8)))
        opening = Draft(NO_RECORD, PayloadKind.OPEN, encode_open(heads), note="open", deps=[])
        opening.seen = heads
        return self.commit(log, None, [opening], 1_000)

    def commit(
        self,
        log: LogId,
        before: Commit | None,
        drafts: Sequence[Draft],
        wall_ms: int,
        shared: Sequence[VerifiedEntry] = (),
    ) -> Commit:
        """Sign a commit that follows ``before``; ``shared`` entries begin it (a fork inside)."""
        key = next(d for d in DEVICES if d.public == log.device)
        at = shared[-1].header.hash if shared else EntryHash(before.end) if before else NO_PREV
        seq = (before.last.seq if before else 0) + len(shared)
        made = list(shared)
        for i, draft in enumerate(drafts):
            left = len(drafts) - 1 - i
            header = make_header(
                self.agent,
                log,
                seq + 1 + i,
                at,
                record=RecordId(draft.record),
                payload_kind=draft.kind,
                payload=draft.payload,
                deps=[EntryHash(d) for d in draft.deps],
                wall_ms=wall_ms,
                via=Via.LOCAL,
                commit_left=left,
            )
            at = header.hash
            self.drafts.written(draft, header)
            signed = left == 0 or draft.kind in SINGLY
            signature = key.sign(ENTRY_DOMAIN, at) if signed else b""
            made.append(VerifiedEntry(header, draft.payload, signature))
            self._events.append((header, draft))
        prev = EntryHash(before.end) if before else NO_PREV
        first = made[0].header.seq
        run = VerifiedRun(log, first, prev, tuple(made))
        if self.checked:
            raw = [RawEntry(e.header.data, e.payload, e.signature) for e in made]
            assert verify_run(self.agent, raw) == run
        self.commits.append(Commit(run, bytes(prev)))
        return self.commits[-1]

    def of_log(self, log: LogId) -> list[Commit]:
        """The commits of one log."""
        return [c for c in self.commits if c.log == log]

    # -- arrival ---------------------------------------------------------------------------------

    def deliveries(self, rng: random.Random) -> Iterator[Delivery]:
        """Everything in one random order; of each log the commits after those they follow."""
        said = [s for s in self.statements if s.id not in self.absent]
        chained = [c for c in self.commits if c.end not in self.unchained]
        todo: list[Statement | Commit] = [*said, *chained]
        rng.shuffle(todo)
        style = rng.random()
        if style < 0.3:
            kind = Commit if style < 0.15 else Statement
            todo.sort(key=lambda item: isinstance(item, kind))
        ends = rng.choice((0.03, 0.08, 0.2))  # how many things come together
        here = {bytes(NO_PREV)}
        batch = Delivery()
        while todo:
            ready = next(t for t in todo if isinstance(t, Statement) or t.before in here)
            todo.remove(ready)
            if isinstance(ready, Statement):
                batch.statements.append(ready)
            else:
                here.add(ready.end)
                self._serve(ready, batch, rng)
                if rng.random() < 0.1:
                    batch.ahead += self._some_ahead(todo, rng)
            if rng.random() < ends:
                yield batch
                batch = Delivery()
        yield batch

    def _serve(self, commit: Commit, batch: Delivery, rng: random.Random) -> None:
        served = self._served(commit.run, rng)
        if batch.runs and _follows(served, batch.runs[-1]) and rng.random() < 0.7:
            served = _joined(batch.runs.pop(), served)
        batch.runs.append(served)

    def _some_ahead(
        self, todo: Sequence[Statement | Commit], rng: random.Random
    ) -> list[AheadTombstone]:
        """Tombstones that come before their chain does (R30)."""
        later = [c for c in todo if isinstance(c, Commit)]
        return self._ahead(rng.choice(later)) if later else []

    def ahead(self) -> list[AheadTombstone]:
        """The tombstones whose chain arrives nowhere; what payloads there are is settled before."""
        return [a for c in self.commits if c.end in self.unchained for a in self._ahead(c)]

    def _ahead(self, commit: Commit) -> list[AheadTombstone]:
        opening = self.of_log(commit.log)[0].run.entries[0]
        return [
            AheadTombstone(e, opening)
            for e in commit.run.entries
            if e.header.payload_kind == PayloadKind.TOMBSTONE
        ]

    def _served(self, run: VerifiedRun, rng: random.Random) -> VerifiedRun:
        """A run as some node serves it: some payloads are missing."""
        entries = tuple(
            replace(e, payload=None)
            if e.header.payload_kind not in SINGLY
            and (bytes(e.header.hash) in self.lost or rng.random() < 0.03)
            else e
            for e in run.entries
        )
        return replace(run, entries=entries)


def _follows(run: VerifiedRun, before: VerifiedRun) -> bool:
    last = before.entries[-1].header
    return run.log == before.log and (run.first_seq, run.prev) == (last.seq + 1, last.hash)


def _joined(run: VerifiedRun, following: VerifiedRun) -> VerifiedRun:
    """Two runs as one; of the signatures inside it those of single entries stay (R4)."""
    inner = tuple(
        e if e.header.payload_kind in SINGLY else replace(e, signature=b"") for e in run.entries
    )
    return replace(run, entries=(*inner, *following.entries))


def founding_recovery() -> bytes:
    """What the founding statements of the worlds commit to (R20)."""
    return recovery_hash(RECOVERIES[0].public)


def _id(event: Statement | tuple[Header, Draft]) -> bytes:
    return bytes(event.id if isinstance(event, Statement) else event[0].hash)


def _line(event: Statement | tuple[Header, Draft]) -> str:
    if isinstance(event, Statement):
        after = describe(list(event.after))
        signer, body = describe(event.signer), describe(event.body)
        return f"{event.id.hex()[:6]} {event.kind} by {signer} after {after} {body}"
    header, draft = event
    log = f"{describe(bytes(header.device))}/{header.incarnation.hex()[:4]}"
    return (
        f"{header.hash.hex()[:6]} {log} {header.seq} after {header.prev.hex()[:6]}"
        f" left {header.commit_left} at {header.wall_ms}: {draft.note} {draft.record.hex()}"
        f" on {describe(draft.deps or draft.seen)} "
        + " ".join(f"{'-' if op.verb else ''}{op.key}={describe(op.value)}" for op in draft.ops)
    )


def describe(value: Any) -> str:
    """A value in a line, ids cut to six digits."""
    if isinstance(value, bytes):
        return NAMES.get(value, value.hex()[:6])
    if isinstance(value, dict):
        skip = ("nonce", "proof", "sealed", "name", "key")
        parts = (f"{k}: {describe(v)}" for k, v in value.items() if k not in skip)
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(describe, value)) + "]"
    return str(value)
