"""Verbs that end a clone: this home becomes a new device, or goes on as the one it was (S-A7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import InUseError
from keys.keyfile import replace_device_key
from keys.signing import DeviceKey
from keys.statements import device_proof
from memory.store import AgentStore
from node.clones import go_on
from node.core import NodeCore
from node.marker import DoubtKind
from node.network import Network
from node.params import Params
from node.service import Emit
from node.sharing import spread
from node.verbs.subjects import check_name

Result = dict[str, Any]


async def renew(core: NodeCore, network: Network, params: Params, _emit: Emit | None) -> Result:
    """Make this home a new device that keeps its memory; with ``keep`` the one that goes on."""
    keep, name = params.flag("keep"), params.optional_text("name")
    passphrase = params.optional_text("passphrase") or ""
    params.done()
    if network.listen is not None:
        raise InUseError("the node of this home runs", hint="stop it, and run this again")
    key = await core.ownership.unlock(passphrase)
    if keep:
        return await _keep(core)
    before, old_name = core.device, await core.ownership.device_name()
    new, new_name = DeviceKey.generate(), check_name(name or f"{old_name} (new)")
    owner = await core.ownership.owner()
    await core.ownership.certify(key, new.public, new_name, device_proof(new, owner))
    await spread(core)
    rights = {h.name: await h.read(lambda s: _may_write(s, new)) for h in core.agents.all()}
    await core.db.run(lambda db: db.set_settings(name=new_name))
    await asyncio.to_thread(replace_device_key, core.home.keys_dir, new)
    # From here on this home is the new device: none of the logs is its own.
    for handle in core.agents.all():
        await asyncio.to_thread(core.marker.drop, handle.agent)
    await core.db.run(go_on)
    peers = await core.db.run(lambda db: db.peers.all())
    return {
        "device": str(new.device),
        "before": str(before),
        "name": new_name,
        "ungranted": sorted(name for name, may in rights.items() if not may),
        "pair_again": [p.shown_name for p in peers],
    }


def _may_write(store: AgentStore, key: DeviceKey) -> bool:
    return store.authority.holds_device(key.device, "write").held


async def _keep(core: NodeCore) -> Result:
    for handle in core.agents.all():
        await asyncio.to_thread(core.marker.renew, handle.agent, DoubtKind.CLONED)
    await core.db.run(go_on)
    name = await core.ownership.device_name()
    return {
        "device": str(core.device),
        "before": str(core.device),
        "name": name,
        "ungranted": [],
        "pair_again": [],
    }


NETWORK_VERBS: Final[
    Mapping[str, Callable[[NodeCore, Network, Params, Emit | None], Awaitable[Result]]]
] = {"devices.renew": renew}
