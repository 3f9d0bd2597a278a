"""The verb ``context``: the block that an agent is given of its memory."""

from __future__ import annotations

from typing import Any

from memory.context import BUDGET, Asked, context
from memory.scope import Scope
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.times import local_day
from node.verbs.kindparts import channel_of

Result = dict[str, Any]


async def context_verb(core: NodeCore, params: Params) -> Result:
    """What the agent remembers that fits a question and a budget of tokens."""
    handle = await core.agents.resolve(params.text("agent"))
    query, budget = params.optional_text("query") or "", params.number("budget", BUDGET)
    channel = channel_of(params)
    params.done()
    now_us = core.clock.now_us()
    asked = Asked(query, budget, local_day(now_us), handle.name)

    def read(store: AgentStore) -> Result:
        block = context(
            store, Scope(store.agent, every_state=False, channel=channel), asked, now_us
        )
        entries = [
            {"record": str(e.record), "section": e.section, "tokens": e.tokens}
            for e in block.entries
        ]
        return {
            "text": block.text,
            "entries": entries,
            "dropped": [str(record) for record in block.dropped],
            "frame": block.frame,
            "tokens": block.tokens,
        }

    return await handle.read(read)
