"""Verbs about other nodes: pair, peers, sync, and accepting an agent that was offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.address import Address
from keys.errors import AmbiguousError, NotFoundError, UsageError
from keys.ids import AgentId, DeviceId
from keys.pair_uri import parse_pair_uri
from memory.nodedb import KnownAgent
from node.core import NodeCore
from node.joining import Target, join
from node.network import Network
from node.params import Params
from node.service import Emit
from node.verbs.subjects import device_of

Result = dict[str, Any]
Handler = Callable[[NodeCore, Network, Params, Emit | None], Awaitable[Result]]


async def pair_open(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """Show a code, wait for the other side; emits ``open``, ``confirm`` and ``paired``."""
    mine, ttl = params.flag("mine"), params.number("ttl", 0)
    passphrase, ask = params.optional_text("passphrase") or "", params.flag("ask")
    params.done()
    if emit is None:
        raise UsageError("pairing is for a caller that listens")
    key = await core.ownership.unlock(passphrase) if mine else None
    await network.pairing.open(ttl_s=ttl or None, owner_key=key, emit=emit, ask=ask)
    return {}


async def pair_confirm(
    core: NodeCore, network: Network, params: Params, emit: Emit | None
) -> Result:
    """Answer what ``pair.open`` asks with ``confirm``: whether the device is the one meant."""
    del core, emit
    device, yes = DeviceId.parse(params.text("device")), params.flag("yes")
    params.done()
    network.pairing.answer(device, yes=yes)
    return {}


async def pair_join(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """Pair with the side that shows a code."""
    mine, passphrase = params.flag("mine"), params.optional_text("passphrase")
    target = await _target(network, params)
    params.done()
    if passphrase and not mine:
        # So that what the other side grants to our owner reaches this device.
        await core.ownership.certify_own(await core.ownership.unlock(passphrase))
    return await join(network.pairing, target, mine=mine)


async def _target(network: Network, params: Params) -> Target:
    address, device = params.optional_text("address"), params.optional_text("device")
    uri, code = params.optional_text("uri"), params.optional_text("code")
    if sum(given is not None for given in (address, device, uri)) != 1:
        raise UsageError("one of an address, a device or a link names the other side")
    if uri is not None:
        link = parse_pair_uri(uri)
        return Target(link.addresses, code or link.code, link.device)
    if code is None:
        raise UsageError("code is missing", hint="`roost pair open` on the other side shows one")
    if address is not None:
        return Target((Address.parse(address),), code)
    assert device is not None, "exactly one is given"
    return await network.found_target(device, code)


async def pair_list(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """The devices in sight that show a code."""
    del core, emit
    params.done()
    return {"found": await network.found()}


async def peers(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """The peers and how they stand."""
    del core, emit
    params.done()
    return {"peers": await network.status_peers()}


async def peers_remove(
    core: NodeCore, network: Network, params: Params, emit: Emit | None
) -> Result:
    """Forget a peer."""
    del emit
    device = await device_of(core, params.text("device"))
    params.done()
    await network.remove_peer(device)
    return {"removed": str(device)}


async def sync(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """One round with everybody reachable."""
    del emit
    peer, agent = params.optional_text("peer"), params.optional_text("agent")
    params.flag("once")  # the node goes on by itself in any case
    params.done()
    device = await device_of(core, peer) if peer else None
    wanted = await _agent_of(core, agent) if agent else None
    return await network.sync_once(device, wanted)


async def agent_accept(
    core: NodeCore, network: Network, params: Params, emit: Emit | None
) -> Result:
    """Take an agent that a peer offers."""
    del emit
    text, passphrase = params.text("agent"), params.optional_text("passphrase") or ""
    params.done()
    await core.ownership.unlock(passphrase)
    row = await _offered(core, text)
    now_us = core.clock.now_us()
    await core.db.run(lambda db: db.set_agent(row.agent, accepted=True, now_us=now_us))
    network.look_again()
    return {"agent": str(row.agent), "name": row.name, "accepted": True}


async def _agent_of(core: NodeCore, text: str) -> AgentId:
    """An agent that is here, or accepted and on its way."""
    try:
        return (await core.agents.resolve(text)).agent
    except NotFoundError:
        return (await _offered(core, text)).agent


async def _offered(core: NodeCore, text: str) -> KnownAgent:
    """The agent without a file here that a name, an id or a prefix of one names."""
    here = {h.agent for h in await core.agents.open_all()}
    rows = [k for k in await core.db.run(lambda db: db.agents()) if k.agent not in here]
    found = rows if text == "-" else [r for r in rows if r.name == text]
    if not found:
        wanted = text.strip().lower()
        found = [r for r in rows if wanted and str(r.agent).startswith(wanted)]
    if not found:
        raise NotFoundError("no peer offers such an agent", hint="roost agent list")
    if len(found) > 1:
        raise AmbiguousError(
            "more than one agent fits", candidates=[f"{r.name} {r.agent}" for r in found]
        )
    return found[0]


NETWORK_VERBS: Final[Mapping[str, Handler]] = {
    "pair.open": pair_open,
    "pair.confirm": pair_confirm,
    "pair.join": pair_join,
    "pair.list": pair_list,
    "peers": peers,
    "peers.remove": peers_remove,
    "sync": sync,
    "agent.accept": agent_accept,
}
