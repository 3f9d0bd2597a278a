"""The one query layer: every read of memory goes through here.

1. Readers see live records only: not proposed, deprecated, superseded, withheld, returning,
   erased, expired or duplicate. Filters are in the query, not after it.
2. Times are microseconds UTC; ``now_us`` is this node's clock, and only expiry and the present
   look at it.
3. User text never is FTS5 syntax.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import keys.codec as codec
from keys.errors import AmbiguousError, NotFoundError, RefusedError, UsageError
from keys.ids import RecordId, prefix_range
from keys.limits import LIST_LIMIT_MAX, QUERY_BYTES_MAX, WALL_MS_MAX
from memory.filters import IN_CHANNEL, LIVE, conditions
from memory.filters import STATES as STATES
from memory.filters import Filters as Filters
from memory.ranking import Ranking
from memory.rows import LIVE_STATES
from memory.scope import Scope
from memory.store import AgentStore
from memory.terms import match_expression, query_terms
from memory.words import INDEXES

_SEEN: Final = (
    "r.n, r.record, r.kind, r.state, r.duplicate, r.text, r.category, r.provenance, r.source,"
    " r.speaker, r.session, r.layer, r.weight, r.title, r.valid_from, r.valid_to, r.expires,"
    " r.created_ms, r.changed_ms, r.device, r.via, r.detail"
)
_RIVAL: Final = (
    "SELECT 1 FROM link AS a JOIN link AS b ON b.n = a.n AND b.target <> a.target"
    " JOIN record AS s ON s.record = b.target"
    " WHERE a.target = ? AND a.what = 'next' AND b.what = 'next' AND s.live = 1 LIMIT 1"
)
_FIELDS: Final = tuple(part.strip().removeprefix("r.") for part in _SEEN.split(","))


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a reader is shown it. Times in microseconds, record times in milliseconds."""

    n: int
    record: RecordId
    kind: str
    state: str
    duplicate: bytes | None
    text: str
    category: str
    provenance: str
    source: str | None
    speaker: str | None
    session: str | None
    layer: str
    weight: float
    title: str | None
    valid_from: int | None
    valid_to: int | None
    expires: int | None
    created_ms: int
    changed_ms: int
    device: bytes
    via: int
    detail: dict[str, Any]
    tags: tuple[str, ...]
    score: float = 0.0
    rival: bool = False  # another live record replaces the same one

    def state_at(self, now_us: int) -> str:
        """The state with what depends on the clock and on other records of the same value."""
        if self.state in LIVE_STATES and self.expires is not None and self.expires <= now_us:
            return "expired"
        return "duplicate" if self.state in LIVE_STATES and self.duplicate else self.state


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, how many there are in all, and where the next page starts."""

    records: list[Seen]
    total: int
    next: str | None


def search(
    store: AgentStore, scope: Scope, query: str, filters: Filters, *, limit: int, now_us: int
) -> list[Seen]:
    """Live records that hold any of the query's words, best first (BM25, then id)."""
    scope.require(store.agent)
    terms = _terms(query)
    if not terms:
        return []
    found = _ranking(store, scope, filters, now_us).best(terms, _limit(limit))
    # The wide rows are read of those that are returned, not of all that match.
    places = ", ".join(str(hit.n) for hit in found)
    rows = store.connection.execute(
        f"SELECT {_SEEN}, 0.0 FROM record AS r WHERE r.n IN ({places})"  # noqa: S608 - numbers
    )
    seen = {row[0]: row[:-1] for row in rows}
    return _seen(store.connection, [(*seen[hit.n], hit.score) for hit in found])


def misses(
    store: AgentStore, scope: Scope, query: str, filters: Filters, *, now_us: int
) -> list[str]:
    """The words of a query that stand in no record a reader may find under these filters."""
    scope.require(store.agent)
    ranking = _ranking(store, scope, filters, now_us)
    return [term for term in _terms(query) if not ranking.holds(term)]


def _ranking(store: AgentStore, scope: Scope, filters: Filters, now_us: int) -> Ranking:
    where, values, join = conditions(filters, scope, now_us, readers=True)
    past = filters.as_of_us is not None
    return Ranking(store.connection, join, where, values, past=past)


def _terms(query: str) -> list[str]:
    if len(query.encode("utf-8", "replace")) > QUERY_BYTES_MAX:
        raise UsageError(f"a query has at most {QUERY_BYTES_MAX} bytes")
    return query_terms(query)


def explain(
    store: AgentStore, scope: Scope, query: str, filters: Filters, *, limit: int, now_us: int
) -> list[tuple[RecordId, str]]:
    """Records that would have matched but are withheld: ids and the class of reason only."""
    scope.require(store.agent)
    terms = _terms(query)
    if not terms:
        return []
    where, values, join = conditions(filters, scope, now_us, readers=True)
    values |= {"match": match_expression(terms), "limit": _limit(limit)}
    rows = [
        row
        for index in INDEXES
        for row in store.connection.execute(
            f"SELECT {_SEEN}, 0.0 FROM {index} JOIN record AS r ON r.n = {index}.rowid {join}"  # noqa: S608
            f" WHERE {index} MATCH :match AND NOT ({where}) ORDER BY r.record LIMIT :limit",
            values,
        )
    ]
    rows = sorted(rows, key=lambda row: bytes(row[1]))[:limit]
    return [
        (s.record, state if (state := s.state_at(now_us)) not in LIVE_STATES else "filtered")
        for s in _seen(store.connection, rows)
    ]


def list_records(
    store: AgentStore,
    scope: Scope,
    filters: Filters,
    *,
    limit: int,
    cursor: str | None,
    now_us: int,
) -> Page:
    """Records newest first, page by page; with ``every_state`` also what is withheld."""
    scope.require(store.agent)
    where, values, join = conditions(filters, scope, now_us)
    total = store.connection.execute(
        f"SELECT count(*) FROM record AS r {join} WHERE {where}",  # noqa: S608 - see conditions
        values,
    ).fetchone()[0]
    if cursor is not None:
        where += " AND (r.created_ms, r.record) < (:cursor_ms, :cursor_record)"
        values["cursor_ms"], values["cursor_record"] = _read_cursor(cursor)
    rows = store.connection.execute(
        f"SELECT {_SEEN}, 0.0 FROM record AS r {join} WHERE {where}"  # noqa: S608
        " ORDER BY r.created_ms DESC, r.record DESC LIMIT :limit",
        values | {"limit": _limit(limit)},
    ).fetchall()
    seen = _seen(store.connection, rows)
    more = len(seen) == limit
    return Page(seen, total, f"{seen[-1].created_ms}.{seen[-1].record}" if more else None)


def weightiest(
    store: AgentStore, scope: Scope, filters: Filters, limit: int, now_us: int
) -> list[Seen]:
    """At most ``limit`` records: the heaviest first, then the newest by the time in their ids."""
    scope.require(store.agent)
    where, values, join = conditions(filters, scope, now_us)
    rows = store.connection.execute(
        f"SELECT {_SEEN}, 0.0 FROM record AS r {join} WHERE {where}"  # noqa: S608 - see conditions
        " ORDER BY r.weight DESC, r.record DESC LIMIT :limit",
        values | {"limit": _limit(limit)},
    ).fetchall()
    return _seen(store.connection, rows)


def get(store: AgentStore, scope: Scope, record: RecordId, *, now_us: int) -> Seen:
    """One record; raises ``NotFoundError`` where there is none that this scope may see."""
    scope.require(store.agent)
    where = "1" if scope.every_state else LIVE
    where += f" AND {IN_CHANNEL}" if scope.channel is not None else ""
    rows = store.connection.execute(
        f"SELECT {_SEEN}, 0.0 FROM record AS r WHERE r.record = :record AND {where}",  # noqa: S608
        {"record": record, "now": now_us, "in_channel": scope.channel},
    ).fetchall()
    if not rows:
        raise NotFoundError("no such record", record=str(record))
    return _seen(store.connection, rows)[0]


def get_live(store: AgentStore, scope: Scope, record: RecordId, *, now_us: int) -> Seen | None:
    """One record that a reader may see, or None."""
    try:
        return get(store, scope.readers, record, now_us=now_us)
    except NotFoundError:
        return None


def never_valid(store: AgentStore, scope: Scope) -> list[RecordId]:
    """Live records whose validity ends before it begins: no reader ever finds them (M-E5).

    They are not written here; another program's may come from a peer.
    """
    scope.require(store.agent)
    rows = store.connection.execute(
        "SELECT record FROM record WHERE valid_to <= valid_from AND live = 1 ORDER BY record"
    )
    return [RecordId(row[0]) for row in rows]


def resolve(store: AgentStore, scope: Scope, text: str) -> RecordId:
    """The record that an id or an unambiguous prefix names.

    Raises ``UsageError``, ``NotFoundError`` or, listing candidates, ``AmbiguousError``.
    """
    scope.require(store.agent)
    if len(text.strip()) == RecordId.text_length():
        return RecordId.parse(text)
    low, high = prefix_range(RecordId, text)
    found = store.connection.execute(
        "SELECT record FROM record WHERE record BETWEEN ? AND ? AND (live = 1 OR ?)"
        " ORDER BY record LIMIT 9",
        (low, high, scope.every_state),
    ).fetchall()
    if not found:
        raise NotFoundError(f"no record starts with {text[:32]!r}")
    if len(found) > 1:
        raise AmbiguousError(
            "more than one record starts so", candidates=[str(RecordId(r[0])) for r in found]
        )
    return RecordId(found[0][0])


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a record, with the text that it had (empty once erased)."""

    record: RecordId
    number: int
    entry: bytes
    time_ms: int
    state: str
    device: bytes
    via: int
    reason: str
    text: str
    content: dict[str, Any]


def history(store: AgentStore, scope: Scope, record: RecordId) -> list[Version]:
    """The versions of a record and of those it replaced or was replaced by, oldest first.

    They hold what was withheld since: a person's alone, ``RefusedError`` for any other reader.
    """
    scope.require(store.agent)
    if not scope.every_state:
        raise RefusedError("the history of a memory is shown to a person alone")
    chain, stack = set(), [bytes(record)]
    while stack:
        at = stack.pop()
        if at in chain:
            continue
        chain.add(at)
        stack += store.folder.tables.linked(at, "next")
        stack += store.folder.tables.targets(at, "next")
    out: list[Version] = []
    for member in chain:
        out += [
            Version(
                RecordId(member),
                v[0],
                v[1],
                v[2],
                v[3],
                v[4],
                v[5],
                v[6],
                v[7],
                codec.unpack(v[8]) if v[8] else {},
            )
            for v in store.connection.execute(
                "SELECT version, entry, time_ms, version.state, version.device, version.via,"
                " reason, text, content FROM version JOIN record USING (n) WHERE record = ?",
                (member,),
            )
        ]
    return sorted(out, key=lambda v: (v.time_ms, v.record, v.number))


def live_history(
    store: AgentStore, scope: Scope, record: RecordId, *, now_us: int
) -> list[Version]:
    """The versions of a live record that were live themselves, oldest first.

    Of a gated record only the approved text is shown, without what its versions held.
    Raises ``NotFoundError`` where this scope may not see the record.
    """
    seen = get(store, scope, record, now_us=now_us)
    gated = bool(seen.detail.get("gated"))
    everything = history(store, Scope(store.agent, every_state=True), record)
    own = [v for v in everything if v.record == record and v.state in LIVE_STATES]
    if not gated:
        return own
    return [replace(v, content={}, reason="") for v in own if v.text == seen.text]


def _seen(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Seen]:
    out: list[Seen] = []
    for row in rows:
        tags = tuple(
            t[0]
            for t in connection.execute("SELECT tag FROM tag WHERE n = ? ORDER BY tag", (row[0],))
        )
        values = dict(zip(_FIELDS, row, strict=False))
        values["record"] = RecordId(row[1])
        values["detail"] = codec.unpack(values["detail"])
        rival = connection.execute(_RIVAL, (row[1],)).fetchone() is not None
        out.append(Seen(**values, tags=tags, score=row[-1], rival=rival))
    return out


def _limit(limit: int) -> int:
    if not 1 <= limit <= LIST_LIMIT_MAX:
        raise UsageError(f"a limit is from 1 to {LIST_LIMIT_MAX}")
    return limit


def _read_cursor(cursor: str) -> tuple[int, bytes]:
    at, _, record = cursor.partition(".")
    try:
        created_ms = int(at)
    except ValueError as exc:
        raise UsageError("not a cursor that this command gave out") from exc
    if not 0 <= created_ms <= WALL_MS_MAX:
        raise UsageError("not a cursor that this command gave out")
    return created_ms, RecordId.parse(record)
