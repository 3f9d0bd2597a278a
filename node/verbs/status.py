"""Status: one look at the agents, the peers and what needs attention."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from memory.audit import count_records
from memory.quarantine import count_set_aside
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from node.network import Network
from node.params import Params
from node.service import Emit
from node.times import span
from node.verbs.attention import act_alerts, doubt_alert, home_alerts, stamp_alerts
from node.verbs.authority import permissions as authority_permissions
from node.verbs.ending import forget_agent_verb
from node.verbs.erasing import forget_status, forget_verb
from node.verbs.owning import recover

Result = dict[str, Any]
OFFSET_MS_MAX: Final = 300_000  # a clock that is farther off is told of


async def status(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """What this node holds, whom it knows, and what is wrong."""
    params.done()
    agents: list[Result] = []
    alerts: list[Result] = []
    incarnations: set[str] = set()
    for handle in await core.agents.living():
        row, found = await handle.read(lambda store, h=handle: _agent(store, h))  # type: ignore[misc]
        found += await stamp_alerts(core, handle)
        agents.append(row)
        alerts += found
        if row["incarnation"]:
            incarnations.add(row["incarnation"])
    alerts += await home_alerts(core)
    peers = await network.status_peers()
    alerts += [
        {
            "code": "clock",
            "message": f"the clock of {p['name']} is {span(p['clock_offset_ms'])} of this one",
        }
        for p in peers
        if abs(p.get("clock_offset_ms") or 0) >= OFFSET_MS_MAX
    ]
    alerts += [
        {
            "code": "clone",
            "message": f"{p['name']} runs twice, at {' and at '.join(p['cloned'])}: both have"
            " stopped writing; on one of them run `roost devices renew`",
        }
        for p in peers
        if p["cloned"]
    ]
    alerts += [
        {
            "code": "forged",
            "message": f"{row['name']}: {p['name']} sent {row['forged']} statements that nobody"
            " signed so; they were not taken",
        }
        for p in peers
        for row in p["agents"]
        if row["forged"]
    ]
    return {
        "device": str(core.device),
        "name": await core.ownership.device_name(),
        "running": network.listen is not None,
        "incarnation": ",".join(sorted(incarnations)) or None,
        "agents": agents,
        "peers": peers,
        "alerts": alerts,
    }


def _agent(store: AgentStore, handle: AgentHandle) -> tuple[Result, list[Result]]:
    incarnation = handle.author.own_incarnation()
    forked = [row for row in store.logs.rows() if row.fork_seq is not None]
    row = {
        "agent": str(store.agent),
        "name": handle.name,
        "records": count_records(store),
        "digest": store.digest_text(),
        "held": 0,
        "quarantined": count_set_aside(store),
        "incarnation": str(incarnation) if incarnation else None,
        "waiting_for_key": store.waiting_for_key,
    }
    alerts = [
        {
            "code": "fork",
            "message": f"{handle.name}: the log {r.log} is forked after {r.fork_seq};"
            " two copies of one device wrote",
        }
        for r in forked
    ]
    alerts += doubt_alert(handle)
    alerts += act_alerts(store, handle.name)
    return row, alerts


async def permissions(
    core: NodeCore, network: Network, params: Params, emit: Emit | None
) -> Result:
    """Who may do what, and which peers have not confirmed the newest statements."""
    handle = await core.agents.resolve(str(params.peek("agent") or ""))
    shown = await authority_permissions(core, params)
    return shown | {"unconfirmed": await network.unconfirmed(handle)}


NETWORK_VERBS: Final[
    Mapping[str, Callable[[NodeCore, Network, Params, Emit | None], Awaitable[Result]]]
] = {
    "status": status,
    "permissions": permissions,
    "forget": forget_verb,
    "forget.status": forget_status,
    "agent.forget": forget_agent_verb,
    "owner.recover": recover,
}
