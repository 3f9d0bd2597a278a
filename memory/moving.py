"""Export and import: records as plain objects, whole and in a stable order.

1. A line names the record by the id it was first given (``body.origin`` after an import), so that
   export, import and export again give the same lines.
2. An imported record keeps that id, its first record time and its state; observations wait for a
   person unless the import is vouched for (R21). Turns are never merged.
3. What is here already (the same origin, or the same live value) is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from crdt.entry import Via
from crdt.facts import next_key
from crdt.fingerprint import fingerprints
from crdt.payload import put
from keys.errors import BadInput, RefusedError, RoostError, UsageError
from keys.ids import RecordId
from keys.signing import random_bytes
from memory.authoring import Author, Commit
from memory.carried import NOTHING, Carried, Ref
from memory.notes import Note, check_note, creation_ops
from memory.parts import all_of
from memory.query import Filters, Seen, get
from memory.rows import LIVE_STATES
from memory.scope import Scope
from memory.shapes import COMPARED_KINDS, folded_name
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
    carried: Carried = NOTHING


@dataclass(slots=True)
class Imported:
    """What an import of some rows did; ``later``: lines that name what has not come yet."""

    records: list[RecordId] = field(default_factory=list)
    skipped: int = 0
    problems: list[tuple[int, RoostError]] = field(default_factory=list)
    later: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    """What the rows of one call share. ``last``: nothing more will come that a row may name."""

    store: AgentStore
    commit: Commit
    now_us: int
    last: bool
    fresh: dict[RecordId, RecordId] = field(default_factory=dict)
    names: dict[str, RecordId] = field(default_factory=dict)
    values: set[tuple[bytes, str]] = field(default_factory=set)

    def find(self, ref: Ref) -> RecordId | None:
        """The record here that a row names, None where there is none (yet)."""
        if isinstance(ref, RecordId):
            return self.fresh.get(ref) or _known(self.store, ref)
        return self.names.get(folded_name(ref)) or self._named(ref, None)

    def same_entity(self, note: Note) -> RecordId | None:
        """The entity that a row without an id of ours is: by name, and root."""
        root = dict(note.extra).get("body.root")
        return self._named(note.text, root)

    def _named(self, name: str, root: object) -> RecordId | None:
        scope = Scope(self.store.agent, every_state=True)
        wanted = Filters(kinds=("entity",), name=folded_name(name))
        found = [
            seen.record
            for seen in all_of(self.store, scope, wanted, self.now_us)
            if seen.state_at(self.now_us) in (*LIVE_STATES, "proposed")
            and root in (None, seen.detail["body"].get("root"))
        ]
        return min(found, default=None)


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


def import_rows(
    author: Author, rows: Sequence[ImportRow], now_us: int, *, last: bool = True
) -> Imported:
    """Import rows in one transaction; what cannot be imported is reported, the rest is.

    Without ``last`` a row that names what is not here comes back in ``later``: give it again, with
    ``last``, when everything else has been imported.
    """
    store, done = author.store, Imported()
    created: list[tuple[ImportRow, RecordId]] = []
    with author.commit(Via.IMPORTER, now_us) as commit:
        run = _Run(store, commit, now_us, last)
        for row in _sources_first(rows):
            _take(run, row, done, created)
        for row, record in created:
            if not _link(run, row, record) and not last:
                done.later.append(row.line)
            for replaced in row.replaces:  # those of earlier batches
                before = _known(store, replaced)
                if before is not None and replaced not in run.fresh:
                    commit.edit(before, [put(next_key(record), "imported")])
    return done


def _take(
    run: _Run, row: ImportRow, done: Imported, created: list[tuple[ImportRow, RecordId]]
) -> None:
    try:
        record = _import(run, row)
    except _NotYetError:
        done.later.append(row.line)
        return
    except (UsageError, RefusedError, BadInput) as exc:
        done.problems.append((row.line, exc))
        return
    if record is None:
        done.skipped += int(not _continues(run, row, created))
        return
    created.append((row, record))
    done.records.append(record)
    if row.origin is not None:
        run.fresh[row.origin] = record
    if row.note.kind == "entity":
        run.names.setdefault(folded_name(row.note.text), record)


class _NotYetError(Exception):
    """A row names what is not here and may still come."""


def _continues(run: _Run, row: ImportRow, created: list[tuple[ImportRow, RecordId]]) -> bool:
    """Whether a row was written by an earlier call of this run and only its links are left."""
    known = row.origin and _known(run.store, row.origin)
    if known is None or not any(key.startswith("field.") for key, _ in row.carried.refs):
        return False
    scope = Scope(run.store.agent, every_state=True)
    seen = get(run.store, scope, known, now_us=run.now_us)
    if seen.detail.get("body", {}).get("imported") != row.note.imported:
        return False
    created.append((row, known))
    return True


def _link(run: _Run, row: ImportRow, record: RecordId) -> bool:
    """Write what a record names that may come after it; whether all of it is here."""
    whole = True
    for successor in row.successors:
        target = run.find(successor)
        if target is not None:
            run.commit.edit(record, [put(next_key(target), "imported")])
    for key, refs in row.carried.refs:
        if key.startswith("field."):
            found = [target for ref in refs if (target := run.find(ref)) is not None]
            whole = whole and len(found) == len(refs)
            if found:
                run.commit.edit(record, [put(key, b"".join(found))])
    return whole


def _sources_first(rows: Sequence[ImportRow]) -> list[ImportRow]:
    """Rows in an order in which what the creation of a record names comes before it."""
    left = sorted(rows, key=lambda r: bytes(r.origin or b""))
    waiting = {r.origin for r in left if r.origin is not None}
    named = {r.line: {*r.sources, *r.carried.needed} for r in left}
    out: list[ImportRow] = []
    while left:
        ready = [r for r in left if not waiting & named[r.line] - {r.origin}] or left
        out += ready
        waiting -= {r.origin for r in ready if r.origin is not None}
        left = [r for r in left if r not in ready]
    return out


def _import(run: _Run, row: ImportRow) -> RecordId | None:
    store = run.store
    note = check_note(row.note)
    if row.origin is not None and _known(store, row.origin) is not None:
        return None
    owners = {ref: run.find(ref) for ref in row.carried.needed}
    sources = [run.find(source) for source in row.sources]
    if not run.last and None in [*owners.values(), *sources]:
        raise _NotYetError
    if None in owners.values():
        raise UsageError("what it belongs to is not here, and not in this file")
    note = replace(note, extra=(*note.extra, *_keys(row, owners)))
    if row.origin is None and _is_here(run, note):
        return None
    if note.kind in COMPARED_KINDS and _is_held(run, row, note):
        return None
    extra: list[tuple[str, Any]] = list(note.extra)
    if row.origin is not None:
        extra.append(("body.origin", bytes(row.origin)))
        extra.append(("body.state", row.state))
    if row.recorded_ms is not None:
        extra.append(("body.recorded_ms", row.recorded_ms))
    note = replace(
        note,
        derived_from=tuple(s for s in sources if s is not None),
        imported=note.imported if note.kind != "turn" else None,
        extra=tuple(extra),
    )
    ops = creation_ops(note)
    gone = row.state == "superseded" and not row.successors  # its successor was erased
    if row.state == "deprecated" or gone:
        ops.append(put(f"mark.{random_bytes(MARK_ID_BYTES).hex()}", "deprecated imported"))
    return run.commit.create(ops)


def _is_held(run: _Run, row: ImportRow, note: Note) -> bool:
    """Whether the value is live here already; raises ``RefusedError`` where it may not return."""
    if row.state in ("deprecated", "superseded"):
        return False
    macs = [p.mac for p in fingerprints(run.store.keys, note.value)]
    if live_duplicate(run.store, macs, note.kind, run.now_us) is not None:
        return True
    if any((m, note.kind) in run.values for m in macs):
        return True
    refuse_returning(run.store, macs)
    run.values.update((m, note.kind) for m in macs)
    return False


def _keys(
    row: ImportRow, owners: Mapping[Ref, RecordId | None]
) -> list[tuple[str, str | int | bytes]]:
    """The keys of a row's kind that are known when it is created."""
    out: list[tuple[str, str | int | bytes]] = list(row.carried.values)
    for key, refs in row.carried.refs:
        if key.startswith("body."):
            out.append((key, b"".join(found for ref in refs if (found := owners[ref]))))
    if row.note.kind == "entity":
        out.append(("field.parent", b""))
    return out


def _is_here(run: _Run, note: Note) -> bool:
    """Whether a row that has no id of ours is here, even if it waits for review."""
    if note.kind != "entity":
        return _same_item(run.store, note)
    held = run.same_entity(note)
    if held is None:
        return folded_name(note.text) in run.names
    run.names.setdefault(folded_name(note.text), held)
    return True


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
