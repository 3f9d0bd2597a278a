"""Forget: erasing a memory everywhere, and what an erasure reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keys.errors import UsageError
from keys.ids import RecordId
from memory.authoring import Author
from memory.forgetting import (
    Place,
    Reach,
    check_erasable,
    forget,
    is_clean,
    reach_of,
    tombstone_places,
)
from memory.kinds import live_named
from memory.notes import check_reason
from memory.query import Filters, list_records
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.service import Emit
from node.verbs.targets import person_scope, record_in
from node.verbs.wishes import forget_as_agent

if TYPE_CHECKING:
    from node.network import Network

Result = dict[str, Any]
WHERE_MAX = 1000


async def forget_verb(
    core: NodeCore, network: Network, params: Params, _emit: Emit | None
) -> Result:
    """Erase memories, what was derived from them, and on request the sources with the words."""
    if params.caller.bound:
        return await forget_as_agent(core, network, params)
    handle = await core.agents.resolve(params.text("agent"))
    caller = params.caller
    wanted, where = params.optional_text("record"), params.optional_text("where")
    with_sources, dry_run = params.flag("with_sources"), params.flag("dry_run")
    reason = check_reason(params.text("reason"))
    params.done()
    if (wanted is None) == (where is None):
        raise UsageError("name either a record or --where")

    def act(store: AgentStore, author: Author, now_us: int) -> tuple[Result, list[list[Place]]]:
        records = (
            [record_in(store, wanted)]
            if wanted is not None
            else _matching(store, where or "", now_us)
        )
        for record in records:
            check_erasable(store, record, now_us)
        reach = reach_of(store, records)
        left: list[RecordId] = []
        if not dry_run and reach.named:
            left = forget(
                author,
                reach,
                with_sources=with_sources,
                reason=reason,
                via=caller.via,
                now_us=now_us,
            )
            if where is not None and not where.startswith("entity="):
                left += [r for r in _matching(store, where, now_us) if r not in left]
        result = _result(reach, left, dry_run=dry_run, with_sources=with_sources)
        return result, [tombstone_places(store, RecordId.parse(r)) for r in result["erased"]]

    result, places = await handle.write(act, erases=True)
    return result | {"receipts": await network.receipts(handle, places) if places else []}


def _result(reach: Reach, left: list[RecordId], *, dry_run: bool, with_sources: bool) -> Result:
    erased = [*reach.named, *reach.derived, *reach.holders]
    erased += reach.sources if with_sources else ()
    return {
        "erased": [] if dry_run else [str(r) for r in erased if r not in left],
        "would_erase": [str(r) for r in erased] if dry_run else [],
        "derived": [str(r) for r in reach.derived],
        "holders": [str(r) for r in reach.holders],
        "sources": [str(r) for r in reach.sources],
        "left": [str(r) for r in left],
    }


def _matching(store: AgentStore, where: str, now_us: int) -> list[RecordId]:
    key, _, value = where.partition("=")
    if key not in ("tag", "source", "session", "entity") or not value:
        raise UsageError("--where takes tag=T, source=S, session=ID or entity=ID")
    if key == "entity":
        named = live_named(store, "entity", value, now_us)
        return [s.record for s in named] or [record_in(store, value)]
    filters = Filters(
        tags=(value,) if key == "tag" else (),
        source=value if key == "source" else None,
        session=value if key == "session" else None,
    )
    out: list[RecordId] = []
    cursor: str | None = None
    while True:
        page = list_records(
            store, person_scope(store), filters, limit=WHERE_MAX, cursor=cursor, now_us=now_us
        )
        out += [s.record for s in page.records if s.state != "erased"]
        cursor = page.next
        if cursor is None:
            return out


async def forget_status(
    core: NodeCore, network: Network, params: Params, _emit: Emit | None
) -> Result:
    """Whether a record is erased here, and which peers have shown that they did it (R34)."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted = params.text("record")
    params.done()

    def read(store: AgentStore) -> tuple[RecordId, bool, list[Place]]:
        record = record_in(store, wanted)
        erased = store.folder.tables.is_erased(record) and is_clean(store, record)
        return record, erased, tombstone_places(store, record)

    record, erased, places = await handle.read(read)
    return {
        "record": str(record),
        "erased": erased,
        "receipts": await network.receipts(handle, [places]),
    }
