"""Verbs that write files, sessions, diaries, perspectives, skills and layers; the table of all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from memory import files, kinds, layers
from memory.authoring import Author
from memory.notes import check_reason
from memory.query import get
from memory.store import AgentStore
from memory.writing import remember
from node.core import NodeCore
from node.params import Params
from node.verbs.graph import entity_add, entity_move, entity_remove, entity_set, relation_add
from node.verbs.kindparts import DEFAULT_REASON, act_on, channel_of, named, note_from, written_of
from node.verbs.targets import person_scope

Result = dict[str, Any]


def _remover(kind: str) -> Callable[[NodeCore, Params], Any]:
    async def remove(core: NodeCore, params: Params) -> Result:
        """Retire a record of this kind."""
        wanted, reason = params.text(kind), check_reason(params.text("reason"))

        def act(store: AgentStore, author: Author, now_us: int) -> Result:
            params.done()
            record = named(store, params.caller, kind, wanted, now_us)
            kinds.of_kind(store, record, (kind,), now_us)
            kinds.retire(author, [record], reason, params.caller.via, now_us)
            return {"retired": [str(record)]}

        return await act_on(core, params, act)

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
        note = note_from(params, store, text, now_us)
        params.done()
        written = files.add_file(author, note, name, mutability, params.caller.via, now_us)
        seen = get(store, person_scope(store), written.record, now_us=now_us)
        held = files.content_of(store, person_scope(store), seen, now_us)
        sections = {"sections": len(held.sections), "hash": held.hash}
        return written_of(store, written, now_us) | sections

    return await act_on(core, params, act)


async def file_set(core: NodeCore, params: Params) -> Result:
    """Give a file another text."""
    wanted, text, base = params.text("file"), params.text("text"), params.optional_text("base")
    reason = params.optional_text("reason") or DEFAULT_REASON

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text, now_us)
        params.done()
        file = named(store, params.caller, "file", wanted, now_us)
        changed = files.set_file(
            author, file, note, base, reason, via=params.caller.via, now_us=now_us
        )
        seen = get(store, person_scope(store), file, now_us=now_us)
        held = files.content_of(store, person_scope(store), seen, now_us)
        return {"record": str(file), "changed": changed, "hash": held.hash}

    return await act_on(core, params, act)


# -- sessions and diaries ------------------------------------------------------------------------


async def session_add(core: NodeCore, params: Params) -> Result:
    """Begin a session."""
    name, channel = params.text("session"), channel_of(params)

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name, now_us)
        params.done()
        written = kinds.add_session(author, note, channel, params.caller.via, now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


async def session_append(core: NodeCore, params: Params) -> Result:
    """Write down a turn of a session."""
    session, text = params.text("session"), params.text("text")
    speaker, channel = params.text("speaker"), channel_of(params)
    message = params.optional_text("message")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text, now_us)
        params.done()
        note = replace(note, session=session, speaker=speaker)
        written = kinds.append_turn(author, note, channel, message, params.caller.via, now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


async def session_summarise(core: NodeCore, params: Params) -> Result:
    """Write the rolling summary of a session."""
    session, text = params.text("session"), params.text("text")
    reason = params.optional_text("reason") or "a newer summary"

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = replace(note_from(params, store, text, now_us), session=session)
        params.done()
        written = kinds.summarise(author, note, reason, via=params.caller.via, now_us=now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


async def session_end(core: NodeCore, params: Params) -> Result:
    """Note that a session has ended."""
    wanted = params.text("session")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        session = named(store, params.caller, "session", wanted, now_us)
        kinds.end_session(author, session, params.caller.via, now_us)
        return {"record": str(session)}

    return await act_on(core, params, act)


async def diary_add(core: NodeCore, params: Params) -> Result:
    """Write a line of the diary."""
    text, title = params.text("text"), params.optional_text("title")
    channel = channel_of(params)

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        extra = () if channel is None else (("body.channel", kinds.check_name("channel", channel)),)
        note = replace(
            note_from(params, store, text, now_us), kind="diary", title=title, extra=extra
        )
        params.done()
        return written_of(store, remember(author, note, params.caller.via, now_us), now_us)

    return await act_on(core, params, act)


# -- perspectives, skills, identity, layers ------------------------------------------------------


async def perspective_set(core: NodeCore, params: Params) -> Result:
    """Write a perspective; the one before it is superseded."""
    name, text = params.text("perspective"), params.text("text")
    reason = params.optional_text("reason") or "a newer one"

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text, now_us)
        params.done()
        written = kinds.set_perspective(
            author, name, note, reason, via=params.caller.via, now_us=now_us
        )
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


async def skill_add(core: NodeCore, params: Params) -> Result:
    """Propose a skill; a person approves exactly its bytes."""
    name, text = params.text("name"), params.text("text")
    parameters = params.optional_text("parameters")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        extra = () if parameters is None else (("body.parameters", parameters),)
        note = replace(note_from(params, store, text, now_us), extra=extra)
        params.done()
        written = kinds.add_skill(author, name, note, params.caller.via, now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


async def identity_add(core: NodeCore, params: Params) -> Result:
    """Propose who the agent is: the core, or an amendment to it."""
    text = params.text("text")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, text, now_us)
        params.done()
        return written_of(
            store, kinds.add_identity(author, note, params.caller.via, now_us), now_us
        )

    return await act_on(core, params, act)


async def layer_set(core: NodeCore, params: Params) -> Result:
    """Change a layer's budget, minimum age or crons."""
    name = params.text("layer")
    given = {k: params.optional_text(k) for k in ("review_cron", "intake_cron")}
    numbers = {k: params.number(k, -1) for k in ("min_age_s", "budget")}
    changes: dict[str, str | int] = {k: v for k, v in given.items() if v is not None}
    changes |= {k: v for k, v in numbers.items() if v >= 0}

    def act(_store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        layers.set_layer(author, name, changes, params.caller.via, now_us)
        return {"record": str(layers.layer_id(author.store.agent, name)), "name": name}

    return await act_on(core, params, act)


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
