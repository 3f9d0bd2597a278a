"""Verbs that write entities, relations, files, sessions, perspectives, skills, layers, diaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from crdt.entry import Via
from keys.errors import UsageError
from keys.ids import RecordId
from memory import files, kinds, layers
from memory.authoring import Author
from memory.notes import Note, check_reason
from memory.query import get, resolve
from memory.store import AgentStore
from memory.writing import Written, remember
from node.core import NodeCore
from node.params import Params
from node.verbs.targets import person_scope

Result = dict[str, Any]
Act = Callable[[AgentStore, Author, int], Result]
DEFAULT_REASON = "set"


def note_from(params: Params, store: AgentStore, text: str) -> Note:
    """A note with the options that all kinds share: tags, provenance, source, sources."""
    sources = params.texts("derived_from") + params.texts("evidence")
    found = tuple(resolve(store, person_scope(store), wanted) for wanted in sources)
    return Note(
        text=text,
        tags=params.texts("tags"),
        provenance=params.optional_text("provenance") or "user",
        source=params.optional_text("source"),
        derived_from=found,
    )


def _written(store: AgentStore, written: Written, now_us: int) -> Result:
    seen = get(store, person_scope(store), written.record, now_us=now_us)
    return {
        "record": str(written.record),
        "state": seen.state_at(now_us),
        "created": written.created,
    }


async def _act(core: NodeCore, params: Params, work: Act) -> Result:
    handle = await core.agents.resolve(params.text("agent"))
    return await handle.write(work)


def named(store: AgentStore, kind: str, text: str, now_us: int) -> RecordId:
    """The record of a kind that a name, an id or a prefix of one stands for."""
    found = kinds.live_named(store, kind, text, now_us)
    if found:
        return found[0].record
    return resolve(store, person_scope(store), text)


def _maybe(store: AgentStore, kind: str, text: str | None, now_us: int) -> RecordId | None:
    return None if text is None else named(store, kind, text, now_us)


# -- entities and relations ----------------------------------------------------------------------


async def entity_add(core: NodeCore, params: Params) -> Result:
    """Add an entity below a root or below another entity."""
    name, parent = params.text("name"), params.optional_text("parent")
    root = params.optional_text("root")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name)
        params.done()
        above = _maybe(store, "entity", parent, now_us)
        below = root or _root_of(store, above, now_us)
        written = kinds.add_entity(author, note, below, above, Via.LOCAL, now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


def _root_of(store: AgentStore, parent: RecordId | None, now_us: int) -> str:
    if parent is None:
        raise UsageError(
            "an entity hangs on a root", hint="--root persons, concepts, …, or --parent"
        )
    return str(get(store, person_scope(store), parent, now_us=now_us).detail["body"].get("root"))


async def entity_set(core: NodeCore, params: Params) -> Result:
    """Give an entity a property, or another name."""
    wanted, name = params.text("entity"), params.optional_text("name")
    value, rename = params.optional_text("value"), params.optional_text("rename")
    reason = params.optional_text("reason") or DEFAULT_REASON

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, value or "")
        params.done()
        entity = named(store, "entity", wanted, now_us)
        if rename is not None and name is None:
            kinds.rename_entity(author, entity, rename, Via.LOCAL, now_us)
            return {"record": str(entity)}
        if name is None or value is None:
            raise UsageError("a property has a NAME and a VALUE", hint="or --rename NAME")
        written = kinds.set_property(
            author, entity, name, note, reason, via=Via.LOCAL, now_us=now_us
        )
        return _written(store, written, now_us) | {"entity": str(entity)}

    return await _act(core, params, act)


async def entity_move(core: NodeCore, params: Params) -> Result:
    """Hang an entity on another one, or on its root."""
    wanted, parent = params.text("entity"), params.optional_text("parent")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        entity = named(store, "entity", wanted, now_us)
        above = _maybe(store, "entity", parent, now_us)
        kinds.move_entity(author, entity, above, Via.LOCAL, now_us)
        return {"record": str(entity), "parent": str(above) if above else None}

    return await _act(core, params, act)


async def entity_remove(core: NodeCore, params: Params) -> Result:
    """Retire an entity that nothing hangs on, or one of its properties."""
    wanted, name = params.text("entity"), params.optional_text("property")
    reason = check_reason(params.text("reason"))

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        entity = named(store, "entity", wanted, now_us)
        kinds.of_kind(store, entity, ("entity",), now_us)
        if name is None:
            kinds.refuse_with_children(store, entity, now_us)
            gone = [entity]
        else:
            held = kinds.properties(store, person_scope(store), entity, now_us, name)
            gone = [s.record for s in held if s.state_at(now_us) in ("new", "current")]
            if not gone:
                raise UsageError("the entity has no such property", record=str(entity))
        kinds.retire(author, gone, reason, Via.LOCAL, now_us)
        return {"retired": [str(r) for r in gone]}

    return await _act(core, params, act)


async def relation_add(core: NodeCore, params: Params) -> Result:
    """Relate two entities."""
    start, name, end = params.text("from"), params.text("type"), params.text("to")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name)
        params.done()
        ends = named(store, "entity", start, now_us), named(store, "entity", end, now_us)
        written = kinds.add_relation(author, ends, note, Via.LOCAL, now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


def _remover(kind: str) -> Callable[[NodeCore, Params], Any]:
    async def remove(core: NodeCore, params: Params) -> Result:
        """Retire a record of this kind."""
        wanted, reason = params.text(kind), check_reason(params.text("reason"))

        def act(store: AgentStore, author: Author, now_us: int) -> Result:
            params.done()
            record = named(store, kind, wanted, now_us)
            kinds.of_kind(store, record, (kind,), now_us)
            kinds.retire(author, [record], reason, Via.LOCAL, now_us)
            return {"retired": [str(record)]}

        return await _act(core, params, act)

    return remove


relation_remove, file_remove = _remover("relation"), _remover("file")
session_remove, diary_remove = _remover("session"), _remover("diary")
perspective_remove = _remover("perspective")


# -- files ---------------------------------------------------------------------------------------


async def file_add(core: NodeCore, params: Params) -> Result:
    """Store a file verbatim."""
    name, text = params.text("name"), params.text("text")
    mutability = params.optional_text("mutability") or "mutable"

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text)
        params.done()
        written = files.add_file(author, note, name, mutability, Via.LOCAL, now_us)
        seen = get(store, person_scope(store), written.record, now_us=now_us)
        held = files.content_of(store, person_scope(store), seen, now_us)
        sections = {"sections": len(held.sections), "hash": held.hash}
        return _written(store, written, now_us) | sections

    return await _act(core, params, act)


async def file_set(core: NodeCore, params: Params) -> Result:
    """Give a file another text."""
    wanted, text, base = params.text("file"), params.text("text"), params.optional_text("base")
    reason = params.optional_text("reason") or DEFAULT_REASON

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text)
        params.done()
        file = named(store, "file", wanted, now_us)
        changed = files.set_file(author, file, note, base, reason, via=Via.LOCAL, now_us=now_us)
        seen = get(store, person_scope(store), file, now_us=now_us)
        held = files.content_of(store, person_scope(store), seen, now_us)
        return {"record": str(file), "changed": changed, "hash": held.hash}

    return await _act(core, params, act)


# -- sessions and diaries ------------------------------------------------------------------------


async def session_add(core: NodeCore, params: Params) -> Result:
    """Begin a session."""
    name, channel = params.text("session"), params.optional_text("channel")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name)
        params.done()
        written = kinds.add_session(author, note, channel, Via.LOCAL, now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


async def session_append(core: NodeCore, params: Params) -> Result:
    """Write down a turn of a session."""
    session, text = params.text("session"), params.text("text")
    speaker, channel = params.text("speaker"), params.optional_text("channel")
    message = params.optional_text("message")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text)
        params.done()
        note = replace(note, session=session, speaker=speaker)
        written = kinds.append_turn(author, note, channel, message, Via.LOCAL, now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


async def session_summarise(core: NodeCore, params: Params) -> Result:
    """Write the rolling summary of a session."""
    session, text = params.text("session"), params.text("text")
    reason = params.optional_text("reason") or "a newer summary"

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = replace(note_from(params, store, text), session=session)
        params.done()
        written = kinds.summarise(author, note, reason, via=Via.LOCAL, now_us=now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


async def session_end(core: NodeCore, params: Params) -> Result:
    """Note that a session has ended."""
    wanted = params.text("session")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        session = named(store, "session", wanted, now_us)
        kinds.end_session(author, session, Via.LOCAL, now_us)
        return {"record": str(session)}

    return await _act(core, params, act)


async def diary_add(core: NodeCore, params: Params) -> Result:
    """Write a line of the diary."""
    text, title = params.text("text"), params.optional_text("title")
    channel = params.optional_text("channel")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        extra = () if channel is None else (("body.channel", kinds.check_name("channel", channel)),)
        note = replace(note_from(params, store, text), kind="diary", title=title, extra=extra)
        params.done()
        return _written(store, remember(author, note, Via.LOCAL, now_us), now_us)

    return await _act(core, params, act)


# -- perspectives, skills, identity, layers ------------------------------------------------------


async def perspective_set(core: NodeCore, params: Params) -> Result:
    """Write a perspective; the one before it is superseded."""
    name, text = params.text("perspective"), params.text("text")
    reason = params.optional_text("reason") or "a newer one"

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text)
        params.done()
        written = kinds.set_perspective(author, name, note, reason, via=Via.LOCAL, now_us=now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


async def skill_add(core: NodeCore, params: Params) -> Result:
    """Propose a skill; a person approves exactly its bytes."""
    name, text = params.text("name"), params.text("text")
    parameters = params.optional_text("parameters")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        extra = () if parameters is None else (("body.parameters", parameters),)
        note = replace(note_from(params, store, text), extra=extra)
        params.done()
        written = kinds.add_skill(author, name, note, Via.LOCAL, now_us)
        return _written(store, written, now_us)

    return await _act(core, params, act)


async def identity_add(core: NodeCore, params: Params) -> Result:
    """Propose who the agent is: the core, or an amendment to it."""
    text = params.text("text")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text)
        params.done()
        return _written(store, kinds.add_identity(author, note, Via.LOCAL, now_us), now_us)

    return await _act(core, params, act)


async def layer_set(core: NodeCore, params: Params) -> Result:
    """Change a layer's budget, minimum age or crons."""
    name = params.text("layer")
    given = {k: params.optional_text(k) for k in ("review_cron", "intake_cron")}
    numbers = {k: params.number(k, -1) for k in ("min_age_s", "budget")}
    changes: dict[str, str | int] = {k: v for k, v in given.items() if v is not None}
    changes |= {k: v for k, v in numbers.items() if v >= 0}

    def act(_store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        layers.set_layer(author, name, changes, Via.LOCAL, now_us)
        return {"record": str(layers.layer_id(author.store.agent, name)), "name": name}

    return await _act(core, params, act)


WRITING_KINDS: Final[Mapping[str, Callable[[NodeCore, Params], Awaitable[Result]]]] = {
    "entity.add": entity_add,
    "entity.set": entity_set,
    "entity.move": entity_move,
    "entity.remove": entity_remove,
    "relation.add": relation_add,
    "relation.remove": relation_remove,
    "file.add": file_add,
    "file.set": file_set,
    "file.remove": file_remove,
    "session.add": session_add,
    "session.append": session_append,
    "session.summarise": session_summarise,
    "session.end": session_end,
    "session.remove": session_remove,
    "diary.add": diary_add,
    "diary.remove": diary_remove,
    "perspective.set": perspective_set,
    "perspective.remove": perspective_remove,
    "skill.add": skill_add,
    "identity.add": identity_add,
    "layer.set": layer_set,
}
