"""Doctor: checks of the home, the keys, the files and the disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from typing import Any, Final

from keys.errors import RoostError
from memory.audit import quick_check
from memory.store import AgentStore
from node.agents import AgentHandle
from node.core import NodeCore
from node.params import Params

Result = dict[str, Any]
FREE_BYTES_MIN: Final = 64 * 1024 * 1024


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
