"""One connection to one peer: what it shares is pulled, at first and then as it announces it.

1. Statements come before entries; entries are pulled only from a peer that may read the agent
   itself (R25).
2. A peer is asked by id only for what it says it shares, or what by our own statements it may read:
   asking tells nobody of an agent it has no right to.
3. An agent nobody here accepted is noted as offered, and no entry of it is fetched.
4. One agent's trouble is that agent's: what the peer refuses, or what is wrong with one log, stops
   nothing else. What breaks the connection, or the store, ends the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from keys.address import Address
from keys.authority import Authority
from keys.errors import DiskFullError, ReadOnlyError, UnreachableError
from keys.ids import AgentId
from keys.signing import SigningKey
from memory.nodedb import KnownAgent
from node.exchange import Exchange
from node.handle import AgentHandle
from node.peerlink import PeerClient, PeerRefusedError
from node.receiving import (
    Pull,
    Source,
    first_statements,
    pull_payloads,
    pull_statements,
    reason_of,
)
from node.sharing import (
    collect,
    founding_in,
    is_ours,
    keys_in_grants,
    open_boxes,
    spread,
)
from sync.announce import News, Turns, Watcher
from sync.errors import StalledError
from sync.messages import (
    NOT_FOUND,
    RECOVER_PATH,
    WATCH_PATH,
    Hello,
    agreed_version,
    code_of_refusal,
)
from sync.outcome import Outcome
from sync.pull import CUT
from sync.reasons import Missing
from sync.recovery import RecoverReply, RecoverRequest

OFFERS_MAX: Final = 1_024
RECEIPT_S: Final = 0.25  # of quiet after news, then the peer is told what we hold now
DISK_LOOK_S: Final = 5.0  # between two looks at a disk that is full
GONE: Final = code_of_refusal(NOT_FOUND.body)


class Conversation:
    """Pulling from one peer at the address where it answered."""

    def __init__(self, exchange: Exchange, client: PeerClient, address: Address) -> None:
        self._exchange, self._core = exchange, exchange.core
        self._client, self._address = client, address
        self._state = exchange.peer(client.device)
        self._sources: dict[AgentId, Source] = {}
        self._turns = Turns()
        self._due = asyncio.Event()
        self._ask_again = False
        self._no_room: set[AgentId] = set()  # to be pulled when the disk has room

    # -- as long as it lasts ---------------------------------------------------------------------

    async def watch(self, opened: asyncio.Event) -> None:
        """Read announcements until the peer ends the watch; sets ``opened`` once it is open."""
        watcher = Watcher()
        async with self._client.stream(self._address, WATCH_PATH, None) as chunks:
            async for chunk in chunks:
                opened.set()
                for news in watcher.feed(chunk):
                    self._heard(news)

    def _heard(self, news: News) -> None:
        told = self._state.told(news.agent)
        told.shared = True
        told.note(news)
        self._want([news.agent])

    def _want(self, agents: Iterable[AgentId]) -> None:
        for agent in agents:
            self._turns.want(agent)
        self._due.set()

    def ask_again(self) -> None:
        """Say hello soon: something changed that it may have an answer to."""
        self._ask_again = True
        self._due.set()

    async def work(self, idle: Callable[[], None]) -> None:
        """Pull what is due, for ever; after news, tell the peer what we hold now.

        ``idle`` is called whenever nothing is due.
        """
        news = False
        while True:
            self._due.clear()
            if self._ask_again:
                self._ask_again = False
                await self.hello()
            agent = self._turns.begin()
            if agent is not None:
                try:
                    news = await self.sync_agent(agent) > 0 or news
                finally:
                    self._turns.done(agent)
                continue
            idle()
            if await self._wait(RECEIPT_S if news else DISK_LOOK_S if self._no_room else None):
                continue
            if news:
                news = False
                await self.hello()
            elif await asyncio.to_thread(self._core.agents.room.may_grow):
                self._want(self._no_room)

    async def _wait(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._due.wait()
        except TimeoutError:
            return False
        return True

    async def hello(self) -> Hello:
        """Tell the peer what we hold, and hear what it holds; what differs becomes due."""
        device = self._client.device
        sent_ms = self._core.clock.now_us() // 1000
        reply = await self._client.hello(self._address, await self._exchange.hello_for(device))
        await self.heard_hello(reply, sent_ms)
        return reply

    async def heard_hello(self, reply: Hello, sent_ms: int) -> None:
        """Take a hello in; ``sent_ms`` is when ours was sent. Raises ``IncompatibleError``."""
        agreed_version(reply.versions)
        now_ms = self._core.clock.now_us() // 1000
        offset_ms = reply.clock_ms - (sent_ms + now_ms) // 2
        await self._exchange.met(
            self._client.device, reply, offset_ms, at=str(self._address), caller=None
        )
        self._want(self.shared(reply))

    def shared(self, reply: Hello) -> list[AgentId]:
        """The agents to ask the peer for (rule 2)."""
        named = [a.agent for a in reply.agents]
        ours = [h.agent for h in self._exchange.readable(self._client.device)]
        return [*named, *(a for a in ours if a not in set(named))]

    async def recover(self, key: SigningKey) -> RecoverReply:
        """Ask with a recovery key for the statements of its owner's agents."""
        asked = RecoverRequest.sign(key, self._core.device, self._client.device)
        body = await self._client.post(self._address, RECOVER_PATH, asked.encode())
        return RecoverReply.decode(body)

    # -- one agent -------------------------------------------------------------------------------

    async def sync_agent(self, agent: AgentId) -> int:
        """Pull one agent until there is nothing more to get; how many entries came."""
        async with self._exchange.turn(agent):
            if not await asyncio.to_thread(self._core.agents.room.may_grow):
                return self._wait_for_room(agent)
            self._no_room.discard(agent)
            try:
                handle = self._core.agents.get(agent) or await self._first_contact(agent)
                return 0 if handle is None else await self._pull(handle)
            except PeerRefusedError as exc:
                if exc.refusal != GONE:
                    raise
                told = self._state.told(agent)
                told.shared, told.reason = False, Missing.NOT_GRANTED
                return 0
            except (DiskFullError, ReadOnlyError):
                return self._wait_for_room(agent)

    def _wait_for_room(self, agent: AgentId) -> int:
        """Nothing is pulled while the disk is full (S-F10); ``work`` looks again."""
        self._state.told(agent).reason = Missing.DISK_FULL
        self._no_room.add(agent)
        return 0

    async def _pull(self, handle: AgentHandle) -> int:
        source = self._source(handle.agent)
        new, more = 0, True
        while more and await self._may_pull(source, handle):
            came, more = await self._entries(source, handle)
            new += came
        if source.told.shared and self._exchange.may_read(handle, self._client.device):
            await pull_payloads(source, self._address, handle)
        return new

    async def _may_pull(self, source: Source, handle: AgentHandle) -> bool:
        """Statements first, before every round; then whether there is anything to pull (rule 1)."""
        await self._statements(source, handle)
        told = source.told
        if not told.shared:
            return False
        if not self._exchange.may_read(handle, self._client.device):
            told.reason = Missing.NOT_GRANTED
            return False
        mine = await handle.read(lambda store: store.vector_digest())
        theirs = told.vector_digest
        return theirs is None or source.rounds.may_pull(mine, theirs)

    def _source(self, agent: AgentId) -> Source:
        found = self._sources.get(agent)
        if found is None:
            told = self._state.told(agent)
            told.refused.clear()
            found = self._sources[agent] = Source(self._exchange, self._client, told)
        return found

    async def _statements(self, source: Source, handle: AgentHandle) -> None:
        told = source.told
        mine, waiting = await handle.read(lambda s: (s.statements_digest(), s.waiting_for_key))
        theirs = told.statements_digest if told.shared else mine
        if told.shared and not waiting and theirs in (mine, source.statements_at):
            return
        if not told.shared and source.statements_at == mine:
            return
        new = await pull_statements(source, self._address, handle, proof=not told.shared)
        source.statements_at = theirs
        if new:
            source.rounds.changed()
        # What it let us have beyond the removals tells that it lets us read.
        told.shared = told.shared or self._may_read(handle)

    def _may_read(self, handle: AgentHandle) -> bool:
        return self._exchange.may_read(handle, self._core.device)

    async def _entries(self, source: Source, handle: AgentHandle) -> tuple[int, bool]:
        """One round: how many entries came, and whether another one is to follow."""
        pull = Pull(source, self._address, handle)
        outcome = await pull.run()
        source.told.reason = reason_of(outcome)
        if outcome.error == CUT:
            raise UnreachableError("the peer broke off in the middle of an answer")
        if outcome.error == GONE:
            raise PeerRefusedError(GONE)
        return pull.new, await self._goes_on(source, handle, outcome, pull.new)

    async def _goes_on(
        self, source: Source, handle: AgentHandle, outcome: Outcome, new: int
    ) -> bool:
        mine = await handle.read(lambda store: store.vector_digest())
        try:
            source.rounds.finished(outcome, new, (mine, source.told.vector_digest or b""))
        except StalledError as exc:
            self._core.journal.warning(
                "sync.stalled", agent=handle.agent, peer=self._client.device, code=exc.code
            )
            return False
        return outcome.more and new > 0

    # -- an agent that is not here ---------------------------------------------------------------

    async def _first_contact(self, agent: AgentId) -> AgentHandle | None:
        """The handle of an agent that is ours or accepted, made now; None for any other."""
        known = {k.agent: k for k in await self._core.db.run(lambda db: db.agents())}
        row = known.get(agent)
        if row is not None and (row.left_us is not None or not row.accepted):
            self._state.told(agent).reason = Missing.NOT_ACCEPTED
            return None
        page = await first_statements(self._exchange, self._client, self._address, agent)
        founding = founding_in(agent, page.statements)
        if founding is None:
            return None
        authority = Authority(agent, page.statements)
        if row is None and not await is_ours(self._core, authority):
            await self._offered(agent, str(founding.body["name"]), known.values())
            return None
        keys = await asyncio.to_thread(
            lambda: [
                *open_boxes(self._core.key, page.keys),
                *keys_in_grants(self._core.key, page.statements),
            ]
        )
        wanted = set(authority.key_commitments())
        now_us = self._core.clock.now_us()
        await self._core.db.run(lambda db: db.set_agent(agent, accepted=True, now_us=now_us))
        handle = await self._core.agents.create(
            agent, page.statements, [k for k in keys if k.commitment in wanted]
        )
        self._core.journal.info("agent.added", agent=agent, peer=self._client.device)
        await collect(self._core, page.statements)
        await spread(self._core)
        return handle

    async def _offered(self, agent: AgentId, name: str, known: Iterable[KnownAgent]) -> None:
        self._state.told(agent).reason = Missing.NOT_ACCEPTED
        if sum(not k.accepted for k in known) >= OFFERS_MAX:
            return
        now_us = self._core.clock.now_us()
        await self._core.db.run(lambda db: db.set_agent(agent, accepted=False, now_us=now_us))
        await self._core.db.run(lambda db: db.name_agent(agent, name))
        self._core.journal.info("agent.offered", agent=agent, peer=self._client.device)
