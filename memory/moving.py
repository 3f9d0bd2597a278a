"""Export and import: records as plain objects, whole and in a stable order.

1. A line names the record by the id it was first given (``body.origin`` after an import), so that
   export, import and export again give the same lines.
2. An imported record keeps that id, its first record time and its state; observations wait for a
   person unless the import is vouched for (R21). Turns are never merged.
3. What is here already (the same origin, or the same live value) is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdt.entry import Via
from crdt.facts import next_key
from crdt.fingerprint import fingerprints
from crdt.payload import put
from keys.errors import BadInput, RefusedError, RoostError, UsageError
from keys.ids import RecordId
from keys.signing import random_bytes
from memory.authoring import Author, Commit
from memory.notes import Note, check_note, creation_ops
from memory.query import Seen, get
from memory.scope import Scope
from memory.shapes import COMPARED_KINDS
from memory.store import AgentStore
from memory.writing import MARK_ID_BYTES, live_duplicate, refuse_returning


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One record to import."""

    line: int
    note: Note
    origin: RecordId | None = None
    recorded_ms: int | None = None
    state: str = "new"
    sources: tuple[RecordId, ...] = ()
    successors: tuple[RecordId, ...] = ()
    replaces: tuple[RecordId, ...] = ()


@dataclass(slots=True)
class Imported:
    """What an import of some rows did."""

    records: list[RecordId] = field(default_factory=list)
    skipped: int = 0
    problems: list[tuple[int, RoostError]] = field(default_factory=list)


def export_page(
    store: AgentStore, scope: Scope, cursor: str | None, *, limit: int, now_us: int
) -> tuple[list[Seen], str | None]:
    """Records of an export, page by page; what is erased or withheld is not in it."""
    scope.require(store.agent)
    after = bytes(RecordId.parse(cursor)) if cursor is not None else b""
    rows = store.connection.execute(
        "SELECT r.record, coalesce(o.target, r.record) AS first FROM record AS r"
        " LEFT JOIN link AS o ON o.n = r.n AND o.what = 'origin'"
        " WHERE r.state NOT IN ('withheld', 'returning', 'erased') AND first > ?"
        " ORDER BY first, r.record LIMIT ?",
        (after, limit),
    ).fetchall()
    seen = [get(store, scope, RecordId(r[0]), now_us=now_us) for r in rows]
    return seen, str(RecordId(rows[-1][1])) if len(rows) == limit else None


def origin_of(seen: Seen) -> RecordId:
    """The id that a record was first given."""
    origin = seen.detail.get("body", {}).get("origin")
    return RecordId(origin) if isinstance(origin, bytes) and len(origin) == 16 else seen.record


def state_of(seen: Seen) -> str:
    """The state to export: what an import said, as long as only the import has decided since."""
    said = seen.detail.get("body", {}).get("state")
    if isinstance(said, str) and (said, seen.state) in _SAME_STATES:
        return said
    return seen.state


# (as the file said, as it reads after an import, approved or not)
_SAME_STATES: Final = frozenset(
    {
        (said, now)
        for said in ("new", "current", "proposed")
        for now in ("proposed", "current", "new")
    }
    | {("superseded", "deprecated"), ("superseded", "proposed"), ("deprecated", "proposed")}
)


def import_rows(author: Author, rows: Sequence[ImportRow], now_us: int) -> Imported:
    """Import rows in one transaction; what cannot be imported is reported, the rest is."""
    store, done = author.store, Imported()
    fresh: dict[RecordId, RecordId] = {}
    values: set[tuple[bytes, str]] = set()
    created: list[tuple[ImportRow, RecordId]] = []
    with author.commit(Via.IMPORTER, now_us) as commit:
        for row in _sources_first(rows):
            try:
                record = _import(store, commit, row, values, now_us, fresh)
            except (UsageError, RefusedError, BadInput) as exc:
                done.problems.append((row.line, exc))
                continue
            if record is None:
                done.skipped += 1
                continue
            created.append((row, record))
            done.records.append(record)
            if row.origin is not None:
                fresh[row.origin] = record
        for row, record in created:
            for successor in row.successors:
                target = fresh.get(successor) or _known(store, successor)
                if target is not None:
                    commit.edit(record, [put(next_key(target), "imported")])
            for replaced in row.replaces:  # those of earlier batches
                before = _known(store, replaced)
                if before is not None and replaced not in fresh:
                    commit.edit(before, [put(next_key(record), "imported")])
    return done


def _sources_first(rows: Sequence[ImportRow]) -> list[ImportRow]:
    """Rows in an order in which what a record was derived from comes before it."""
    left = sorted(rows, key=lambda r: bytes(r.origin or b""))
    waiting = {r.origin for r in left if r.origin is not None}
    out: list[ImportRow] = []
    while left:
        ready = [r for r in left if not waiting.intersection(r.sources) - {r.origin}] or left
        out += ready
        waiting -= {r.origin for r in ready if r.origin is not None}
        left = [r for r in left if r not in ready]
    return out


def _import(
    store: AgentStore,
    commit: Commit,
    row: ImportRow,
    values: set[tuple[bytes, str]],
    now_us: int,
    fresh: dict[RecordId, RecordId],
) -> RecordId | None:
    note = check_note(row.note)
    if row.origin is not None and _known(store, row.origin) is not None:
        return None
    if note.kind not in COMPARED_KINDS and _same_item(store, note):
        return None
    retired = row.state in ("deprecated", "superseded")
    if note.kind in COMPARED_KINDS:
        macs = [p.mac for p in fingerprints(store.keys, note.value)]
        live = live_duplicate(store, macs, note.kind, now_us)
        if not retired and (live is not None or any((m, note.kind) in values for m in macs)):
            return None
        if not retired:
            refuse_returning(store, macs)
            values.update((m, note.kind) for m in macs)
    sources = [s for o in row.sources if (s := fresh.get(o) or _known(store, o)) is not None]
    extra: list[tuple[str, Any]] = list(note.extra)
    if row.origin is not None:
        extra.append(("body.origin", bytes(row.origin)))
        extra.append(("body.state", row.state))
    if row.recorded_ms is not None:
        extra.append(("body.recorded_ms", row.recorded_ms))
    ops = creation_ops(
        Note(
            text=note.text,
            kind=note.kind,
            layer=note.layer,
            tags=note.tags,
            category=note.category,
            provenance=note.provenance,
            source=note.source,
            speaker=note.speaker,
            session=note.session,
            title=note.title,
            valid_from=note.valid_from,
            valid_to=note.valid_to,
            expires=note.expires,
            weight=note.weight,
            derived_from=tuple(sources),
            imported=note.imported if note.kind != "turn" else None,
            extra=tuple(extra),
        )
    )
    gone = row.state == "superseded" and not row.successors  # its successor was erased
    if row.state == "deprecated" or gone:
        ops.append(put(f"mark.{random_bytes(MARK_ID_BYTES).hex()}", "deprecated imported"))
    return commit.create(ops)


def _same_item(store: AgentStore, note: Note) -> bool:
    """Whether the very item (kind, session, source and text) is here: an import run twice."""
    if note.source is None:
        return False
    return (
        store.connection.execute(
            "SELECT 1 FROM record WHERE source = ? AND session IS ? AND kind = ? AND text = ?",
            (note.source, note.session, note.kind, note.text),
        ).fetchone()
        is not None
    )


def _known(store: AgentStore, origin: RecordId) -> RecordId | None:
    """The record here that is ``origin``, or was imported from it."""
    found = store.folder.tables.linked(origin, "origin")
    if found:
        return RecordId(found[0])
    return origin if store.folder.tables.old(origin).n is not None else None
