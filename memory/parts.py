"""Whole listings of the query layer: what has a name, belongs to a record, or is of a kind."""

from __future__ import annotations

from collections.abc import Iterator

from keys.limits import LIST_LIMIT_MAX
from memory.query import Filters, Seen, list_records
from memory.scope import Scope
from memory.store import AgentStore


def all_of(store: AgentStore, scope: Scope, filters: Filters, now_us: int) -> Iterator[Seen]:
    """Every record that passes the filters, newest first, read page by page."""
    cursor: str | None = None
    while True:
        page = list_records(
            store, scope, filters, limit=LIST_LIMIT_MAX, cursor=cursor, now_us=now_us
        )
        yield from page.records
        cursor = page.next
        if cursor is None:
            return
