"""Expiry for real: what has expired is erased by tombstones that a writer's job writes (R36)."""

from __future__ import annotations

from typing import Final

from crdt.entry import Via
from keys.ids import RecordId
from memory.authoring import Author
from memory.forgetting import reach_of
from memory.store import AgentStore

BATCH: Final = 200


def expired(store: AgentStore, now_us: int) -> list[RecordId]:
    """Records whose time is over by this node's clock and that are not erased, oldest first."""
    rows = store.connection.execute(
        "SELECT record FROM record WHERE expires <= ? AND own <> 'erased'"
        " ORDER BY expires, record LIMIT ?",
        (now_us, BATCH),
    )
    return [RecordId(r[0]) for r in rows]


def expire(author: Author, now_us: int) -> list[RecordId]:
    """Erase what has expired with what was derived from it; the records that were erased.

    The files still hold the bytes until ``AgentStore.clean`` has run. The caller has made sure that
    the clock of this node is right (R36).
    """
    store = author.store
    over = expired(store, now_us)
    if not over:
        return []
    gone: dict[RecordId, str] = dict.fromkeys(over, "expired")
    for record in reach_of(store, over).derived:
        gone.setdefault(record, "derived")
    with author.commit(Via.CONSOLIDATOR, now_us) as commit:
        for record, why in gone.items():
            if not store.folder.tables.is_erased(record):
                commit.erase(record, why)
    return [r for r in gone if store.folder.tables.is_erased(r)]
