"""What needs a person's attention in this home: damage, restores, the disk; in words."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from keys.authority import Authority
from keys.ids import OwnerId
from memory.proposals import other_bytes
from memory.stamps import ahead
from memory.store import AgentStore
from node.aside import Aside, all_aside
from node.core import NodeCore
from node.handle import AgentHandle
from node.marker import DoubtKind
from node.times import span

Result = dict[str, Any]

ODD_MAX: Final = 20  # alerts of one kind
_NEXT_WRITE: Final = "the next write opens a new log"
DOUBTS: Final[dict[DoubtKind, str]] = {
    DoubtKind.MISSING: f"this home was restored or copied (its marker is missing); {_NEXT_WRITE}",
    DoubtKind.MOVED: f"this home was restored or copied (it lies elsewhere); {_NEXT_WRITE}",
    DoubtKind.BEHIND: f"its file is older than what was written to it (restored?); {_NEXT_WRITE}",
    DoubtKind.PEER: f"a peer holds more of what was written here (restored?); {_NEXT_WRITE}",
    DoubtKind.DAMAGED: f"its file was damaged and made anew; {_NEXT_WRITE}",
    DoubtKind.CLONED: f"another copy of this device was up; {_NEXT_WRITE}",
}


def doubt_alert(handle: AgentHandle) -> list[Result]:
    """That our log of an agent will not be continued, and why."""
    if handle.doubt is None:
        return []
    return [_alert("restored", f"{handle.name}: {DOUBTS[handle.doubt.kind]}")]


async def home_alerts(core: NodeCore) -> list[Result]:
    """What was set aside, what cannot be opened, what is missing, and the disk."""
    trouble = await asyncio.to_thread(core.agents.room.trouble)
    alerts = [_alert("disk", f"{trouble}; nothing is pulled")] if trouble else []
    stopped = core.agents.stopped
    if stopped is not None:
        alerts.append(_alert("cloned", f"{stopped.message}: {stopped.hint}"))
    alerts += [_alert("damaged", sentence) for sentence in await aside_sentences(core)]
    alerts += [
        _alert(exc.code, f"{agent.short()} cannot be opened: {exc.message}")
        for agent, exc in core.agents.broken.items()
    ]
    return alerts + await _missing(core)


async def stamp_alerts(core: NodeCore, handle: AgentHandle) -> list[Result]:
    """Whose changes carry a time that is still to come; they are taken like any other (S-B3)."""
    now_us = core.clock.now_us()
    found = await handle.read(lambda store: ahead(store.connection, now_us))
    if not found:
        return []
    peers = await core.db.run(lambda db: db.peers.all())
    names = {p.device: p.shown_name for p in peers}
    return [
        _alert(
            "stamp",
            f"{handle.name}: {names.get(device, device.short())} wrote with a clock that was"
            f" {span(offset_ms)}; the times of what it wrote are wrong, nothing else is",
        )
        for device, offset_ms in found
    ]


async def _missing(core: NodeCore) -> list[Result]:
    """Agents of this node without a file: nothing is concluded from that, it is fetched again."""
    here = {h.agent for h in core.agents.all()} | core.agents.broken.keys()
    return [
        _alert(
            "missing",
            f"{k.name or k.agent.short()}: its file is gone; it is fetched anew from peers that"
            " have it",
        )
        for k in await core.db.run(lambda db: db.agents())
        if k.accepted and k.left_us is None and k.agent not in here
    ]


async def aside_sentences(core: NodeCore) -> list[str]:
    """One sentence for each file that was set aside."""
    home = core.home

    def look() -> list[Aside]:
        return [*all_aside(home.path), *all_aside(home.agents_dir)]

    names = {core.agents.path_of(h.agent).name: h.name for h in core.agents.all()}
    return [_sentence(a, names.get(a.name, a.name)) for a in await asyncio.to_thread(look)]


def _sentence(aside: Aside, name: str) -> str:
    said = f"{name}: its file was damaged and set aside on {aside.at} as {aside.path.name}"
    report = aside.report
    if "entries" in report:
        said += f"; {report['entries']} entries were read back from it"
        if report.get("payloads"):
            said += f", the content of {report['payloads']} is asked for at peers"
        if report.get("apart"):
            said += (
                f", {report['apart']} behind a gap are in that file only, unless a peer has them"
            )
    elif report:
        peers = report.get("peer", 0)
        said += f"; {peers} peers and {report.get('setting', 0)} settings were read back from it"
        said += "; a peer that is missing has to be paired again"
    return f"{said}; remove it when nothing is missed"


def act_alerts(store: AgentStore, name: str) -> list[Result]:
    """Acts of persons that have no effect: who signed them had no right, or named other bytes.

    Not those of somebody whose right was taken afterwards: that they end is what was wanted.
    """
    alerts = [
        _alert(
            "statement",
            f"{name}: of the kind {kind}, {number} signed by {OwnerId(signer).short()}"
            " have no effect: that owner had no right to them",
        )
        for (kind, signer), number in sorted(Counter(_unlawful(store.authority)).items())
    ]
    odd = other_bytes(store)
    return alerts + [
        _alert(
            "approval",
            f"{name}: an approval of {record} names bytes that are not here; it shows none of them",
        )
        for record in odd[:ODD_MAX]
    ]


def _unlawful(authority: Authority) -> list[tuple[str, bytes]]:
    return [(s.kind, s.signer) for s in authority.refused()]


def _alert(code: str, message: str) -> Result:
    return {"code": code, "message": message}
