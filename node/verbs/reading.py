"""Verbs that read memories. Every one goes through the query layer."""

from __future__ import annotations

from typing import Any

from keys.ids import RecordId
from memory.clocks import clock_suspects
from memory.query import (
    Filters,
    Seen,
    explain,
    get,
    history,
    list_records,
    live_history,
    misses,
    search,
)
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.present import detail_of, record_of, shown_of, version_of
from node.verbs.targets import target_in

Result = dict[str, Any]
SEARCH_LIMIT = 10
LIST_LIMIT = 50


def filters_of(params: Params) -> Filters:
    """The filters that ``search`` and ``list`` share."""
    return Filters(
        kinds=params.texts("kinds"),
        tags=params.texts("tags"),
        states=params.texts("states"),
        layer=params.optional_text("layer"),
        source=params.optional_text("source"),
        session=params.optional_text("session"),
        channel=params.optional_text("channel"),
        since_us=params.time("since"),
        until_us=params.time("until"),
        at_us=params.time("at"),
        as_of_us=params.time("as_of"),
    )


async def search_verb(core: NodeCore, params: Params) -> Result:
    """Find live memories by their words."""
    handle = await core.agents.resolve(params.text("agent"))
    query, limit = params.text("query"), params.number("limit", SEARCH_LIMIT)
    why, unfound, caller = params.flag("explain"), params.flag("misses"), params.caller
    filters = filters_of(params)
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        scope = caller.scope(store).readers
        found = search(store, scope, query, filters, limit=limit, now_us=now_us)
        results = [record_of(s, now_us) | {"score": round(s.score, 6)} for s in found]
        answer: Result = {"results": results}
        if unfound:
            answer["misses"] = misses(store, scope, query, filters, now_us=now_us)
        if not why:
            return answer
        for result in results:
            result["why"] = f"holds words of the query; BM25 {result['score']}"
        if not caller.bound:  # what is withheld is a person's to know
            held = explain(store, scope, query, filters, limit=limit, now_us=now_us)
            answer["withheld"] = [{"record": str(r), "reason": reason} for r, reason in held]
        return answer

    return await handle.read(read)


async def list_verb(core: NodeCore, params: Params) -> Result:
    """List memories newest first: a person's in every state, an agent's live ones."""
    caller = params.caller
    handle = await core.agents.resolve(params.text("agent"))
    limit, cursor = params.number("limit", LIST_LIMIT), params.optional_text("cursor")
    filters = filters_of(params)
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        page = list_records(
            store, caller.scope(store), filters, limit=limit, cursor=cursor, now_us=now_us
        )
        suspects = clock_suspects(store, [s.record for s in page.records], now_us)
        return {
            "records": [record_of(s, now_us) | _clock(s, suspects) for s in page.records],
            "total": page.total,
            "next": page.next,
        }

    return await handle.read(read)


async def show(core: NodeCore, params: Params) -> Result:
    """Everything about one memory."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, caller = params.text("record"), params.caller
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        record = target_in(store, caller, wanted, now_us)
        seen = get(store, caller.scope(store), record, now_us=now_us)
        shown = shown_of(seen, now_us) if caller.bound else detail_of(seen, now_us)
        return shown | _clock(seen, clock_suspects(store, [record], now_us))

    return await handle.read(read)


def _clock(seen: Seen, suspects: frozenset[RecordId]) -> Result:
    """Says of a record that its times are more than a day off (local; see ``clocks``)."""
    return {"clock_suspect": True} if seen.record in suspects else {}


async def history_verb(core: NodeCore, params: Params) -> Result:
    """Every version of a memory and of what it replaced or was replaced by."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, caller = params.text("record"), params.caller
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        record = target_in(store, caller, wanted, now_us)
        scope = caller.scope(store)
        versions = (
            live_history(store, scope, record, now_us=now_us)
            if caller.bound
            else history(store, scope, record)
        )
        return {"versions": [version_of(v, i) for i, v in enumerate(versions, 1)]}

    return await handle.read(read)
