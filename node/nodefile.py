"""``node.db`` when it is damaged: set aside, and made anew of what can be read (S-G1).

It is mended before anything else is opened. What its rows no longer tell of this owner is taken
from the statements of the agents; peers that are lost have to be paired again.
"""

from __future__ import annotations

import asyncio

from keys.errors import DamageError
from keys.ids import DeviceId, OwnerId
from keys.statements import OWNER_KINDS, Statement
from memory.nodedb import NodeDb, NodeDbDoor
from memory.salvage import rebuild_node
from node.agents import Agents
from node.aside import set_aside
from node.clock import Clock
from node.home import Home


async def open_node_db(home: Home, clock: Clock) -> tuple[NodeDbDoor, bool]:
    """``node.db``, and whether it had to be made anew; raises ``StoreError``."""
    path = home.database_path
    try:
        return await NodeDbDoor.open(path), False
    except DamageError as damage:
        try:
            aside = await asyncio.to_thread(set_aside, path, "unreadable", clock.now_us())
        except OSError as exc:
            raise damage from exc
    counts = await asyncio.to_thread(rebuild_node, aside.path, path)
    await asyncio.to_thread(aside.write_report, counts)
    return await NodeDbDoor.open(path), True


async def complete_node_db(
    database: NodeDbDoor, agents: Agents, device: DeviceId, now_us: int
) -> None:
    """Take from the agents what ``node.db`` lost: our owner, our name, certificates, agents."""
    known: dict[bytes, Statement] = {}
    for handle in agents.all():
        for s in await handle.read(lambda store: store.statements()):
            if s.kind in OWNER_KINDS:
                known[bytes(s.id)] = s
    mine = [s for s in known.values() if s.kind == "certify" and s.body["device"] == device]
    owners = {bytes(s.body["owner"]) for s in mine}
    about = [s for s in known.values() if bytes(s.body["owner"]) in owners]

    def complete(db: NodeDb) -> None:
        held = {k.agent for k in db.agents()}
        for handle in agents.all():
            if handle.agent not in held:
                db.set_agent(handle.agent, accepted=True, now_us=now_us)
        db.owner_statements.add(about)
        if mine and db.setting("owner") is None:
            newest = max(mine, key=lambda s: int(s.body["wall_ms"]))
            db.set_settings(
                owner=str(OwnerId(newest.body["owner"])),
                name=db.setting("name") or str(newest.body["name"]),
            )

    await database.run(complete)
