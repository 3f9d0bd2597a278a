"""Forget a whole agent, on every device that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory.authoring import Author
from memory.ending import forget_agent
from memory.erasing import end_of
from memory.forgetting import Place, tombstone_places
from memory.notes import check_reason
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.service import Emit

if TYPE_CHECKING:
    from node.network import Network

Result = dict[str, Any]


async def forget_agent_verb(
    core: NodeCore, network: Network, params: Params, _emit: Emit | None
) -> Result:
    """Erase an agent; its name is free again. By its id also afterwards, to see the receipts."""
    handle = await core.agents.resolve_any(params.text("agent"))
    passphrase = params.optional_text("passphrase") or ""
    check_reason(params.text("reason"))
    params.done()
    await core.ownership.unlock(passphrase)

    def act(store: AgentStore, author: Author, now_us: int) -> tuple[Result, list[Place]]:
        erased, left = forget_agent(author, via=params.caller.via, now_us=now_us)
        result: Result = {
            "agent": str(store.agent),
            "erased": [str(r) for r in erased],
            "left": [str(r) for r in left],
        }
        return result, tombstone_places(store, end_of(store.agent))

    name = handle.name
    result, places = await handle.write(act, erases=True)
    receipts = await network.receipts(handle, [places])
    return result | {"name": name, "receipts": receipts}
