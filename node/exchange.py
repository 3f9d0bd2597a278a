"""What serving peers and pulling from them have in common: who may read, and what peers told.

1. Rights are asked of the agent's statements at every use; nothing here remembers one.
2. What peers told lives in memory: after a start a peer is "unknown" until it speaks.
3. Every table is bounded by the peers and by the agents that a hello may name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from crdt.entry import LogId
from crdt.log import Tip, Vector
from crdt.vector import vector_digest
from keys.address import Address
from keys.authority import Authority
from keys.errors import StoreError
from keys.ids import AgentId, DeviceId
from keys.limits import ADDRESSES_MAX, AGENTS_PER_HELLO_MAX, STARTS_MAX
from memory.peers import Source
from memory.store import AgentStore
from node.clones import Clones, is_start_of
from node.core import NodeCore
from node.handle import AgentHandle
from node.reachable import plain_host
from sync.frames import Announce, StatementsChanged
from sync.messages import VERSIONS, Hello, SharedAgent, Start
from sync.plan import holds
from sync.reasons import Missing

TURN_SILENCE_S: Final = 10.0
TURN_LOOK_S: Final = 1.0


@dataclass(slots=True)
class Counters:
    """What went over the network since the start: entries pulled and served, bytes both ways."""

    pulled: int = 0
    served: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Told:
    """What one peer last told of one agent, and what we could not take of it."""

    vector: Vector | None = None
    vector_digest: bytes | None = None
    statements_digest: bytes | None = None
    shared: bool = False
    refused: dict[LogId, Missing] = field(default_factory=dict)
    forged: set[bytes] = field(default_factory=set)  # statements whose signatures are not true
    reason: Missing | None = None

    def set_vector(self, vector: Vector) -> None:
        """The peer's whole vector."""
        self.vector = vector
        self.vector_digest = vector_digest(vector)

    def set_digests(self, vector: bytes, statements: bytes) -> None:
        """What a hello says; a vector that it contradicts is not known any more."""
        if vector != self.vector_digest:
            self.vector, self.vector_digest = None, vector
        self.statements_digest = statements

    def note(self, news: Announce | StatementsChanged) -> None:
        """What an announcement says."""
        if isinstance(news, StatementsChanged):
            self.statements_digest = news.digest
        elif self.vector is None:
            self.vector_digest = None
        elif not holds(self.vector, news.log, news.tip):
            self._grow(news.log, news.tip)

    def _grow(self, log: LogId, tip: Tip) -> None:
        assert self.vector is not None
        tips = self.vector.get(log, [])
        if len(tips) > 1:  # which branch it continues only a pull tells
            self.vector, self.vector_digest = None, None
            return
        self.set_vector(self.vector | {log: [tip]})


class Meeting(StrEnum):
    """How a start of a peer follows the one that spoke before."""

    SAME = "same"
    NEW = "new"
    AGAIN = "again"  # an earlier one speaks after a later one: two clones are up (S-A7)


@dataclass(slots=True)
class PeerState:
    """What this node knows of one peer since its start.

    ``linked`` tells that we reach it, ``watching`` how many watches it has open with us.
    """

    agents: dict[AgentId, Told] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)  # the last that spoke is the last
    linked: bool = False
    watching: int = 0
    cloned: bool = False
    error: str | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a live connection, whoever made it."""
        return self.linked or self.watching > 0

    def told(self, agent: AgentId) -> Told:
        """What it told of an agent; empty at first."""
        found = self.agents.get(agent)
        if found is None:
            if len(self.agents) >= 2 * AGENTS_PER_HELLO_MAX:
                self.agents.pop(next(iter(self.agents)))
            found = self.agents[agent] = Told()
        return found

    def met(self, start: Start) -> Meeting:
        """Take note of a start of the peer that speaks, and compare it with those before."""
        if self.starts and self.starts[-1].nonce == start.nonce:
            return Meeting.SAME
        again = any(s.nonce == start.nonce for s in self.starts)
        others = [s for s in self.starts if s.nonce != start.nonce]
        first = not self.starts
        self.starts = [*others, start][-STARTS_MAX:]
        if first:
            return Meeting.SAME
        if not again:
            self.cloned = False  # it may be the one that a person chose; two that go on show again
        return Meeting.AGAIN if again else Meeting.NEW

    def copies(self) -> tuple[Start, ...]:
        """What to tell the peer of its clones; nothing as long as there are none."""
        return tuple(s for s in self.starts if s.proof) if self.cloned else ()


class AgentTurn:
    """Who pulls an agent: one peer's answer at a time, unless it has fallen silent."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now_s = monotonic_s
        self._free = asyncio.Event()
        self._free.set()
        self._moved_s = 0.0
        self._holders = 0

    def moved(self) -> None:
        """The one whose turn it is gets on."""
        self._moved_s = self._now_s()

    async def __aenter__(self) -> AgentTurn:
        while self._holders and self._now_s() - self._moved_s < TURN_SILENCE_S:
            try:
                async with asyncio.timeout(TURN_LOOK_S):
                    await self._free.wait()
            except TimeoutError:
                continue
        self._holders += 1
        self._free.clear()
        self.moved()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._holders -= 1
        if not self._holders:
            self._free.set()


class Exchange:
    """The state that both halves share."""

    def __init__(self, core: NodeCore, addresses: Callable[[], tuple[Address, ...]]) -> None:
        self.core = core
        self.counters = Counters()
        self._addresses = addresses
        self._peers: dict[DeviceId, PeerState] = {}
        self._turns: dict[AgentId, AgentTurn] = {}
        self.clones = Clones(core)
        self.on_hello: Callable[[DeviceId, Hello], None] = lambda _device, _hello: None
        self.on_start: Callable[[DeviceId], None] = lambda _device: None
        self.on_clones: Callable[[DeviceId], None] = lambda _device: None

    def peer(self, device: DeviceId) -> PeerState:
        """What is known of a peer; empty at first."""
        return self._peers.setdefault(device, PeerState())

    def forget(self, device: DeviceId) -> None:
        """It is no peer any more."""
        self._peers.pop(device, None)

    def turn(self, agent: AgentId) -> AgentTurn:
        """The turn at pulling an agent."""
        found = self._turns.get(agent)
        if found is None:
            found = self._turns[agent] = AgentTurn(self.core.clock.monotonic_s)
        return found

    def may_read(self, handle: AgentHandle, device: DeviceId) -> bool:
        """Whether a device may be served this agent now (R26)."""
        now_ms = self.core.clock.now_us() // 1000
        return handle.store.authority.holds_device(device, "read", now_ms).held

    def readable(self, device: DeviceId) -> list[AgentHandle]:
        """The agents here that a device may read."""
        return [h for h in self.core.agents.all() if self.may_read(h, device)]

    def note_own(self, handle: AgentHandle, store: AgentStore, log: LogId, seq: int) -> None:
        """Somebody holds ``log`` up to ``seq``: a doubt, if it is ours and we lack that (S-A2).

        To be called in the store's thread, before what it tells of is appended.
        """
        if log.device != self.core.device:
            return
        row = store.logs.row(log)
        if row is not None and row.tip.seq >= seq:
            return
        writing = handle.author.own_incarnation()
        if writing is None:
            return  # this file was never written to: it is not one that was restored
        if row is not None and log.incarnation != writing:
            return  # we left that log for a new one: its tail comes back, and that is all
        if handle.doubt_from_peer(log.incarnation, seq):
            self.core.journal.warning("restore.peer", agent=handle.agent, seq=seq)

    async def compare_own(self, handle: AgentHandle, theirs: Vector) -> None:
        """Look for more of our own log in a peer's vector."""
        own = {log: max(t).seq for log, t in theirs.items() if t and log.device == self.core.device}

        def compare(store: AgentStore) -> None:
            for log, seq in own.items():
                self.note_own(handle, store, log, seq)

        if own:
            await handle.read(compare)

    async def hello_for(self, device: DeviceId) -> Hello:
        """What to tell a peer of ourselves."""
        await self.clones.begin()
        shared = []
        readable = [] if device == self.core.device else self.readable(device)
        for handle in readable[:AGENTS_PER_HELLO_MAX]:
            digests = await handle.read(lambda s: (s.vector_digest(), s.statements_digest()))
            shared.append(SharedAgent(handle.agent, *digests))
        return Hello(
            versions=VERSIONS,
            device_name=await self.core.ownership.device_name(),
            boot_nonce=self.core.boot_nonce,
            clock_ms=self.core.clock.now_us() // 1000,
            addresses=self._addresses(),
            agents=tuple(shared),
            proof=self.clones.proof,
            copies=self.peer(device).copies(),
        )

    async def met(
        self, device: DeviceId, hello: Hello, offset_ms: int, *, at: str | None, caller: str | None
    ) -> None:
        """Take note of a peer's hello: where it is, and how it stands with each agent.

        ``at`` is the address where it answered; of one that called us ``caller`` is the host.
        """
        if device == self.core.device:
            await self.clones.met_ourselves(hello.boot_nonce, at or caller or "")
            return
        state = self.peer(device)
        self._note_start(device, state, hello, at or caller or "")
        if hello.copies:
            await self.clones.told(hello.copies, device)
        named = {a.agent for a in hello.agents}
        for agent, told in state.agents.items():
            told.shared = agent in named
        for shared in hello.agents:
            told = state.told(shared.agent)
            told.shared = True
            told.set_digests(shared.vector_digest, shared.statements_digest)
        now_us = self.core.clock.now_us()
        places = [str(a) for a in hello.addresses] + ([at] if at is not None else [])
        if caller is not None and hello.addresses:
            places.append(str(Address(plain_host(caller), hello.addresses[0].port)))
        try:
            await self.core.db.run(lambda db: db.peers.seen(device, at, offset_ms, now_us))
            await self._store(device, hello, places[:ADDRESSES_MAX], now_us)
        except StoreError as exc:  # on a full disk we still serve, and say how things stand
            self.core.journal.warning("peer.not_noted", peer=device, code=exc.code)

    def _note_start(self, device: DeviceId, state: PeerState, hello: Hello, at: str) -> None:
        proof = hello.proof if is_start_of(device, hello.boot_nonce, hello.proof) else b""
        place = str(hello.addresses[0]) if hello.addresses else at
        match state.met(Start(hello.boot_nonce, proof, place)):
            case Meeting.NEW:
                self.on_start(device)
            case Meeting.AGAIN if not state.cloned:
                state.cloned = True
                self.core.journal.warning("peer.cloned", peer=device)
                self.on_clones(device)

    async def _store(self, device: DeviceId, hello: Hello, now: Sequence[str], now_us: int) -> None:
        peer = await self.core.db.run(lambda db: db.peers.get(device))
        if peer is None:
            return
        stored = [a.address for a in peer.addresses if a.source is Source.STORED]
        places = merged(now, stored)
        if set(places) != set(stored):
            await self.core.db.run(
                lambda db: db.peers.replace_addresses(device, Source.STORED, places, now_us)
            )
        if hello.device_name != peer.name and peer.removed_us is None:
            await self.core.db.run(lambda db: db.peers.set_name(device, hello.device_name))


def removals(authority: Authority, device: DeviceId) -> frozenset[bytes]:
    """Ids of the statements that took ``read`` from a device: it may have those (R25)."""
    owners = {s.body["owner"] for s in authority.valid("certify") if s.body["device"] == device}
    revoked = {
        bytes(s.id)
        for s in authority.valid("revoke")
        if "read" in s.body["rights"] and s.body["subject"] in {bytes(device), *owners}
    }
    ended = {bytes(s.id) for s in authority.valid("decertify") if s.body["device"] == device}
    return frozenset(revoked | ended)


def merged(told: Sequence[str], stored: Sequence[str]) -> list[str]:
    """The addresses to keep: those told now, and earlier ones of hosts that were not told."""
    hosts = {Address.parse(a).host for a in told}
    kept = [a for a in stored if a not in told and Address.parse(a).host not in hosts]
    return [*dict.fromkeys(told), *kept][:ADDRESSES_MAX]
