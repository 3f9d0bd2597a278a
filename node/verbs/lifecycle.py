"""Verbs about memories as a whole: supersede, merge, pin, unpin."""

from __future__ import annotations

from typing import Any

from keys.errors import UsageError
from memory.authoring import Author
from memory.lifecycle import merge, pin, supersede
from memory.query import get
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.present import record_of
from node.verbs.targets import person_scope, target_in

Result = dict[str, Any]


async def supersede_verb(core: NodeCore, params: Params) -> Result:
    """Say that one live memory replaces another."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, by, reason = params.text("record"), params.text("by"), params.text("reason")
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        old, new = (target_in(store, params.caller, text, now_us) for text in (wanted, by))
        supersede(author, old, new, reason, via=params.caller.via, now_us=now_us)
        return {"record": str(new), "supersedes": str(old)}

    return await handle.write(act)


async def merge_verb(core: NodeCore, params: Params) -> Result:
    """Make one memory of several."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, text, reason = params.texts("records"), params.text("text"), params.text("reason")
    params.done()
    if not wanted:
        raise UsageError("merge takes the records to merge")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        records = [target_in(store, params.caller, one, now_us) for one in wanted]
        written = merge(author, records, text, reason, via=params.caller.via, now_us=now_us)
        seen = get(store, person_scope(store), written.record, now_us=now_us)
        return {
            "record": str(written.record),
            "state": seen.state_at(now_us),
            "created": written.created,
            "supersedes": [str(r) for r in dict.fromkeys(records) if r != written.record],
        }

    return await handle.write(act)


async def pin_verb(core: NodeCore, params: Params) -> Result:
    """Keep a memory in every context block."""
    return await _pin(core, params, pinned=True)


async def unpin_verb(core: NodeCore, params: Params) -> Result:
    """Let a memory compete for its place again."""
    return await _pin(core, params, pinned=False)


async def _pin(core: NodeCore, params: Params, *, pinned: bool) -> Result:
    handle = await core.agents.resolve(params.text("agent"))
    wanted = params.text("record")
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        record = target_in(store, params.caller, wanted, now_us)
        pin(author, record, pinned=pinned, via=params.caller.via, now_us=now_us)
        seen = get(store, person_scope(store), record, now_us=now_us)
        return record_of(seen, now_us) | {"pinned": pinned}

    return await handle.write(act)
