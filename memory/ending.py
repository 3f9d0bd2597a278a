"""Forgetting a whole agent: a tombstone for each record, and one that ends the agent."""

from __future__ import annotations

from crdt.entry import Via
from keys.errors import RefusedError
from keys.ids import RecordId
from memory.authoring import AGENT_FORGOTTEN, Author
from memory.erasing import end_of


def forget_agent(author: Author, *, via: Via, now_us: int) -> tuple[list[RecordId], list[RecordId]]:
    """Erase everything of an agent and end it: what was erased, and what is left.

    The tombstones list no values, since nothing is written to the agent any more. Raises
    ``RefusedError`` unless this device holds ``admin``; without effect on one that is ended.
    """
    store = author.store
    if not store.authority.holds_device(author.device, "admin").held:
        raise RefusedError("only a device that holds admin forgets an agent")
    wanted = sorted(store.tombstones.remaining())
    if not store.tombstones.ended(store.authority):
        with author.commit(via, now_us) as commit:
            for record in wanted:
                commit.erase(RecordId(record), AGENT_FORGOTTEN)
            # The last one: who shows this place has all that were before it.
            commit.erase(end_of(store.agent), AGENT_FORGOTTEN)
    left = store.tombstones.remaining()
    return (
        [RecordId(r) for r in wanted if r not in left],
        [RecordId(r) for r in sorted(left)],
    )
