"""Doctor: checks of the home, the keys, the files and the disk."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import Any, Final

from keys.errors import RefusedError, RoostError
from keys.ids import RecordId
from memory.query import never_valid
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from node.home import check_place
from node.mending import mend
from node.params import Params
from node.verbs.attention import aside_sentences
from node.verbs.targets import person_scope

Result = dict[str, Any]
PROBLEMS_SHOWN: Final = 3


async def doctor(core: NodeCore, params: Params) -> Result:
    """Checks of the home, the keys, the files and the disk."""
    params.done()
    checks = await asyncio.to_thread(_home_checks, core)
    for handle in await core.agents.living():
        checks += await _agent_checks(core, handle)
    checks += [
        _check(f"database {agent.short()}", ok=False, detail=exc.message)
        for agent, exc in core.agents.broken.items()
    ]
    checks += [_check("set aside", ok=True, detail=s) for s in await aside_sentences(core)]
    return {"ok": all(c["ok"] for c in checks), "checks": checks}


def _home_checks(core: NodeCore) -> list[Result]:
    home = core.home
    mode = stat.S_IMODE(os.stat(home.path).st_mode)
    wide = [p.name for p in home.keys_dir.iterdir() if p.stat().st_mode & 0o077]
    trouble = core.agents.room.trouble()
    free = core.agents.room.space().free_bytes
    place = core.marker.place_doubt
    bad_place = _bad_place(core)
    return [
        _check("place", bad_place is None, bad_place or "on a local disk that nobody copies"),
        _check("home", mode & 0o077 == 0, f"{home.path} has mode {mode:04o}"),
        _check(
            "keys",
            not wide,
            "only this account reads them"
            if not wide
            else "readable by others: " + ", ".join(wide),
        ),
        _check("disk", trouble is None, trouble or f"{free // 2**20} MiB free on the home's disk"),
        _check(
            "reserve",
            core.home.reserve_path.exists() or trouble is not None,
            "room is kept for erasing on a full disk"
            if core.home.reserve_path.exists()
            else "no room is kept for erasing on a full disk",
        ),
        _check(
            "marker",
            place is None,
            "the home is where it was"
            if place is None
            else f"the home was moved or copied ({place})",
        ),
    ]


def _bad_place(core: NodeCore) -> str | None:
    """Why a database should not lie here, though somebody forced it (S-G5)."""
    try:
        check_place(core.home.path, {"HOME": os.environ.get("HOME", "")})
    except RefusedError as exc:
        return exc.message
    return None


async def _agent_checks(core: NodeCore, handle: AgentHandle) -> list[Result]:
    def look(store: AgentStore) -> list[Result]:
        return [
            _check(
                f"values key {handle.name}",
                not store.waiting_for_key,
                "waiting for the fingerprint key" if store.waiting_for_key else "here",
            ),
            _times(handle.name, never_valid(store, person_scope(store))),
            _check(f"erasures {handle.name}", store.clean(), "no erased bytes wait to be cleaned"),
        ]

    name = f"database {handle.name}"
    try:
        checks = await handle.read(look)
        problems = await mend(core, handle)
    except RoostError as exc:
        return [_check(name, ok=False, detail=exc.message)]
    detail = f"{'; '.join(problems[:PROBLEMS_SHOWN])}; it was made anew" if problems else "ok"
    return [_check(name, not problems, detail), *checks]


def _times(name: str, never: list[RecordId]) -> Result:
    """M-E5: memories that no reader finds, whatever the day; retiring or revising one mends it."""
    shown = ", ".join(map(str, never[:PROBLEMS_SHOWN]))
    detail = f"{len(never)} valid at no time: {shown}" if never else "every validity begins first"
    return _check(f"times {name}", not never, detail)


def _check(name: str, ok: bool, detail: str) -> Result:
    return {"name": name, "ok": ok, "detail": detail}
