"""What two devices did at once and a person may want to look at: listed, and resolved.

1. ``successors``: one memory replaced by several that are live.
2. ``duplicates``: one value held by several live records, of which readers see the first.
3. ``values``: one record with concurrent values, of fields or of creations under one id.
Nothing here decides what is read; the fold does, the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import put
from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from keys.signing import random_bytes
from memory.authoring import Author
from memory.notes import check_reason
from memory.query import Seen, get
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import MARK_ID_BYTES

CONFLICTS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """One of them: ``others`` are the records it is between, ``keys`` what has several values."""

    record: RecordId
    what: str
    others: tuple[RecordId, ...] = ()
    keys: tuple[str, ...] = ()


def conflicts(store: AgentStore) -> list[Conflict]:
    """All of them, at most ``CONFLICTS_MAX``, by kind and id."""
    found = [*_successors(store), *_duplicates(store), *_values(store)]
    return found[:CONFLICTS_MAX]


def _successors(store: AgentStore) -> Iterator[Conflict]:
    rows = store.connection.execute(
        "SELECT p.record FROM link JOIN record AS s ON s.record = link.target"
        " JOIN record AS p ON p.n = link.n WHERE link.what = 'next' AND s.live = 1"
        " AND p.own = 'superseded' GROUP BY p.n HAVING count(*) > 1 ORDER BY p.record LIMIT ?",
        (CONFLICTS_MAX,),
    ).fetchall()
    for (record,) in rows:
        yield Conflict(RecordId(record), "successors", tuple(_live_next(store, record)))


def _live_next(store: AgentStore, record: bytes) -> list[RecordId]:
    found = store.connection.execute(
        "SELECT s.record FROM link JOIN record AS p USING (n)"
        " JOIN record AS s ON s.record = link.target"
        " WHERE p.record = ? AND link.what = 'next' AND s.live = 1 ORDER BY s.record",
        (record,),
    )
    return [RecordId(r) for (r,) in found]


def _duplicates(store: AgentStore) -> Iterator[Conflict]:
    groups: dict[bytes, list[RecordId]] = {}
    for first, record in store.connection.execute(
        "SELECT duplicate, record FROM record WHERE duplicate IS NOT NULL"
        " AND state IN ('new', 'current') ORDER BY duplicate, record LIMIT ?",
        (CONFLICTS_MAX,),
    ):
        groups.setdefault(first, []).append(RecordId(record))
    for first, others in groups.items():
        yield Conflict(RecordId(first), "duplicates", tuple(others))


def _values(store: AgentStore) -> Iterator[Conflict]:
    """The rows whose detail names disputed keys; the word is looked for in the packed bytes."""
    person = Scope(store.agent, every_state=True)
    rows = store.connection.execute(
        "SELECT record FROM record WHERE instr(detail, CAST('disputed' AS BLOB)) > 0"
        " AND own <> 'erased' ORDER BY record LIMIT ?",
        (CONFLICTS_MAX,),
    ).fetchall()
    for (record,) in rows:
        seen = get(store, person, RecordId(record), now_us=0)
        keys = seen.detail.get("disputed")
        if keys:
            yield Conflict(seen.record, "values", keys=tuple(keys))


def resolve(
    author: Author, record: RecordId, keep: RecordId | None, reason: str, via: Via, now_us: int
) -> list[RecordId]:
    """End a conflict: the others give way to ``keep``; those that are superseded by it now.

    Without ``keep`` the values that a record shows stay, and it is disputed no more. Raises
    ``UsageError`` where there is no such conflict, ``RefusedError`` where a person has to review.
    """
    store, reason = author.store, check_reason(reason)
    person = Scope(store.agent, every_state=True)
    if keep is None:
        seen = get(store, person, record, now_us=now_us)
        if not seen.detail.get("disputed"):
            raise UsageError("name what to keep", hint="roost conflicts list AGENT")
        _check_free(seen)
        mark = f"mark.{random_bytes(MARK_ID_BYTES).hex()}"
        with author.commit(via, now_us) as commit:
            commit.edit(record, [put(mark, f"resolved {reason}")])
        return []
    group = _group(store, record)
    if keep not in group or len(group) < 2:
        raise UsageError("this is not between the two", hint="roost conflicts list AGENT")
    others = [get(store, person, r, now_us=now_us) for r in sorted(group - {keep})]
    for seen in others:
        _check_free(seen)
    with author.commit(via, now_us) as commit:
        for seen in others:
            commit.edit(seen.record, [put(next_key(keep), reason)])
    return [seen.record for seen in others]


def _group(store: AgentStore, record: RecordId) -> set[RecordId]:
    """The records that a conflict named by any of them, or by what they replace, is between."""
    found = set(_live_next(store, record))
    for before in store.folder.tables.linked(record, "next"):
        rivals = set(_live_next(store, before))
        found |= rivals if record in rivals else set()
    for conflict in _duplicates(store):
        group = {conflict.record, *conflict.others}
        found |= group if record in group else set()
    return found


def _check_free(seen: Seen) -> None:
    if seen.detail.get("gated"):
        raise RefusedError(
            "a person decides about this record",
            hint=f"roost review reject AGENT {seen.record}",
            record=str(seen.record),
        )
