"""One agent of this node: the only way to its file.

1. A handle reaches one agent's file and no other; that is the scope of everything done with it.
2. A local write tells the marker after its commit (R38) and the watchers after that. Short ones
   that wait are committed together (``node.together``).
3. After an erasure the files are cleaned before the call returns, or soon after when a reader was
   in the way, or after a kill when they are opened again; receipts count only what is clean (R34).
   A full disk costs the reserve first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from keys.errors import DamageError, DiskFullError, StoreError
from keys.ids import AgentId, Incarnation
from memory.authoring import Author
from memory.door import AioDoor
from memory.erasing import waits
from memory.store import AgentStore
from node.aside import discard
from node.clock import Clock
from node.home import Home
from node.marker import Doubt, Marker
from node.room import Room
from node.together import Act, Together

T = TypeVar("T")
CLEAN_TRIES = 40
CLEAN_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """What a handle needs to know of its home."""

    home: Home
    clock: Clock
    room: Room

    def path_of(self, agent: AgentId) -> Path:
        """The file of an agent."""
        return self.home.agents_dir / f"{agent}.db"


class AgentHandle:
    """One agent of this node."""

    def __init__(
        self, door: AioDoor, store: AgentStore, author: Author, marker: Marker, home: Place
    ) -> None:
        self.door, self.store, self.author = door, store, author
        self._marker, self._at = marker, home
        self._together = Together(author, self._advance)
        self.changed: Callable[[AgentHandle], None] | None = None
        self.damaged: Callable[[AgentHandle, DamageError], Awaitable[None]] | None = None
        self.doubt: Doubt | None = None
        self.ended = store.tombstones.ended(store.authority)  # the whole agent was forgotten
        self.on_end: Callable[[AgentHandle], Awaitable[None]] | None = None

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
        return await self._hop(lambda: work(self.store))

    async def write(
        self, work: Callable[[AgentStore, Author, int], T], *, erases: bool = False
    ) -> T:
        """Run local acts in one hop: commit, then the marker, then the watchers.

        What ``erases`` may use the reserve when the disk is full.
        """
        now_us = self._at.clock.now_us()

        def act() -> T:
            self.author.stamp(now_us)
            result = work(self.store, self.author, now_us)
            self._advance()
            self.ended = self.store.tombstones.ended(self.store.authority)
            return result

        alive = not self.ended
        try:
            result = await self._hop(act)
        except DiskFullError:
            if not (erases and self._at.room.release()):
                raise
            result = await self._hop(act)
        await self.settle()
        if self.ended and alive and self.on_end is not None:
            await self.on_end(self)
        return result

    async def write_short(self, work: Callable[[AgentStore, Author, int], T]) -> T:
        """Run a local act of one commit; those that wait for the disk meanwhile share the next.

        Returns when it is durable. What another act of the same transaction raises is not raised
        here, and ``work`` may be run a second time after it was undone.
        """
        now_us = self._at.clock.now_us()
        act = Act(lambda: work(self.store, self.author, now_us), now_us)
        self.door.require_open()  # what is added is also run: no await lies between
        self._together.add(act)
        result = await self._hop(lambda: self._together.run(act))
        await self.settle()
        return result

    async def _hop(self, work: Callable[[], T]) -> T:
        try:
            return await self.door.run(work)
        except DamageError as exc:
            if self.damaged is not None:
                await self.damaged(self, exc)
            raise

    async def receive(self, work: Callable[[AgentStore, int], T]) -> T:
        """Run an append of what a peer sent; what that makes us write is ours (R31)."""
        return await self.write(lambda store, _author, now_us: work(store, now_us))

    async def settle(self) -> None:
        """After a commit: clean erased bytes out of the files and tell who watches."""
        if self.changed is not None:
            self.changed(self)
        await self.clean()

    async def clean(self) -> None:
        """Get what was erased out of the files (R34): of the last commit, or of one before a kill.

        Raises ``DiskFullError``.
        """
        for _ in range(CLEAN_TRIES):
            try:
                if await self._hop(self._clean):
                    break
            except DiskFullError:
                if not await self._hop(lambda: waits(self.store.connection)):
                    return  # nothing is erased: what is left of an undone change can wait for room
                if not self._at.room.release():
                    raise
            await self._at.clock.sleep(CLEAN_PAUSE_S)

    def _clean(self) -> bool:
        if self._at.room.is_spent:
            self._at.room.restore()
        if self.store.is_clean():
            return True
        if waits(self.store.connection):
            path = self._at.path_of(self.agent)
            discard(path.parent, path.name)  # before the list of what is to be cleaned is shortened
        return self.store.clean()

    def _advance(self) -> None:
        tip = self.author.own_tip()
        if tip is None:
            return
        try:
            self._marker.advance(self.agent, *tip)
        except StoreError:
            # It is committed, whatever the marker says. Most likely the disk filled up just now.
            if not self._at.room.release():
                raise
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
