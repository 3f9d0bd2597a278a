"""The agents of this node: one file, one door and one author each.

1. A handle reaches one agent's file and no other; that is the scope of everything done with it.
2. A local write tells the marker after its commit (R38) and the watchers after that.
3. After an erasure the files are cleaned before the call returns, or soon after when a reader was
   in the way; receipts count only what is clean (R34).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from crdt.fingerprint import FingerprintKey
from keys.errors import AmbiguousError, BadInput, NotFoundError, UsageError
from keys.ids import AgentId, Incarnation, prefix_range
from keys.keyfile import create_secret, read_secret, replace_secret, secure_directory
from keys.limits import KEY_BYTES
from keys.signing import DeviceKey
from keys.statements import Statement
from memory.authoring import Author
from memory.door import AioDoor, make_file
from memory.store import AgentStore
from node.clock import Clock
from node.home import Home
from node.marker import Doubt, Marker

T = TypeVar("T")
KEYS_PER_AGENT_MAX = 64
CLEAN_TRIES = 40
CLEAN_PAUSE_S = 0.05


class AgentHandle:
    """One agent of this node."""

    def __init__(
        self, door: AioDoor, store: AgentStore, author: Author, marker: Marker, clock: Clock
    ) -> None:
        self.door, self.store, self.author = door, store, author
        self._marker, self._clock = marker, clock
        self.changed: Callable[[AgentHandle], None] | None = None
        self.doubt: Doubt | None = None

    @property
    def agent(self) -> AgentId:
        """The agent's id."""
        return self.store.agent

    @property
    def name(self) -> str:
        """The name that the founding statement gives."""
        founding = self.store.authority.founding
        return str(founding.body["name"]) if founding else self.agent.short()

    async def read(self, work: Callable[[AgentStore], T]) -> T:
        """Run a read in one hop."""
        return await self.door.run(lambda: work(self.store))

    async def write(self, work: Callable[[AgentStore, Author, int], T]) -> T:
        """Run local acts in one hop: commit, then the marker, then the watchers."""
        now_us = self._clock.now_us()

        def act() -> T:
            self.author.stamp(now_us)
            result = work(self.store, self.author, now_us)
            self._advance()
            return result

        result = await self.door.run(act)
        await self.settle()
        return result

    async def receive(self, work: Callable[[AgentStore, int], T]) -> T:
        """Run an append of what a peer sent; what that makes us write is ours (R31)."""
        return await self.write(lambda store, _author, now_us: work(store, now_us))

    async def settle(self) -> None:
        """After a commit: clean erased bytes out of the files and tell who watches."""
        if self.changed is not None:
            self.changed(self)
        for _ in range(CLEAN_TRIES):
            if await self.door.run(self.store.clean):
                return
            await self._clock.sleep(CLEAN_PAUSE_S)

    def _advance(self) -> None:
        tip = self.author.own_tip()
        if tip is not None:
            self._marker.advance(self.agent, *tip)
            self.doubt = self._marker.doubt(self.agent)

    def check_continuity(self) -> None:
        """Compare our own logs with the marker; in the store's thread, before any write (R38)."""
        device = self.author.device
        own = {
            row.log.incarnation: row.tip.seq
            for row in self.store.logs.rows()
            if row.log.device == device
        }
        self.doubt = self._marker.check(self.agent, own)
        self.author.renew = self.doubt is not None

    def doubt_from_peer(self, incarnation: Incarnation, seq: int) -> bool:
        """A peer holds more of our log than we do: no more under this incarnation (S-A2)."""
        news = self._marker.note(self.agent, incarnation, seq)
        self.doubt = self._marker.doubt(self.agent)
        self.author.renew = True
        return news


class Agents:
    """All agents of one home, opened when they are first needed."""

    def __init__(self, home: Home, key: DeviceKey, marker: Marker, clock: Clock) -> None:
        self._home, self._key, self._marker, self._clock = home, key, marker, clock
        self._handles: dict[AgentId, AgentHandle] = {}
        self._lock = asyncio.Lock()
        self.changed: Callable[[AgentHandle], None] | None = None

    async def open_all(self) -> list[AgentHandle]:
        """Open every agent's file of this home; sorted by name."""
        for path in await asyncio.to_thread(self._files):
            try:
                await self.open(AgentId.parse(path.stem))
            except UsageError:
                continue  # not a file of ours
        return self.all()

    def _files(self) -> list[Path]:
        return sorted(self._home.agents_dir.glob("*.db"))

    def all(self) -> list[AgentHandle]:
        """The open agents, by name and id."""
        return sorted(self._handles.values(), key=lambda h: (h.name, h.agent))

    def get(self, agent: AgentId) -> AgentHandle | None:
        """An open agent by its id."""
        return self._handles.get(agent)

    async def open(self, agent: AgentId) -> AgentHandle:
        """The handle of an agent whose file is here; opens it."""
        async with self._lock:
            if agent in self._handles:
                return self._handles[agent]
            await asyncio.to_thread(make_file, self.path_of(agent))
            door, connection = await AioDoor.open(self.path_of(agent))

            def prepare() -> AgentHandle:
                store = AgentStore(connection, agent, self.load_keys(agent), self._key.device)
                author = Author(store, self._key)
                author.on_opening = lambda fresh: self._marker.opening(agent, fresh)
                handle = AgentHandle(door, store, author, self._marker, self._clock)
                handle.check_continuity()
                return handle

            handle = await door.run(prepare)
            handle.changed = lambda h: self.changed(h) if self.changed else None
            self._handles[agent] = handle
            return handle

    async def create(
        self, agent: AgentId, statements: Iterable[Statement], keys: Iterable[FingerprintKey]
    ) -> AgentHandle:
        """Make an agent's file from its statements (a founding, or one shared with us)."""
        await asyncio.to_thread(secure_directory, self._home.agents_dir)
        await asyncio.to_thread(self.save_keys, agent, list(keys))
        handle = await self.open(agent)
        found = list(statements)
        await handle.receive(lambda store, now_us: store.add_statements(found, now_us))
        return handle

    async def resolve(self, text: str) -> AgentHandle:
        """The agent that a name, an id, an unambiguous prefix or ``-`` (the only one) names."""
        everybody = await self.open_all()
        if text == "-":
            found = everybody
        else:
            found = [h for h in everybody if h.name == text] or self._by_id(everybody, text)
        if not found:
            raise NotFoundError(
                "there is no such agent here" if text != "-" else "there is no agent here yet",
                hint="roost agent list, or make one: roost agent create NAME",
            )
        if len(found) > 1:
            raise AmbiguousError(
                "more than one agent fits", candidates=[f"{h.name} {h.agent}" for h in found]
            )
        return found[0]

    @staticmethod
    def _by_id(handles: list[AgentHandle], text: str) -> list[AgentHandle]:
        try:
            if len(text.strip()) == AgentId.text_length():
                low = high = bytes(AgentId.parse(text))
            else:
                low, high = prefix_range(AgentId, text)
        except UsageError:
            return []
        return [h for h in handles if low <= h.agent <= high]

    def path_of(self, agent: AgentId) -> Path:
        """The file of an agent."""
        return self._home.agents_dir / f"{agent}.db"

    # -- fingerprint keys ------------------------------------------------------------------------

    def _key_path(self, agent: AgentId) -> Path:
        return self._home.keys_dir / f"{agent}.values"

    def load_keys(self, agent: AgentId) -> list[FingerprintKey]:
        """The fingerprint keys of an agent; none when they have not arrived (R25)."""
        path = self._key_path(agent)
        if not path.exists():
            return []
        data = read_secret(path, KEY_BYTES * KEYS_PER_AGENT_MAX)
        return [FingerprintKey(data[i : i + KEY_BYTES]) for i in range(0, len(data), KEY_BYTES)]

    def save_keys(self, agent: AgentId, keys: Iterable[FingerprintKey]) -> None:
        """Add fingerprint keys of an agent; known ones stay."""
        held = self.load_keys(agent)
        fresh = [k for k in dict.fromkeys(keys) if k not in held]
        if not fresh:
            return
        if len(held) + len(fresh) > KEYS_PER_AGENT_MAX:
            raise BadInput(f"an agent has at most {KEYS_PER_AGENT_MAX} fingerprint keys")
        data = b"".join(k.secret for k in [*held, *fresh])
        write = replace_secret if held else create_secret
        write(self._key_path(agent), data)

    async def close(self) -> None:
        """Close every file."""
        for handle in self._handles.values():
            await handle.door.close()
        self._handles.clear()
