"""Forget, as an agent asks for it: retired at once, erased when a person says so (R37).

What the caller's own session made it may erase itself; an agent's policy may let it erase more.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from keys.errors import RefusedError
from keys.ids import RecordId
from memory.authoring import Author
from memory.forgetting import (
    Place,
    Reach,
    check_erasable,
    forget,
    reach_of,
    tombstone_places,
)
from memory.notes import check_reason
from memory.store import AgentStore
from memory.writing import mark
from node.caller import Caller
from node.core import NodeCore
from node.handle import AgentHandle
from node.params import Params
from node.verbs.targets import target_in

if TYPE_CHECKING:
    from node.network import Network

Result = dict[str, Any]


async def forget_as_agent(core: NodeCore, network: Network, params: Params) -> Result:
    """Erase what the session made itself; retire anything else, and ask a person."""
    caller = params.caller
    handle = await core.agents.resolve(params.text("agent"))
    wanted, dry_run = params.text("record"), params.flag("dry_run")
    reason = check_reason(params.text("reason"))
    params.done()
    now_us = core.clock.now_us()

    def look(store: AgentStore) -> tuple[RecordId, Reach]:
        record = target_in(store, caller, wanted, now_us)
        check_erasable(store, record, now_us)
        return record, reach_of(store, [record])

    record, reach = await handle.read(look)
    own = await handle.read(lambda store: _may_erase(store, caller, reach))
    if dry_run:
        return _result(record, would_erase=own, would_propose=not own)
    if own:
        return await _erase(handle, network, caller, record, reason)
    state = await handle.write(lambda s, a, now: _retire(s, a, caller, record, reason, now))
    await core.db.run(lambda db: db.wishes.add(handle.agent, record, now_us, caller.token))
    return _result(record, state=state, proposed=True)


def _retire(
    store: AgentStore, author: Author, caller: Caller, record: RecordId, reason: str, now_us: int
) -> str:
    target_in(store, caller, str(record), now_us)
    with contextlib.suppress(RefusedError):  # what a person approved stays until a person decides
        return mark(author, record, "deprecated", reason, via=caller.via, now_us=now_us)
    return "current"


async def _erase(
    handle: AgentHandle, network: Network, caller: Caller, record: RecordId, reason: str
) -> Result:
    def act(store: AgentStore, author: Author, now_us: int) -> tuple[list[RecordId], list[Place]]:
        reach = reach_of(store, [record])
        if not _may_erase(store, caller, reach):
            raise RefusedError("others wrote on it meanwhile; ask again", record=str(record))
        left = forget(
            author, reach, with_sources=False, reason=reason, via=caller.via, now_us=now_us
        )
        return left, tombstone_places(store, record)

    left, places = await handle.write(act, erases=True)
    receipts = await network.receipts(handle, [places]) if places else []
    return _result(record, erased=not left, receipts=receipts)


def _may_erase(store: AgentStore, caller: Caller, reach: Reach) -> bool:
    """R37: what its own session made, or whatever the agent's policy lets it."""
    own = all(str(r) in caller.own for r in (*reach.named, *reach.derived))
    return own or store.authority.policy.agents_erase


def _result(record: RecordId, **more: object) -> Result:
    return {"record": str(record), "erased": False, "proposed": False} | more
