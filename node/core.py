"""What every part of a node is given: the opened home and what lives as long as it is open."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from keys.errors import KeyFileError, StoreError
from keys.ids import AgentId, DeviceId
from keys.keyfile import load_device_key, remove_partial
from keys.signing import DeviceKey, random_bytes
from memory.nodedb import NodeDb, NodeDbDoor
from node.agents import Agents
from node.clock import Clock
from node.home import Home
from node.journal import Journal
from node.marker import Marker
from node.nodefile import complete_node_db, open_node_db
from node.ownership import Ownership
from node.settings import CLONE_SETTING, stopped_by
from node.vaults import settle_vault

BOOT_NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class NodeCore:
    """An open home. Made by ``open``, by the process that holds the home's lock.

    ``boot_nonce`` is random per opening: two live copies of one device show different ones (S-A7).
    """

    home: Home
    clock: Clock
    journal: Journal
    key: DeviceKey
    db: NodeDbDoor
    marker: Marker
    agents: Agents
    boot_nonce: bytes

    @classmethod
    async def open(cls, home: Home, clock: Clock, journal: Journal) -> NodeCore:
        """Open what is in ``home`` and look for signs of a restore, once, before any write (R38).

        Raises ``RoostError``; nothing is left open then.
        """
        key = await asyncio.to_thread(load_device_key, home.keys_dir)
        marker = await asyncio.to_thread(Marker.load, home)
        async with contextlib.AsyncExitStack() as stack:
            db, made_anew = await open_node_db(home, clock)
            stack.push_async_callback(db.close)
            agents = Agents(home, key, marker, clock)
            stack.push_async_callback(agents.close)
            agents.on_aside = lambda agent, aside: journal.error(
                "damage.aside", agent=agent, reason=aside.reason
            )
            agents.stop_writing(stopped_by(await db.run(lambda d: d.setting(CLONE_SETTING))))
            await asyncio.to_thread(agents.room.restore)
            await agents.open_all()
            core = cls(
                home, clock, journal, key, db, marker, agents, random_bytes(BOOT_NONCE_BYTES)
            )
            if made_anew:
                journal.error("damage.node_db")
                await complete_node_db(db, agents, key.device, clock.now_us())
            else:
                await agents.drop_unfounded({k.agent for k in await db.run(lambda d: d.agents())})
            agents.on_end = core.bury
            for handle in agents.all():
                if handle.ended:
                    await core.bury(handle.agent)
            await core._settle_keys()
            await core._tell_of_doubts()
            stack.pop_all()
        return core

    @property
    def device(self) -> DeviceId:
        """The device whose home it is."""
        return self.key.device

    @property
    def ownership(self) -> Ownership:
        """Who owns this home, and how its owner signs."""
        return Ownership(self.home, self.db, self.key, self.clock)

    async def accept(self, agent: AgentId) -> None:
        """Note that an agent is one of this node's."""
        now_us = self.clock.now_us()
        await self.db.run(lambda db: db.set_agent(agent, accepted=True, now_us=now_us))

    async def bury(self, agent: AgentId) -> None:
        """Drop what this node keeps beside the file of an agent that was forgotten."""

        def drop(db: NodeDb) -> None:
            db.tokens.delete_of(agent)
            db.jobs.drop(agent)

        await self.db.run(drop)
        await asyncio.to_thread(self.agents.drop_keys, agent)

    async def close(self) -> None:
        """Close every database; what is written is durable already."""
        await self.agents.close()
        await self.db.close()

    async def _settle_keys(self) -> None:
        """Finish, or undo, what a crash left half done among the key files."""
        owner = await self.db.run(lambda db: db.setting("owner"))

        def settle() -> None:
            remove_partial(self.home.keys_dir)
            settle_vault(self.home.vault_path, owner)

        try:
            await asyncio.to_thread(settle)
        except KeyFileError as exc:  # a read-only disk: reading goes on, the next start tries again
            self.journal.warning("keys.unsettled", code=exc.code)

    async def _tell_of_doubts(self) -> None:
        place = self.marker.place_doubt
        if place is not None:
            self.journal.warning("restore.place", kind=place.value)
            try:
                await asyncio.to_thread(self.marker.settle)
            except StoreError as exc:  # reading goes on; a write tries again, and fails
                self.journal.warning("restore.unsettled", code=exc.code)
        for handle in self.agents.all():
            doubt = handle.doubt
            if doubt is not None and not doubt.told:
                self.journal.warning("restore.agent", agent=handle.agent, kind=doubt.kind.value)
