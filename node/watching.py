"""Watches: what changes here is announced to every peer that watches and may read it.

1. A change is announced after its commit; a write shows on a peer some milliseconds later (R8).
2. A watch whose device lost an agent is ended, so that it asks again and learns why (S-I5).
3. A watcher that does not read is cut off; the others do not wait for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from crdt.log import Vector
from keys.ids import AgentId, DeviceId
from memory.store import AgentStore
from node.exchange import Exchange
from node.handle import AgentHandle
from sync.announce import News, Outbox, news
from sync.frames import StatementsChanged

WATCHES_PER_PEER_MAX = 2


@dataclass(slots=True, eq=False)
class Watch:
    """One open watch; ``shared`` are the agents that its device was told of."""

    device: DeviceId
    shared: set[AgentId]
    outbox: Outbox = field(default_factory=Outbox)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def end(self) -> None:
        """Let it come to its end."""
        self.ended = True
        self.wake.set()

    async def next(self, beat_s: float) -> bool:
        """Wait for something to send or the end; False if neither came for ``beat_s``."""
        try:
            async with asyncio.timeout(beat_s):
                await self.wake.wait()
        except TimeoutError:
            return False
        self.wake.clear()
        return True


@dataclass(slots=True)
class _Seen:
    """What was announced of an agent so far."""

    vector: Vector
    statements: bytes


class WatchHub:
    """Every open watch, and the task that feeds them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._watches: list[Watch] = []
        self._seen: dict[AgentId, _Seen] = {}
        self._changed: dict[AgentId, AgentHandle] = {}
        self._wake = asyncio.Event()

    def changed(self, handle: AgentHandle) -> None:
        """An agent may have changed; cheap, and may be said too often."""
        self._changed[handle.agent] = handle
        self._wake.set()

    def open(self, device: DeviceId) -> Watch:
        """A new watch of a device; of more than two the oldest is ended."""
        others = [w for w in self._watches if w.device == device]
        for oldest in others[: len(others) - WATCHES_PER_PEER_MAX + 1]:
            oldest.end()
        shared = {h.agent for h in self._exchange.readable(device)}
        watch = Watch(device, shared)
        self._watches.append(watch)
        self._exchange.peer(device).watching += 1
        return watch

    def close(self, watch: Watch) -> None:
        """A watch is over."""
        self._watches.remove(watch)
        state = self._exchange.peer(watch.device)
        state.watching = max(0, state.watching - 1)  # it may have been forgotten meanwhile

    def end_of(self, device: DeviceId) -> None:
        """End the watches of one device: it comes back with a hello, and hears ours."""
        for watch in self._watches:
            if watch.device == device:
                watch.end()

    def end_all(self) -> None:
        """The node stops."""
        for watch in self._watches:
            watch.end()

    async def run(self) -> None:
        """Announce what changes, until cancelled."""
        for handle in self._exchange.core.agents.all():
            self.changed(handle)
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for handle in changed.values():
                try:
                    await self._look(handle)
                except Exception as exc:  # noqa: BLE001 - one agent's file is not the node's end
                    core = self._exchange.core
                    core.journal.error("announce.failed", exc, agent=handle.agent)

    async def _look(self, handle: AgentHandle) -> None:
        vector, statements = await handle.read(_state)
        before = self._seen.get(handle.agent, _Seen({}, b""))
        self._seen[handle.agent] = _Seen(vector, statements)
        frames: list[News] = [*news(handle.agent, before.vector, vector)]
        if statements != before.statements:
            frames.insert(0, StatementsChanged(handle.agent, statements))
        for watch in self._watches:
            self._tell(watch, handle, frames)

    def _tell(self, watch: Watch, handle: AgentHandle, frames: list[News]) -> None:
        if not self._exchange.may_read(handle, watch.device):
            if handle.agent in watch.shared:
                watch.end()
            return
        watch.shared.add(handle.agent)
        for frame in frames:
            watch.outbox.put(frame)
        if frames:
            watch.wake.set()


def _state(store: AgentStore) -> tuple[Vector, bytes]:
    return store.vector(), store.statements_digest()
