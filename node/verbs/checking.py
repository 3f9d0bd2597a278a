"""Verbs that check and explain: digest, rebuild, audit."""

from __future__ import annotations

from typing import Any

from keys.errors import UsageError
from keys.ids import DeviceId, Incarnation
from memory.audit import count_records, log_lines, verify_log
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from node.params import Params
from node.times import iso_ms
from node.verbs.subjects import device_of
from node.verbs.targets import record_in

Result = dict[str, Any]
LOG_LIMIT = 50


async def digest(core: NodeCore, params: Params) -> Result:
    """The digest of the replicated read model."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()

    def read(store: AgentStore) -> Result:
        vector = [
            {
                "device": str(DeviceId(log.device)),
                "incarnation": str(Incarnation(log.incarnation)),
                "seq": tip.seq,
                "hash": str(tip.hash),
            }
            for log, tips in store.vector().items()
            for tip in tips
        ]
        return {
            "digest": store.digest_text(),
            "records": count_records(store),
            "vector": sorted(vector, key=lambda v: (v["device"], v["incarnation"], v["seq"])),
        }

    return await handle.read(read)


async def rebuild(core: NodeCore, params: Params) -> Result:
    """Make the read model anew from the log."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()

    def act(store: AgentStore, _author: object, _now_us: int) -> Result:
        before = store.digest_text()
        store.rebuild()
        return {"digest_before": before, "digest_after": store.digest_text()}

    return await handle.write(act)


async def audit_verify(core: NodeCore, params: Params) -> Result:
    """Prove the signed log of one agent, or of all."""
    wanted = params.optional_text("agent")
    params.done()
    handles: list[AgentHandle] = (
        await core.agents.open_all() if wanted is None else [await core.agents.resolve(wanted)]
    )
    total: Result = {"ok": True, "logs": 0, "entries": 0, "erased": 0, "problems": []}
    for handle in handles:
        found = await handle.read(verify_log)
        total["logs"] += found.logs
        total["entries"] += found.entries
        total["erased"] += found.erased
        total["problems"] += [f"{handle.agent}: {p}" for p in found.problems]
    return total | {"ok": not total["problems"]}


async def audit_log(core: NodeCore, params: Params) -> Result:
    """Who wrote, when, about which record; never what."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, device_text = params.optional_text("record"), params.optional_text("device")
    limit = params.number("limit", LOG_LIMIT)
    params.done()
    if not 1 <= limit <= 10_000:
        raise UsageError("a limit is from 1 to 10000")
    device = await device_of(core, device_text) if device_text else None

    def read(store: AgentStore) -> Result:
        record = record_in(store, wanted) if wanted else None
        lines = log_lines(store, record=record, device=device, limit=limit)
        for line in lines:
            time_ms = line.pop("time_ms")
            line |= {"recorded_at": iso_ms(time_ms), "recorded_at_us": time_ms * 1000}
        return {"log": lines}

    return await handle.read(read)
