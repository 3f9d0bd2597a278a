"""A device of the simulated world: a home on disk, and a process that may die at any await.

It does what ``node/`` does, in the same order, over the same modules: hop, commit, marker, cleaning
(node.agents); doubts about continuity (node.exchange); keys before what needs them (node.sharing).
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crdt.entry import LogId
from crdt.fingerprint import FingerprintKey
from crdt.log import Vector
from keys.ids import DeviceId
from keys.limits import KEY_BYTES
from keys.signing import DeviceKey, OwnerKey
from keys.statements import Statement
from memory.authoring import Author
from memory.door import InlineDoor, open_connection
from memory.store import AgentStore
from sync.messages import Refusal
from tests.sim import serving
from tests.sim.disk import Disk, Fuse, FusedConnection, FusedMarker
from tests.sim.network import Server
from tests.sim.schedule import MILLISECOND_US, Pause
from tests.support.memory_world import Node

if TYPE_CHECKING:
    from tests.sim.world import World

T = TypeVar("T")
HOP_US = 20 * MILLISECOND_US


class Device(Node, Server):
    """One device: its files, and, while it is up, a process over them."""

    def __init__(self, world: World, name: str, key: DeviceKey, owner: OwnerKey) -> None:
        self.world = self.sim = world
        self.name, self.key, self.owner = name, key, owner
        self.random = random.Random(world.random.random())
        self.home = world.root / name
        self.home.mkdir(exist_ok=True)
        self.disk = Disk(self.home)
        self.offset_us = 0
        self.up = False
        self.boots = 0
        self.may_fork = False  # its log was copied behind its back
        self._left_by_kill: tuple[dict[str, bytes], int | None] | None = None
        marker = FusedMarker(self.disk.home)
        marker.fuse = Fuse(self.random)
        marker.settle()

    @property
    def device(self) -> DeviceId:
        """Who it is."""
        return self.key.device

    @property
    def now_us(self) -> int:
        """This device's clock."""
        self.sim.schedule.now_us += 1
        return self.sim.wall_us + self.offset_us

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    # -- the process -----------------------------------------------------------------------------

    def boot(self) -> None:
        """Start the process over the files that are there."""
        assert not self.up
        self.fuse = Fuse(self.random)
        self.fuse.on_kill = self._killed
        self.marker = FusedMarker.load(self.disk.home)
        self.marker.fuse = self.fuse
        self.keys = set(self._load_keys())
        self.raw = open_connection(self.disk.database)
        if not self.sim.durable:
            self.raw.execute("PRAGMA synchronous=OFF")
        raw = cast("Any", FusedConnection(self.raw, self.fuse, self.disk.database))
        self.store = AgentStore(raw, self.sim.agent, self.keys, self.device)
        self.door = InlineDoor(raw)
        self.author = Author(self.store, self.key)
        self.author.on_opening = lambda fresh: self.marker.opening(self.sim.agent, fresh)
        own = {r.log.incarnation: r.tip.seq for r in self._own_logs()}
        doubt = self.marker.check(self.sim.agent, own)
        self.author.renew = doubt is not None
        self.marker.settle()
        self.up = True
        self.boots += 1
        self._seen_entry = 0
        self.last_written: list[bytes] = []
        self.sim.note_entries(self)

    def crash(self) -> None:
        """The process is killed; its files stay as they are."""
        if not self.up:
            return
        self.up = False
        self.sim.schedule.kill(self)
        self.sim.network.hang_up(self)
        files, size = self._left_by_kill or (self.disk.database_files(), None)
        self._left_by_kill = None
        self.fuse.blown = True
        self.store.connection.close()
        if size is not None:
            self.sim.counts["commits torn"] += 1
            files["agent.db-wal"] = files["agent.db-wal"][:size]
        self.disk.put_back(files)

    def stop(self) -> None:
        """The process ends in good order."""
        self.up = False
        self.sim.schedule.kill(self)
        self.sim.network.hang_up(self)
        self.store.connection.close()

    def _killed(self, size: int | None) -> None:
        self._left_by_kill = (self.disk.database_files(), size)

    def close(self) -> None:
        if self.up:
            self.store.connection.close()

    # -- hops ------------------------------------------------------------------------------------

    async def read(self, work: Callable[[AgentStore], T]) -> T:
        """A read in one hop."""
        await Pause(self.random.randrange(HOP_US))
        return await self.door.run(lambda: work(self.store))

    async def hop(self, work: Callable[[], T]) -> T:
        """Local acts in one hop: commit, then the marker, then cleaning."""
        await Pause(self.random.randrange(HOP_US))

        def act() -> T:
            self.author.stamp(self.now_us)
            result = work()
            tip = self.author.own_tip()
            if tip is not None:
                self.marker.advance(self.sim.agent, *tip)
            return result

        result = await self.door.run(act)
        self.sim.note_entries(self)
        await Pause(self.random.randrange(HOP_US))
        await self.door.run(self.store.clean)
        return result

    async def receive(self, work: Callable[[AgentStore, int], T]) -> T:
        """An append of what a peer sent."""
        return await self.hop(lambda: work(self.store, self.now_us))

    # -- continuity ------------------------------------------------------------------------------

    def _own_logs(self) -> list[Any]:
        return [row for row in self.store.logs.rows() if row.log.device == self.device]

    def note_own(self, log: LogId, seq: int) -> None:
        """Somebody holds ``log`` up to ``seq``: a doubt, if it is ours and we lack that (S-A2)."""
        if log.device != self.device:
            return
        row = self.store.logs.row(log)
        if row is not None and row.tip.seq >= seq:
            return
        if self.author.own_incarnation() is None:
            return
        if self.marker.note(self.sim.agent, log.incarnation, seq):
            self.sim.counts["doubts by peers"] += 1
        self.author.renew = True

    async def compare_own(self, theirs: Vector) -> None:
        """Look for more of our own log in a peer's vector."""
        for log, tips in theirs.items():
            if tips and log.device == self.device:
                await self.door.run(partial(self.note_own, log, max(tips).seq))

    # -- rights and keys -------------------------------------------------------------------------

    def may_read(self, peer: DeviceId) -> bool:
        """Whether a device may be served now."""
        return self.store.authority.holds_device(peer, "read", self.now_ms).held

    @property
    def has_agent(self) -> bool:
        """Whether the founding statement has arrived."""
        return self.store.authority.founding is not None

    def _load_keys(self) -> list[FingerprintKey]:
        path = self.disk.values
        data = path.read_bytes() if path.exists() else b""
        return [FingerprintKey(data[i : i + KEY_BYTES]) for i in range(0, len(data), KEY_BYTES)]

    def save_keys(self, keys: Sequence[FingerprintKey]) -> None:
        """Keep fingerprint keys in their file, before anything needs them."""
        held = self._load_keys()
        fresh = [k for k in dict.fromkeys(keys) if k not in held]
        data = b"".join(k.secret for k in [*held, *fresh])
        temporary = self.disk.values.with_name("values.new")
        temporary.write_bytes(data)
        temporary.replace(self.disk.values)
        self.keys |= set(fresh)

    def take_keys(self, keys: Sequence[FingerprintKey]) -> None:
        """Keep the keys that the statements commit to; in a hop."""
        wanted = set(self.store.authority.key_commitments())
        held = {k.commitment for k in self.store.keys}
        fresh = [k for k in keys if k.commitment in wanted - held]
        if fresh:
            self.save_keys(fresh)
            self.store.set_keys([*self.store.keys, *fresh])

    def learn_statements(self, found: Sequence[Statement]) -> int:
        """Take verified statements; in a hop."""
        return self.store.add_statements(found, self.now_us)

    # -- peers -----------------------------------------------------------------------------------

    async def answer(
        self, peer: DeviceId, path: str, body: bytes
    ) -> AsyncIterator[bytes | Refusal]:
        """The pieces of an answer to a peer."""
        async for piece in serving.answer(self, peer, path, body):
            yield piece

    def entries(self) -> set[bytes]:
        """The hashes of all entries that it holds, be it up or down; nothing dies of this."""
        if not self.up:
            return self.disk.entries()
        return {h for (h,) in self.raw.execute("SELECT hash FROM entry")}

    def fresh_entries(self) -> list[tuple[Any, ...]]:
        """Entries of our own device that entered the log since the last look."""
        rows = self.store.connection.execute(
            "SELECT entry.id, device, incarnation, seq, hash FROM entry JOIN log"
            " ON log.id = entry.log WHERE entry.id > ? ORDER BY entry.id",
            (self._seen_entry,),
        ).fetchall()
        if rows:
            self._seen_entry = rows[-1][0]
        return rows
