"""Nodes of one process that meet over real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from keys.tls import certificate_of
from keys.vault import Cost
from memory.peers import NewPeer
from node.clock import SystemClock
from node.core import NodeCore
from node.dispatch import Dispatcher
from node.handle import AgentHandle
from node.home import open_home
from node.journal import Journal
from node.listen import open_listener
from node.network import Network
from node.options import UpOptions
from node.setup import init_home

PASSPHRASE = "correct horse battery"
CHEAP = Cost(ops=1, memory_bytes=8_192)
WAIT_S = 60.0


class OffsetClock(SystemClock):
    """The machine's clocks, of which the one of the day may be wrong."""

    offset_us = 0

    def now_us(self) -> int:
        return super().now_us() + self.offset_us


class Node:
    """A home, and its node while it runs."""

    def __init__(self, path: Path, *, new: bool = True) -> None:
        self.path, self.name = path, path.name
        if new:
            init_home(
                path, name=path.name, owner=None, recovery=True, passphrase=PASSPHRASE, cost=CHEAP
            )
        self.clock = OffsetClock()
        self.lines: list[dict[str, Any]] = []
        self.port = 0
        self.running = False

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Open the home and serve it, at the same port as before."""
        clock = self.clock
        self.journal = Journal(lambda line: self.lines.append(json.loads(line)), clock)
        home = await asyncio.to_thread(open_home, self.path)
        self.core = await NodeCore.open(home, clock, self.journal)
        self.listener = open_listener(f"127.0.0.1:{self.port}", None)
        self.port = self.listener.getsockname()[1]
        self.network = Network(self.core, UpOptions(no_discovery=True), self.listener)
        self.dispatch = Dispatcher(self.core, lambda: self.network)
        await self.network.start(tasks)
        self.running = True

    async def stop(self) -> None:
        """As when the process ends."""
        if self.running:
            self.running = False
            await self.network.stop()
            await self.core.close()
            self.listener.close()
            await asyncio.to_thread(self.journal.close)

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self.network.listen)

    @property
    def device(self) -> str:
        """Its id."""
        return str(self.core.device)

    async def __call__(self, verb: str, **params: Any) -> dict[str, Any]:
        """One verb."""
        return await self.dispatch.call(verb, params)

    def handle(self, agent: str) -> AgentHandle:
        """The handle of an agent by its name."""
        return next(h for h in self.core.agents.all() if h.name == agent)

    def said(self, event: str) -> list[dict[str, Any]]:
        """Lines of the journal."""
        return [line for line in self.lines if line["event"] == event]

    async def knows(self, other: Node) -> None:
        """Enter another node as a peer, as pairing does."""
        ownership = other.core.ownership
        new = NewPeer(
            other.core.device,
            other.name,
            certificate_of(other.core.key),
            await ownership.owner(),
            await ownership.recovery(),
        )
        await self.network._take_peer(new, [other.address])
        await self.network._follow(other.core.device)


@contextlib.asynccontextmanager
async def running(*nodes: Node) -> AsyncIterator[asyncio.TaskGroup]:
    """The nodes while they run; they may be stopped and started in between."""
    async with asyncio.TaskGroup() as tasks:
        for node in nodes:
            await node.start(tasks)
        try:
            yield tasks
        finally:
            for node in nodes:
                await node.stop()


async def befriend(*nodes: Node) -> None:
    """Make each a peer of every other."""
    for one in nodes:
        for other in nodes:
            if other is not one:
                await one.knows(other)


async def pair(opener: Node, joiner: Node, tasks: asyncio.TaskGroup, *, mine: bool = True) -> None:
    """Pair two nodes with a code, over TLS."""
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    given = {"mine": mine, "passphrase": PASSPHRASE} if mine else {}
    opening = tasks.create_task(opener.dispatch.call("pair.open", given, events.put))
    code = (await events.get())["code"]
    await joiner("pair.join", address=opener.address, code=code, mine=mine)
    await opening


async def share(node: Node, agent: str, other: Node, *rights: str) -> None:
    """Grant another node's device rights, and let it accept the agent."""
    await node(
        "grant", agent=agent, subject=other.device, rights=list(rights), passphrase=PASSPHRASE
    )
    await until_true(lambda: offered(other, agent))
    await other("agent.accept", agent=agent, passphrase=PASSPHRASE)
    await equal(agent, node, other)


async def offered(node: Node, agent: str) -> bool:
    """Whether an agent of this name was offered to a node."""
    return any(a["name"] == agent for a in (await node("agent.list"))["agents"])


async def until_true(what: Callable[[], Any], timeout_s: float = WAIT_S) -> float:
    """Wait until a call, which may be asynchronous or raise, gives truth; the seconds it took."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    while True:
        with contextlib.suppress(RoostError, StopIteration):
            found = what()
            if await found if asyncio.iscoroutine(found) else found:
                return loop.time() - started
        assert loop.time() - started < timeout_s, "waited in vain"
        await asyncio.sleep(0.005)


async def equal(agent: str, *nodes: Node, timeout_s: float = WAIT_S) -> float:
    """Wait until all nodes hold the same of an agent; the seconds it took."""

    async def same() -> bool:
        found = [await node("digest", agent=agent) for node in nodes]
        first = found[0]
        return first["digest"] != "waiting-for-key" and all(f == first for f in found)

    return await until_true(same, timeout_s)


async def holds(node: Node, agent: str, record: str) -> bool:
    """Whether a node shows a record."""
    try:
        await node("show", agent=agent, record=record)
    except RoostError:
        return False
    return True


async def remember(node: Node, agent: str, text: str, **params: Any) -> str:
    """Write a memory; its id."""
    return str((await node("remember", agent=agent, text=text, **params))["record"])
