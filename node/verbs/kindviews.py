"""Verbs that read entities, relations, files, sessions, perspectives, skills, layers, diaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import NotFoundError
from memory import files, kinds, layers
from memory.parts import all_of
from memory.query import Filters, Seen, get
from memory.rows import LIVE_STATES
from memory.shapes import folded_name
from memory.store import AgentStore
from memory.tree import Tree
from node.caller import Caller
from node.core import NodeCore
from node.params import Params
from node.present import detail_of, record_of, shown_of
from node.verbs.kindparts import named
from node.verbs.targets import person_scope

Result = dict[str, Any]
PLURALS: Final[Mapping[str, str]] = {
    "entity": "entities",
    "relation": "relations",
    "file": "files",
    "diary": "diaries",
    "session": "sessions",
    "perspective": "perspectives",
    "skill": "skills",
    "identity": "identities",
}


def _lister(kind: str) -> Callable[[NodeCore, Params], Awaitable[Result]]:
    async def list_kind(core: NodeCore, params: Params) -> Result:
        """The live records of a kind, oldest first; with ``all`` those in every state."""
        handle = await core.agents.resolve(params.text("agent"))
        every, channel = params.flag("all"), params.optional_text("channel")
        params.done()
        now_us, caller = core.clock.now_us(), params.caller
        filters = Filters(kinds=(kind,), channel=channel)

        def read(store: AgentStore) -> Result:
            found = list(all_of(store, caller.scope(store), filters, now_us))[::-1]
            waits = ("proposed",) if kind in ("skill", "identity") else ()
            shown = [s for s in found if every or s.state_at(now_us) in (*LIVE_STATES, *waits)]
            rows = [record_of(s, now_us) for s in shown]
            if kind == "entity":
                _hang(store, rows, caller, now_us)
            return {PLURALS[kind]: _with_clashes(rows)}

        return await handle.read(read)

    return list_kind


def _hang(store: AgentStore, rows: list[Result], caller: Caller, now_us: int) -> None:
    """Where each entity hangs, cycles and gaps resolved (R15); the gaps for a person alone."""
    tree = Tree.of(store, caller.scope(store), now_us)
    parents = {str(r): p for r, p in tree.parents.items()}
    broken, lost = {str(r) for r in tree.broken}, {str(r) for r in tree.lost}
    for row in rows:
        parent = parents.get(row["record"])
        row["parent"] = str(parent) if parent else None
        if row["record"] in broken | lost:
            row["conflict"] = True
    held = {row["record"] for row in rows}
    for record in () if caller.bound else tree.lost:
        if str(record) not in held:
            seen = get(store, person_scope(store), record, now_us=now_us)
            gone = {"record": str(record), "state": seen.state_at(now_us), "conflict": True}
            rows.append(gone | {"name": None, "kind": "entity", "parent": None})


def _with_clashes(rows: list[Result]) -> list[Result]:
    """Marks live records that two devices gave one name; the smallest id is the one that counts."""
    first: dict[tuple[str, str], Result] = {}
    for row in sorted(rows, key=lambda r: str(r["record"])):
        if row["kind"] not in ("entity", "file", "session") or row["state"] not in LIVE_STATES:
            continue
        place = folded_name(str(row.get("name"))), str(row.get("root", ""))
        if place in first:
            row["conflict"] = first[place]["conflict"] = True
            row["same_name_as"] = first[place]["record"]
        else:
            first[place] = row
    return rows


def _shower(kind: str) -> Callable[[NodeCore, Params], Awaitable[Result]]:
    async def show_kind(core: NodeCore, params: Params) -> Result:
        """One record of a kind, with what belongs to it."""
        handle = await core.agents.resolve(params.text("agent"))
        wanted = params.text(kind)
        params.done()
        now_us, caller = core.clock.now_us(), params.caller

        def read(store: AgentStore) -> Result:
            record = named(store, caller, kind, wanted, now_us)
            seen = get(store, caller.scope(store), record, now_us=now_us)
            if seen.kind != kind and seen.state != "erased":
                raise NotFoundError(f"no such {kind}", record=str(record))
            belongs = _BELONGS.get(kind)
            shown = shown_of(seen, now_us) if caller.bound else detail_of(seen, now_us)
            if belongs is not None and seen.state_at(now_us) in LIVE_STATES:
                shown |= belongs(store, caller, seen, now_us)
            return shown

        return await handle.read(read)

    return show_kind


def _of_entity(store: AgentStore, caller: Caller, seen: Seen, now_us: int) -> Result:
    scope = caller.scope(store)
    tree = Tree.of(store, scope, now_us)
    line = tree.line(seen.record)
    held = kinds.properties(store, scope, seen.record, now_us)
    relations = all_of(store, scope, Filters(kinds=("relation",), owner=seen.record), now_us)
    return {
        "parent": str(line[1]) if len(line) > 1 else None,
        "children": [str(r) for r in tree.children(seen.record)],
        "properties": [record_of(s, now_us) for s in held if s.state_at(now_us) in LIVE_STATES],
        "relations": [record_of(s, now_us) for s in relations if s.state_at(now_us) in LIVE_STATES],
    }


def _of_file(store: AgentStore, caller: Caller, seen: Seen, now_us: int) -> Result:
    held = files.content_of(store, caller.scope(store), seen, now_us)
    return {
        "content": held.text,
        "hash": held.hash,
        "sections": [record_of(s, now_us) for s in held.sections],
        "gone": held.gone,
        "apart": [record_of(s, now_us) for s in held.apart],
    }


def _of_session(store: AgentStore, caller: Caller, seen: Seen, now_us: int) -> Result:
    scope, name = caller.scope(store), seen.session or seen.text
    said = Filters(kinds=("turn",), session=name)
    turns = all_of(store, scope, said, now_us)
    short = Filters(kinds=("summary",), session=name)
    summaries = all_of(store, scope, short, now_us)
    live = [s for s in turns if s.state_at(now_us) in LIVE_STATES]
    live.sort(key=lambda s: (s.created_ms, s.record))
    found = [s for s in summaries if s.state_at(now_us) in LIVE_STATES]
    return {
        "turns": [record_of(s, now_us) for s in live],
        "summary": record_of(found[0], now_us) if found else None,
    }


_BELONGS: Final[Mapping[str, Callable[[AgentStore, Caller, Seen, int], Result]]] = {
    "entity": _of_entity,
    "file": _of_file,
    "session": _of_session,
}


async def layer_list(core: NodeCore, params: Params) -> Result:
    """The seven layers as they are set."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    now_us = core.clock.now_us()
    found = await handle.read(lambda s: layers.layers(s, params.caller.scope(s), now_us))
    return {
        "layers": [
            {
                "record": str(layer.record),
                "name": layer.name,
                "review_cron": layer.review_cron,
                "intake_cron": layer.intake_cron,
                "min_age_s": layer.min_age_s,
                "budget": layer.budget,
                "changed": layer.changed,
            }
            for layer in found
        ]
    }


READING_KINDS: Final[Mapping[str, Callable[[NodeCore, Params], Awaitable[Result]]]] = {
    **{f"{kind}.list": _lister(kind) for kind in PLURALS},
    **{f"{kind}.show": _shower(kind) for kind in PLURALS},
    "layer.list": layer_list,
}
