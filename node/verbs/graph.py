"""Verbs that write entities, their properties, and relations."""

from __future__ import annotations

from typing import Any

from keys.errors import UsageError
from keys.ids import RecordId
from memory import kinds
from memory.authoring import Author
from memory.notes import check_reason
from memory.query import get
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.verbs.kindparts import DEFAULT_REASON, act_on, maybe_named, named, note_from, written_of
from node.verbs.targets import person_scope

Result = dict[str, Any]


async def entity_add(core: NodeCore, params: Params) -> Result:
    """Add an entity below a root or below another entity."""
    name, parent = params.text("name"), params.optional_text("parent")
    root = params.optional_text("root")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name, now_us)
        params.done()
        above = maybe_named(store, params.caller, "entity", parent, now_us)
        below = root or _root_of(store, above, now_us)
        written = kinds.add_entity(author, note, below, above, params.caller.via, now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)


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
        note = note_from(params, store, value or "", now_us)
        params.done()
        entity = named(store, params.caller, "entity", wanted, now_us)
        if rename is not None and name is None:
            kinds.rename_entity(author, entity, rename, params.caller.via, now_us)
            return {"record": str(entity)}
        if name is None or value is None:
            raise UsageError("a property has a NAME and a VALUE", hint="or --rename NAME")
        written = kinds.set_property(
            author, entity, name, note, reason, via=params.caller.via, now_us=now_us
        )
        return written_of(store, written, now_us) | {"entity": str(entity)}

    return await act_on(core, params, act)


async def entity_move(core: NodeCore, params: Params) -> Result:
    """Hang an entity on another one, or on its root."""
    wanted, parent = params.text("entity"), params.optional_text("parent")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        entity = named(store, params.caller, "entity", wanted, now_us)
        above = maybe_named(store, params.caller, "entity", parent, now_us)
        kinds.move_entity(author, entity, above, params.caller.via, now_us)
        return {"record": str(entity), "parent": str(above) if above else None}

    return await act_on(core, params, act)


async def entity_remove(core: NodeCore, params: Params) -> Result:
    """Retire an entity that nothing hangs on, or one of its properties."""
    wanted, name = params.text("entity"), params.optional_text("property")
    reason = check_reason(params.text("reason"))

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        params.done()
        entity = named(store, params.caller, "entity", wanted, now_us)
        kinds.of_kind(store, entity, ("entity",), now_us)
        if name is None:
            kinds.refuse_with_children(store, entity, now_us)
            gone = [entity]
        else:
            held = kinds.properties(store, person_scope(store), entity, now_us, name)
            gone = [s.record for s in held if s.state_at(now_us) in ("new", "current")]
            if not gone:
                raise UsageError("the entity has no such property", record=str(entity))
        kinds.retire(author, gone, reason, params.caller.via, now_us)
        return {"retired": [str(r) for r in gone]}

    return await act_on(core, params, act)


async def relation_add(core: NodeCore, params: Params) -> Result:
    """Relate two entities."""
    start, name, end = params.text("from"), params.text("type"), params.text("to")

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        note = note_from(params, store, name, now_us)
        params.done()
        first, last = (named(store, params.caller, "entity", x, now_us) for x in (start, end))
        written = kinds.add_relation(author, (first, last), note, params.caller.via, now_us)
        return written_of(store, written, now_us)

    return await act_on(core, params, act)
