"""Verbs of conflicts: what devices did at once, and what a person makes of it."""

from __future__ import annotations

from typing import Any

from memory.authoring import Author
from memory.conflicts import Conflict, conflicts, resolve
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.present import record_of
from node.verbs.targets import record_in, seen_in

Result = dict[str, Any]


async def conflicts_list(core: NodeCore, params: Params) -> Result:
    """Memories replaced by several at once, values held twice, and concurrent values."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> list[Result]:
        return [_row(store, c, now_us) for c in conflicts(store)]

    return {"conflicts": await handle.read(read)}


def _row(store: AgentStore, conflict: Conflict, now_us: int) -> Result:
    row = record_of(seen_in(store, conflict.record, now_us), now_us)
    between = [record_of(seen_in(store, r, now_us), now_us) for r in conflict.others]
    return row | {
        "conflict": True,
        "what": conflict.what,
        "disputed": list(conflict.keys),
        "between": [{"record": r["record"], "text": r.get("text")} for r in between],
    }


async def conflicts_resolve(core: NodeCore, params: Params) -> Result:
    """Keep one of the records of a conflict, or the values that a record shows."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, keep = params.text("record"), params.optional_text("keep")
    reason, caller = params.optional_text("reason") or "a conflict was resolved", params.caller
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        record = record_in(store, wanted)
        kept = record_in(store, keep) if keep is not None else None
        gone = resolve(author, record, kept, reason, caller.via, now_us)
        return {"record": str(kept or record), "superseded": [str(r) for r in gone]}

    return await handle.write(act)
