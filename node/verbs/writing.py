"""Verbs that change memories."""

from __future__ import annotations

from typing import Any

from crdt.payload import Op, put
from keys.errors import RefusedError, RoostError, UsageError
from keys.limits import BATCH_RECORDS_MAX
from memory.authoring import Author
from memory.near import near_records
from memory.notes import Note, check_reason
from memory.query import get
from memory.rows import LAYERS
from memory.screening import redacted
from memory.store import AgentStore
from memory.writing import (
    change,
    mark,
    remember,
    remember_batch,
    revise,
    tag_ops,
    untag_ops,
)
from node.caller import AGENT_PROVENANCES
from node.core import NodeCore
from node.handle import AgentHandle
from node.params import Params
from node.present import record_of
from node.refusals import note_refused_rows
from node.verbs.authority import lift_value
from node.verbs.targets import person_scope, target_in

Result = dict[str, Any]


def note_of(params: Params, store: AgentStore, now_us: int) -> Note:
    """A note from the parameters of ``remember``."""
    sources = tuple(
        target_in(store, params.caller, t, now_us) for t in params.texts("derived_from")
    )
    return Note(
        text=params.text("text"),
        layer=params.optional_text("layer") or "day",
        tags=params.texts("tags"),
        category=params.optional_text("category") or "fact",
        provenance=provenance_of(params),
        source=params.optional_text("source"),
        valid_from=params.time("valid_from"),
        valid_to=params.time("valid_to"),
        expires=params.time("expires"),
        weight=params.real("weight", 1.0),
        derived_from=sources,
    )


def provenance_of(params: Params) -> str:
    """Where a text comes from: an agent never says that it was a person."""
    given = params.optional_text("provenance")
    if not params.caller.bound:
        return given or "user"
    if given in ("user", "import"):
        raise RefusedError(
            f"an agent does not write as {given!r}", hint="one of " + ", ".join(AGENT_PROVENANCES)
        )
    return given or "agent"


async def remember_verb(core: NodeCore, params: Params) -> Result:
    """Write one memory, or reinforce the live one that says the same."""
    handle = await core.agents.resolve(params.text("agent"))
    lifts, reason = params.flag("lift"), params.optional_text("reason")
    redacts = params.flag("redact")
    passphrase = params.optional_text("passphrase") or ""
    if lifts:
        check_reason(reason or "")
        await lift_value(core, handle, str(params.peek("text")), passphrase)

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        taken = params.copy()
        note = note_of(taken, store, now_us)
        taken.done()
        note, replaced = redacted(note) if redacts else (note, [])
        written = remember(author, note, params.caller.via, now_us)
        seen = get(store, person_scope(store), written.record, now_us=now_us)
        result: Result = {
            "record": str(written.record),
            "state": seen.state_at(now_us),
            "created": written.created,
        }
        if written.created:
            found = near_records(
                store, note.text, but=written.record, kind=note.kind, now_us=now_us
            )
            result["near"] = [{"record": str(n.record), "state": n.state} for n in found]
        return result | ({"redacted": replaced} if replaced else {})

    return await handle.write_short(act)


async def remember_many(core: NodeCore, params: Params) -> Result:
    """Write up to 500 memories in one commit; what is refused is reported by line."""
    handle = await core.agents.resolve(params.text("agent"))
    rows, redacts = params.rows("rows", BATCH_RECORDS_MAX), params.flag("redact")
    params.done()
    errors: list[RoostError] = []

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        notes: list[Note] = []
        lines: list[int] = []
        refused: list[Result] = []
        for place, row in enumerate(rows, 1):
            taken = Params(row, params.caller)
            line = taken.number("line", place)
            try:
                note = note_of(taken, store, now_us)
                taken.done()
                note = redacted(note)[0] if redacts else note
            except RoostError as exc:
                errors.append(exc)
                refused.append({"line": line, "code": exc.code, "message": exc.message})
            else:
                notes.append(note)
                lines.append(line)
        done = remember_batch(author, notes, params.caller.via, now_us)
        refused += [
            {"line": lines[i], "code": exc.code, "message": exc.message} for i, exc in done.refused
        ]
        errors.extend(exc for _, exc in done.refused)
        created = sum(w.created for w in done.written)
        return {
            "written": created,
            "reinforced": len(done.written) - created,
            "refused": sorted(refused, key=lambda r: int(r["line"])),
        }

    result = await handle.write(act)
    await note_refused_rows(core, errors, "remember.batch", params.caller, handle.agent)
    return result


async def revise_verb(core: NodeCore, params: Params) -> Result:
    """Replace a memory's text; the old one is superseded."""
    handle, wanted = await _target(core, params)
    text, reason = params.text("text"), params.text("reason")
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        record = target_in(store, params.caller, wanted, now_us)
        by_agent = params.caller.bound
        written = revise(
            author, record, text, reason, via=params.caller.via, now_us=now_us, by_agent=by_agent
        )
        seen = get(store, person_scope(store), written.record, now_us=now_us)
        return {
            "record": str(written.record),
            "supersedes": str(record),
            "state": seen.state_at(now_us),
            "created": written.created,
        }

    return await handle.write_short(act)


async def retire(core: NodeCore, params: Params) -> Result:
    """Withhold a memory."""
    return await _mark(core, params, "deprecated", params.text("reason"))


async def keep(core: NodeCore, params: Params) -> Result:
    """Mark a memory as reviewed and current."""
    return await _mark(core, params, "current", params.optional_text("reason") or "")


async def _mark(core: NodeCore, params: Params, word: str, reason: str) -> Result:
    handle, wanted = await _target(core, params)
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        record = target_in(store, params.caller, wanted, now_us)
        state = mark(author, record, word, reason, via=params.caller.via, now_us=now_us)
        return {"record": str(record), "state": state}

    return await handle.write_short(act)


async def tag(core: NodeCore, params: Params) -> Result:
    """Add tags."""
    tags = params.texts("tags")
    return await _change(core, params, lambda seen: tag_ops(tags, seen.tags))


async def untag(core: NodeCore, params: Params) -> Result:
    """Take tags off."""
    tags = params.texts("tags")
    return await _change(core, params, lambda seen: untag_ops(tags, seen.tags))


async def move(core: NodeCore, params: Params) -> Result:
    """Move a memory to another layer."""
    layer = params.text("layer")
    if layer not in LAYERS:
        raise UsageError(f"no layer {layer[:32]!r}", hint="one of " + ", ".join(LAYERS))
    return await _change(core, params, lambda _seen: [put("field.layer", layer)])


async def _change(core: NodeCore, params: Params, ops_of: Any) -> Result:
    handle, wanted = await _target(core, params)
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        record = target_in(store, params.caller, wanted, now_us)
        scope = params.caller.scope(store)
        seen = get(store, scope, record, now_us=now_us)
        ops: list[Op] = ops_of(seen)
        change(author, record, ops, via=params.caller.via, now_us=now_us)
        return record_of(get(store, scope, record, now_us=now_us), now_us)

    return await handle.write_short(act)


async def _target(core: NodeCore, params: Params) -> tuple[AgentHandle, str]:
    return await core.agents.resolve(params.text("agent")), params.text("record")
