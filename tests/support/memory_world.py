"""An agent on several devices: real stores over real files, synchronised without a network.

A pull goes the way of the protocol: statements, fingerprint keys, tombstones ahead of their chains,
runs, payloads that are nowhere. Nothing is random but what ``seeded_randomness`` seeds.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from crdt.chain import verify_run, verify_single
from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from crdt.log import AheadTombstone, Stretch
from crdt.payload import put
from keys.ids import RecordId
from keys.signing import DeviceKey, OwnerKey, SigningKey
from keys.statements import Statement, agent_of, parse, sign
from memory.authoring import Author
from memory.cutting import cuts_of, tombstones_past
from memory.door import open_connection
from memory.forgetting import forget, reach_of
from memory.lifting import lift_targets
from memory.notes import Note
from memory.query import Filters, Seen, get, search
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import Written, change, mark, remember, revise, tag_ops, untag_ops
from tests.support.author import certify, device_key, founding, owner_key, seeded
from tests.support.founding import position_of, replace_key

START_US = 1_700_000_000_000_000
STEP_US = 1_000_000
HOUR_US = 3_600_000_000
RUN_BYTES = 256 * 1024
DRAWS_RANDOM_BYTES = (
    "authoring",
    "files",
    "kinds",
    "lifting",
    "moving",
    "notes",
    "reviewing",
    "writing",
)


@contextlib.contextmanager
def seeded_randomness(seed: int) -> Iterator[random.Random]:
    """Salts, marks and incarnations come from ``seed``, so that a run can be repeated."""
    source = random.Random(seed)
    with contextlib.ExitStack() as stack:
        for module in DRAWS_RANDOM_BYTES:
            stack.enter_context(mock.patch(f"memory.{module}.random_bytes", source.randbytes))
        yield source


class Node:
    """One device's store, in a directory of its own, and the verbs a person or agent has there."""

    def __init__(self, world: World, name: str, key: DeviceKey, *, offset_us: int = 0) -> None:
        self.world, self.name, self.key, self.offset_us = world, name, key, offset_us
        self.home = world.root / name
        self.home.mkdir(exist_ok=True)
        self.keys: set[FingerprintKey] = set()
        self._open()

    def _open(self) -> None:
        connection = open_connection(self.home / "agent.db")
        if not self.world.durable:
            connection.execute("PRAGMA synchronous=OFF")
        self.store = AgentStore(connection, self.world.agent, self.keys, self.key.device)
        self.author = Author(self.store, self.key)

    def reopen(self) -> None:
        """Close the file and open it again, as a restart does."""
        self.store.connection.close()
        self._open()

    def close(self) -> None:
        self.store.connection.close()

    @property
    def now_us(self) -> int:
        """This device's clock; every look at it moves the world on by a second."""
        self.world.clock_us += STEP_US
        return self.world.clock_us + self.offset_us

    @property
    def scope(self) -> Scope:
        """A person's view: every state."""
        return Scope(self.world.agent, every_state=True)

    @property
    def readers(self) -> Scope:
        """An agent's view: what is live."""
        return Scope(self.world.agent, every_state=False)

    @property
    def digest(self) -> str:
        return self.store.digest_text()

    def holds(self, right: str) -> bool:
        """Whether this device holds a right, as far as it knows."""
        return self.store.authority.holds_device(self.key.device, right).held

    def learn(self, keys: set[FingerprintKey]) -> None:
        """Take fingerprint keys."""
        if not keys <= self.keys:
            self.keys |= keys
            self.author.stamp(self.now_us)
            self.store.set_keys(self.keys)

    # -- writing ---------------------------------------------------------------------------------

    def write(self, note: Note, via: Via = Via.LOCAL) -> Written:
        """Remember a note, and tell whether it made a record."""
        return remember(self.author, note, via, self.now_us)

    def remember(self, text: str, **fields: Any) -> RecordId:
        """Remember a text; the record that holds it."""
        return self.write(Note(text, **fields)).record

    def revise(self, record: RecordId, text: str, reason: str = "put better") -> RecordId:
        """Replace a record by one with another text."""
        written = revise(self.author, record, text, reason, via=Via.LOCAL, now_us=self.now_us)
        return written.record

    def retire(self, record: RecordId, reason: str = "no longer so") -> str:
        return mark(self.author, record, "deprecated", reason, via=Via.LOCAL, now_us=self.now_us)

    def keep(self, record: RecordId) -> str:
        return mark(self.author, record, "current", "", via=Via.LOCAL, now_us=self.now_us)

    def tag(self, record: RecordId, *tags: str) -> None:
        ops = tag_ops(tags, self.seen(record).tags)
        change(self.author, record, ops, via=Via.LOCAL, now_us=self.now_us)

    def untag(self, record: RecordId, *tags: str) -> None:
        ops = untag_ops(tags, self.seen(record).tags)
        change(self.author, record, ops, via=Via.LOCAL, now_us=self.now_us)

    def move(self, record: RecordId, layer: str) -> None:
        ops = [put("field.layer", layer)]
        change(self.author, record, ops, via=Via.LOCAL, now_us=self.now_us)

    def forget(self, *records: RecordId, with_sources: bool = False) -> list[RecordId]:
        """Erase records with all they reach; what is left. The files are cleaned by ``clean``."""
        reach = reach_of(self.store, records)
        return forget(
            self.author,
            reach,
            with_sources=with_sources,
            reason="asked to",
            via=Via.LOCAL,
            now_us=self.now_us,
        )

    def clean(self) -> bool:
        return self.store.clean()

    # -- what only a person may do ---------------------------------------------------------------

    def act(self, kind: str, body: dict[str, Any], signer: SigningKey | None = None) -> Statement:
        """Sign a statement with the heads this node has seen, and fold it."""
        body = body | {"wall_ms": self.now_us // 1000}
        made = sign(
            signer or self.world.owner,
            kind,
            body,
            agent=self.world.agent,
            after=self.store.authority.heads(),
        )
        self.author.stamp(self.now_us)
        self.store.add_statements([made], self.now_us)
        return made

    def lift(self, record: RecordId) -> int:
        """Let the value of a record return; how many facts and tombstones were lifted."""
        targets = lift_targets(self.store, record)
        for target in targets:
            facts = [[entry, key] for entry, key in target.facts]
            body = {"record": target.record, "facts": facts, "tombstones": [*target.tombstones]}
            self.act("lift", body)
        return sum(len(t.facts) + len(t.tombstones) for t in targets)

    def approve(self, *records: RecordId) -> Statement:
        """Approve exactly the heads that are here."""
        items = [[r, self.seen(r).detail["heads"]] for r in records]
        return self.act("approve", {"items": items})

    def reject(self, *records: RecordId) -> Statement:
        items = [[r, self.seen(r).detail["heads"]] for r in records]
        return self.act("reject", {"items": items})

    def grant(self, subject: Node | OwnerKey, *rights: str) -> Statement:
        """Give rights to a device, or to all devices of an owner."""
        kind = "device" if isinstance(subject, Node) else "owner"
        body = {
            "subject_kind": kind,
            "subject": subject.key.public if isinstance(subject, Node) else subject.public,
            "rights": sorted(rights),
            "recovery": b"",
            "sealed": [],
            "until_ms": 0,
        }
        return self.act("grant", body)

    def revoke(
        self,
        subject: Node | OwnerKey,
        *rights: str,
        since_us: int | None = None,
        keep: bool = True,
    ) -> Statement:
        """Take rights away; entries after ``since_us`` (here) are past the cut."""
        if isinstance(subject, Node):
            kind, public, devices = "device", subject.key.public, [subject.key.public]
        else:
            kind, public = "owner", subject.public
            devices = self.store.authority.certified(public)
        fresh: set[FingerprintKey] = set()
        if "read" in rights:
            self.world.key_count += 1
            fresh = {FingerprintKey(seeded(f"fingerprint key {self.world.key_count}"))}
            self.keys |= fresh
            self.store.keys.extend(fresh)
        kept = tombstones_past(self.store, devices, since_us) if keep else []
        body = {
            "subject_kind": kind,
            "subject": public,
            "rights": sorted(rights),
            "cuts": cuts_of(self.store, devices, since_us),
            "keep": kept,
            "keeps": [],
            "replaces": [],
            "key": next(iter(fresh)).commitment if fresh else b"",
        }
        return self.act("revoke", body)

    # -- reading ---------------------------------------------------------------------------------

    def seen(self, record: RecordId) -> Seen:
        """A record in whatever state."""
        return get(self.store, self.scope, record, now_us=self.now_us)

    def state(self, record: RecordId) -> str:
        return self.seen(record).state_at(self.now_us)

    def search(self, query: str, limit: int = 50, **filters: Any) -> list[RecordId]:
        """The ids that an agent's search finds."""
        found = search(
            self.store, self.readers, query, Filters(**filters), limit=limit, now_us=self.now_us
        )
        return [seen.record for seen in found]

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the tables hold."""
        return self.store.connection.execute(sql, values).fetchall()


class World:
    """One agent of Alice's, and the devices that hold it or may come to hold it."""

    def __init__(self, root: Path, *devices: str, durable: bool = False) -> None:
        self.root, self.clock_us, self.key_count = root, START_US, 0
        self.durable = durable  # False: commits do not wait for the disk
        self.owner = owner_key("alice")
        secret = FingerprintKey(seeded("fingerprint key 0"))
        found = replace_key(founding(self.owner), self.owner, secret)
        self.agent = agent_of(found)
        self.keys = {secret}
        self.statements = [found]
        self.nodes: dict[str, Node] = {}
        for name in devices:
            self.certify(name)
        for name in devices:
            self.join(name)

    def certify(self, name: str) -> None:
        """Make a device one of Alice's."""
        heads = [bytes(self.statements[-1].id)]
        self.statements.append(certify(self.owner, device_key(name), heads))

    def join(self, name: str, *, offset_us: int = 0) -> Node:
        """A device of Alice's that holds the statements and the key, and no entry yet."""
        node = self.stranger(name, offset_us=offset_us)
        node.learn(self.keys)
        node.store.add_statements(self.statements, node.now_us)
        return node

    def stranger(self, name: str, *, offset_us: int = 0) -> Node:
        """A device that holds nothing: what it may have comes with a pull."""
        node = Node(self, name, device_key(name), offset_us=offset_us)
        self.nodes[name] = node
        return node

    def late(self, name: str) -> Node:
        """A device of Alice's that joins now and pulls everything from the others."""
        others = list(self.nodes.values())
        self.certify(name)
        others[0].store.add_statements(self.statements, others[0].now_us)
        node = self.join(name)
        for other in others:
            self.tell(other, others[0])
            self.pull(node, other)
        return node

    def everywhere(self, late: str = "c") -> list[Node]:
        """Every device, quiet, and one that joins only now."""
        self.settle()
        self.late(late)
        return list(self.nodes.values())

    def pull(
        self,
        dst: Node,
        src: Node,
        *,
        commits: int | None = None,
        ahead: bool = True,
        keys: bool = True,
    ) -> int:
        """``dst`` pulls from ``src``, as far as both allow it; how many entries were new.

        With ``commits`` it breaks off after so many; ``keys`` False: they do not arrive yet.
        """
        if not src.store.authority.holds_device(dst.key.device, "read").held:
            return 0
        self.tell(dst, src)
        known = dst.store.authority
        if not known.holds_device(src.key.device, "read").held:
            return 0
        if keys:
            dst.learn(src.keys)
        if ahead:
            self.pull_ahead(dst, src)
        new = self._pull_runs(dst, src, commits)
        self._pull_payloads(dst, src)
        return new

    def tell(self, dst: Node, src: Node) -> int:
        """Statements alone."""
        missing = src.store.statements_missing(frozenset(dst.store.statement_ids()))
        dst.author.stamp(dst.now_us)
        return dst.store.add_statements([parse(d, s) for d, s in missing], dst.now_us)

    def pull_ahead(self, dst: Node, src: Node) -> int:
        """Tombstones ahead of their chains."""
        found = src.store.tombstones_beyond(dst.store.vector(), 4096)
        pairs = [
            AheadTombstone(verify_single(self.agent, t), verify_single(self.agent, o))
            for t, o in found
        ]
        dst.author.stamp(dst.now_us)
        return dst.store.add_ahead(pairs)

    def _pull_runs(self, dst: Node, src: Node, commits: int | None) -> int:
        new, left = 0, 10**9 if commits is None else commits
        for stretch in src.store.plan(dst.store.vector()):
            rest: Stretch | None = stretch
            while rest and left:
                run, rest = src.store.read_run(rest, RUN_BYTES if commits is None else 1)
                verified = verify_run(self.agent, [e.raw for e in run.entries])
                dst.author.stamp(dst.now_us)
                new += dst.store.append_runs([verified], dst.now_us).new
                left -= 1
        return new

    def _pull_payloads(self, dst: Node, src: Node) -> int:
        found = src.store.payloads(dst.store.wants(256))
        dst.author.stamp(dst.now_us)
        return dst.store.add_payloads(found, dst.now_us) if found else 0

    def settle(self, *names: str, rounds: int = 12) -> int:
        """Pull in all directions until nobody has anything new; the rounds it took."""
        nodes = [self.nodes[n] for n in names] or list(self.nodes.values())
        for done in range(rounds):
            before = [position_of(n.store, n.keys) for n in nodes]
            for dst in nodes:
                for src in nodes:
                    if src is not dst:
                        self.pull(dst, src)
            if [position_of(n.store, n.keys) for n in nodes] == before:
                return done
        raise AssertionError(f"not quiet after {rounds} rounds")

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()
