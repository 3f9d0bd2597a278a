"""Status and doctor: one look at the agents, the peers and what needs attention."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import RoostError
from memory.audit import count_records, count_set_aside, quick_check
from memory.store import AgentStore
from node.agents import AgentHandle
from node.core import NodeCore
from node.network import Network
from node.params import Params
from node.service import Emit
from node.verbs.authority import permissions as authority_permissions
from node.verbs.erasing import forget_status
from node.verbs.owning import recover

Result = dict[str, Any]
FREE_BYTES_MIN: Final = 64 * 1024 * 1024
OFFSET_MS_MAX: Final = 3_600_000


async def status(core: NodeCore, network: Network, params: Params, emit: Emit | None) -> Result:
    """What this node holds, whom it knows, and what is wrong."""
    params.done()
    agents: list[Result] = []
    alerts: list[Result] = []
    incarnations: set[str] = set()
    for handle in await core.agents.open_all():
        row, found = await handle.read(lambda store, h=handle: _agent(store, h))  # type: ignore[misc]
        agents.append(row)
        alerts += found
        if row["incarnation"]:
            incarnations.add(row["incarnation"])
    peers = await network.status_peers()
    alerts += [
        {"code": "clock", "message": f"{p['name']} is {p['clock_offset_ms']} ms off this clock"}
        for p in peers
        if abs(p.get("clock_offset_ms") or 0) > OFFSET_MS_MAX
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
    if handle.doubt is not None:
        alerts.append(
            {
                "code": "restored",
                "message": f"{handle.name}: this home was restored or copied ({handle.doubt.kind});"
                " the next write opens a new log",
            }
        )
    return row, alerts


async def permissions(
    core: NodeCore, network: Network, params: Params, emit: Emit | None
) -> Result:
    """Who may do what, and which peers have not confirmed the newest statements."""
    handle = await core.agents.resolve(str(params.peek("agent") or ""))
    shown = await authority_permissions(core, params)
    return shown | {"unconfirmed": await network.unconfirmed(handle)}


async def doctor(core: NodeCore, params: Params) -> Result:
    """Checks of the home, the keys, the files and the disk."""
    params.done()
    checks = await asyncio.to_thread(_home_checks, core)
    for handle in await core.agents.open_all():
        checks += await _agent_checks(handle)
    return {"ok": all(c["ok"] for c in checks), "checks": checks}


def _home_checks(core: NodeCore) -> list[Result]:
    home = core.home
    mode = stat.S_IMODE(os.stat(home.path).st_mode)
    wide = [p.name for p in home.keys_dir.iterdir() if p.stat().st_mode & 0o077]
    free = shutil.disk_usage(home.path).free
    place = core.marker.place_doubt
    return [
        _check("home", mode & 0o077 == 0, f"{home.path} has mode {mode:04o}"),
        _check(
            "keys",
            not wide,
            "only this account reads them"
            if not wide
            else "readable by others: " + ", ".join(wide),
        ),
        _check("disk", free >= FREE_BYTES_MIN, f"{free // 2**20} MiB free on the disk of the home"),
        _check(
            "marker",
            place is None,
            "the home is where it was"
            if place is None
            else f"the home was moved or copied ({place})",
        ),
    ]


async def _agent_checks(handle: AgentHandle) -> list[Result]:
    def look(store: AgentStore) -> list[Result]:
        intact = quick_check(store)
        return [
            _check(f"database {handle.name}", intact == "ok", intact),
            _check(
                f"values key {handle.name}",
                not store.waiting_for_key,
                "waiting for the fingerprint key" if store.waiting_for_key else "here",
            ),
            _check(f"erasures {handle.name}", store.clean(), "no erased bytes wait to be cleaned"),
        ]

    try:
        return await handle.read(look)
    except RoostError as exc:
        return [_check(f"database {handle.name}", ok=False, detail=exc.message)]


def _check(name: str, ok: bool, detail: str) -> Result:
    return {"name": name, "ok": ok, "detail": detail}


NETWORK_VERBS: Final[
    Mapping[str, Callable[[NodeCore, Network, Params, Emit | None], Awaitable[Result]]]
] = {
    "status": status,
    "permissions": permissions,
    "forget.status": forget_status,
    "owner.recover": recover,
}
