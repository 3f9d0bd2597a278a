"""Verbs that move memories in and out: export and import."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from keys.errors import NotFoundError, RoostError, UsageError
from keys.ids import RecordId
from keys.limits import APPROVALS_MAX, BATCH_RECORDS_MAX
from keys.signing import random_bytes
from memory.authoring import Author
from memory.carried import FLAG, REF, REFS, WHOLE, Carried, Ref, carried_in, keys_of
from memory.kinds import check_name
from memory.moving import (
    Imported,
    ImportRow,
    export_page,
    import_rows,
    origin_of,
    state_of,
)
from memory.notes import Note
from memory.query import Seen, get
from memory.screening import redacted
from memory.store import AgentStore
from memory.when import WHEN_KEY, WHEN_MAX, pack_when, read_when
from node.core import NodeCore
from node.handle import AgentHandle
from node.importers.rows import NAMED
from node.params import Params
from node.present import successors_of
from node.refusals import note_refused_rows
from node.times import iso
from node.verbs.targets import person_scope

Result = dict[str, Any]
RUN_BYTES = 16
PAGE = 500


async def export_page_verb(core: NodeCore, params: Params) -> Result:
    """One page of an export: lines of JSON, and where the next page starts."""
    handle = await core.agents.resolve(params.text("agent"))
    cursor = params.optional_text("cursor")
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        scope = person_scope(store)
        seen, following = export_page(store, scope, cursor, limit=PAGE, now_us=now_us)
        lines = [
            json.dumps(export_line(store, s, now_us), ensure_ascii=False, sort_keys=True)
            for s in seen
        ]
        return {"lines": lines, "next": following}

    return await handle.read(read)


def export_line(store: AgentStore, seen: Seen, now_us: int) -> Result:
    """A record as a line of an export; times are UTC and say so."""
    body = seen.detail.get("body", {})
    recorded = body.get("recorded_ms", seen.created_ms)
    line: Result = {
        "record": str(origin_of(seen)),
        "kind": seen.kind,
        "text": seen.text,
        "state": state_of(seen),
        "category": seen.category,
        "layer": seen.layer,
        "tags": list(seen.tags),
        "weight": seen.weight,
        "provenance": seen.provenance,
        "source": seen.source,
        "speaker": seen.speaker,
        "session": seen.session,
        "title": seen.title,
        "valid_from": iso(seen.valid_from),
        "valid_to": iso(seen.valid_to),
        "expires": iso(seen.expires),
        "recorded_at": iso(recorded * 1000),
        "derived_from": _origins(store, seen.detail.get("sources", ()), now_us),
        "successors": _origins(store, [RecordId.parse(s) for s in successors_of(seen)], now_us),
        "when": read_when(body.get("when")),
        "replaces": _origins(store, store.folder.tables.linked(seen.record, "next"), now_us),
    }
    for key, value in carried_in(seen).items():
        line[key] = value
        if isinstance(value, list):
            found = [_origin(store, record, now_us) for record in value]
            refs = [text for text in found if text is not None]
            line[key] = refs if keys_of(seen.kind)[key][1] == REFS else next(iter(refs), None)
    return {k: v for k, v in line.items() if v not in (None, [])}


def _origin(store: AgentStore, record: RecordId, now_us: int) -> str | None:
    return next(iter(_origins(store, [record], now_us)), None)


def _origins(store: AgentStore, records: Iterable[bytes], now_us: int) -> list[str]:
    """The first ids of records that are in the export, sorted; erased ones are not."""
    found = []
    for record in records:
        with contextlib.suppress(NotFoundError):
            seen = get(store, person_scope(store), RecordId(record), now_us=now_us)
            if seen.state not in ("erased", "withheld", "returning"):
                found.append(str(origin_of(seen)))
    return sorted(found)


async def import_begin(core: NodeCore, params: Params) -> Result:
    """A new id for a run of an import."""
    await core.agents.resolve(params.text("agent"))
    params.optional_text("format")
    params.done()
    return {"run": random_bytes(RUN_BYTES).hex()}


async def import_lines(core: NodeCore, params: Params) -> Result:
    """Import up to 500 rows; observations wait for review unless approved."""
    handle = await core.agents.resolve(params.text("agent"))
    rows = params.rows("rows", BATCH_RECORDS_MAX)
    run = _run(params.text("run"))
    approve, passphrase = params.flag("approve"), params.optional_text("passphrase") or ""
    redacts, last = params.flag("redact"), params.flag("last")
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> tuple[Imported, list[Result]]:
        ready: list[ImportRow] = []
        problems: list[Result] = []
        for place, given in enumerate(rows, 1):
            taken = Params(given)
            line = taken.number("line", place)
            try:
                row = _row(taken, line, run)
                ready.append(replace(row, note=redacted(row.note)[0]) if redacts else row)
            except RoostError as exc:
                problems.append({"line": line, "code": exc.code, "message": exc.message})
        done = import_rows(author, ready, now_us, last=last)
        problems += [
            {"line": line, "code": e.code, "message": e.message} for line, e in done.problems
        ]
        return done, problems

    if approve:
        await core.ownership.unlock(passphrase)  # before anything is written
    done, problems = await handle.write(act)
    errors = [exc for _, exc in done.problems]
    await note_refused_rows(core, errors, "import.lines", params.caller, handle.agent)
    waiting = await handle.read(lambda store: _waiting(store, done.records, core.clock.now_us()))
    if approve and waiting:
        await approve_records(core, handle, waiting, passphrase)
        waiting = []
    return {
        "imported": len(done.records),
        "skipped": done.skipped,
        "waiting": len(waiting),
        "later": sorted(done.later),
        "problems": sorted(problems, key=lambda p: int(p["line"])),
    }


def _waiting(store: AgentStore, records: list[RecordId], now_us: int) -> list[Seen]:
    seen = [get(store, person_scope(store), r, now_us=now_us) for r in records]
    return [s for s in seen if s.state == "proposed"]


async def approve_records(
    core: NodeCore, handle: AgentHandle, waiting: list[Seen], passphrase: str
) -> None:
    """Sign approvals of exactly the heads that were shown."""
    key = await core.ownership.unlock(passphrase)
    for i in range(0, len(waiting), APPROVALS_MAX):
        items = [[s.record, s.detail["heads"]] for s in waiting[i : i + APPROVALS_MAX]]
        await core.ownership.act(handle, key, "approve", {"items": items})


def _row(taken: Params, line: int, run: bytes) -> ImportRow:
    kind = taken.optional_text("kind") or "observation"
    origin = taken.optional_text("record")
    recorded = taken.time("recorded_at")
    state = taken.optional_text("state") or "new"
    sources = tuple(RecordId.parse(t) for t in taken.texts("derived_from"))
    successors = tuple(RecordId.parse(t) for t in taken.texts("successors"))
    replaces = tuple(RecordId.parse(t) for t in taken.texts("replaces"))
    when = taken.pairs("when", WHEN_MAX)
    note = Note(
        text=taken.text("text"),
        kind=kind,
        layer=taken.optional_text("layer") or "day",
        tags=taken.texts("tags"),
        category=taken.optional_text("category") or ("episode" if kind == "turn" else "fact"),
        provenance=taken.optional_text("provenance") or "import",
        source=taken.optional_text("source"),
        speaker=taken.optional_text("speaker"),
        session=taken.optional_text("session"),
        title=taken.optional_text("title"),
        valid_from=taken.time("valid_from"),
        valid_to=taken.time("valid_to"),
        expires=taken.time("expires"),
        weight=taken.real("weight", 1.0),
        imported=run,
        extra=((WHEN_KEY, pack_when(when)),) if when else (),
    )
    carried = _carried(taken, kind)
    taken.done()
    return ImportRow(
        line,
        note,
        origin=RecordId.parse(origin) if origin else None,
        recorded_ms=recorded // 1000 if recorded is not None else None,
        state=state,
        sources=sources,
        successors=successors,
        replaces=replaces,
        carried=carried,
    )


def _carried(taken: Params, kind: str) -> Carried:
    """The keys that only records of a kind have."""
    values: list[tuple[str, str | int]] = []
    refs: list[tuple[str, tuple[Ref, ...]]] = []
    for name, (key, what) in keys_of(kind).items():
        if taken.peek(name) is None:
            continue
        if what == REFS:
            refs.append((key, tuple(_ref(text) for text in taken.texts(name))))
        elif what == REF:
            refs.append((key, (_ref(taken.text(name)),)))
        elif what == FLAG:
            values.append((key, taken.flag(name)))
        elif what == WHOLE:
            values.append((key, taken.number(name, 0)))
        else:
            values.append(
                (
                    key,
                    check_name(name, taken.text(name))
                    if name != "parameters"
                    else taken.text(name),
                )
            )
    return Carried(tuple(values), tuple(refs))


def _ref(text: str) -> Ref:
    return text.removeprefix(NAMED) if text.startswith(NAMED) else RecordId.parse(text)


def _run(text: str) -> bytes:
    try:
        run = bytes.fromhex(text)
    except ValueError as exc:
        raise UsageError("not the id of a run") from exc
    if len(run) != RUN_BYTES:
        raise UsageError("not the id of a run")
    return run
