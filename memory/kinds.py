"""Writing the kinds beyond observations: entities, relations, sessions, perspectives, skills.

Each is a note with keys of its own (``shapes.py``); what holds for every memory holds for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import put
from keys.errors import RefusedError, RoostError, UsageError
from keys.ids import RecordId
from keys.limits import NAME_BYTES_MAX
from keys.signing import random_bytes
from memory.authoring import Author
from memory.notes import Note, check_reason, clean
from memory.parts import all_of
from memory.query import Filters, Seen, get
from memory.rows import LIVE_STATES
from memory.scope import Scope
from memory.shapes import PERSPECTIVES, ROOTS, folded_name
from memory.store import AgentStore
from memory.tree import Tree
from memory.writing import MARK_ID_BYTES, Written, live_successor, remember

NO_PARENT = b""


class ChildrenError(RefusedError):
    """An entity that others hang on cannot go."""

    code = "has_children"
    exit_code = 1


class WrongKindError(RoostError):
    """The record is of another kind than the command is for."""

    code = "wrong_kind"
    exit_code = 2


def person_scope(store: AgentStore) -> Scope:
    """Every state: what a writer must see to do the right thing."""
    return Scope(store.agent, every_state=True)


def of_kind(store: AgentStore, record: RecordId, kinds: Sequence[str], now_us: int) -> Seen:
    """A live record of one of ``kinds``; raises ``WrongKindError``, ``RefusedError``."""
    seen = get(store, person_scope(store), record, now_us=now_us)
    if seen.kind and seen.kind not in kinds:
        raise WrongKindError(f"this is a {seen.kind}, not a {kinds[0]}", record=str(record))
    state = seen.state_at(now_us)
    if state not in LIVE_STATES:
        successor = live_successor(store, record, now_us)
        raise RefusedError(
            f"the {kinds[0]} is {state}",
            record=str(record),
            hint=f"its live successor is {successor}" if successor else None,
        )
    return seen


def live_named(store: AgentStore, kind: str, name: str, now_us: int) -> list[Seen]:
    """The live records of a kind with a name, as names are compared; the smallest id first."""
    readers = Scope(store.agent, every_state=False)
    found = all_of(store, readers, Filters(kinds=(kind,), name=folded_name(name)), now_us)
    return sorted(found, key=lambda seen: seen.record)


def check_name(what: str, name: str) -> str:
    """A name as it is stored: one line, not empty, bounded; raises ``UsageError``."""
    words = " ".join(clean(name).split())
    if not words:
        raise UsageError(f"a {what} has a name")
    if len(words.encode()) > NAME_BYTES_MAX:
        raise UsageError(f"a name has at most {NAME_BYTES_MAX} bytes")
    return words


# -- entities ------------------------------------------------------------------------------------


def add_entity(
    author: Author, note: Note, root: str, parent: RecordId | None, via: Via, now_us: int
) -> Written:
    """An entity below one of the seven roots, or below another entity.

    One of the same name and root that is here already is returned instead. The note's text is the
    name. Raises ``UsageError``.
    """
    if root not in ROOTS:
        raise UsageError(f"no root {root[:32]!r}", hint="one of " + ", ".join(ROOTS))
    name = check_name("entity", note.text)
    store = author.store
    if parent is not None:
        above = of_kind(store, parent, ("entity",), now_us)
        if above.detail["body"].get("root") != root:
            raise UsageError("the parent hangs on another root", record=str(parent))
    for seen in live_named(store, "entity", name, now_us):
        if seen.detail["body"].get("root") == root:
            return Written(seen.record, created=False)
    extra = (("body.root", root), ("field.parent", bytes(parent) if parent else NO_PARENT))
    return remember(author, replace(note, text=name, kind="entity", extra=extra), via, now_us)


def rename_entity(author: Author, entity: RecordId, name: str, via: Via, now_us: int) -> None:
    """Call an entity something else; the older name stays in its history."""
    of_kind(author.store, entity, ("entity",), now_us)
    with author.commit(via, now_us) as commit:
        commit.edit(entity, [put("field.title", check_name("entity", name))])


def move_entity(
    author: Author, entity: RecordId, parent: RecordId | None, via: Via, now_us: int
) -> None:
    """Hang an entity on another of its root, or on the root itself; never below itself."""
    store = author.store
    seen = of_kind(store, entity, ("entity",), now_us)
    if parent is not None:
        above = of_kind(store, parent, ("entity",), now_us)
        if above.detail["body"].get("root") != seen.detail["body"].get("root"):
            raise UsageError("the parent hangs on another root", record=str(parent))
        tree = Tree.of(store, Scope(store.agent, every_state=False), now_us)
        if entity in tree.line(parent):
            raise UsageError("an entity cannot hang on itself or below", record=str(entity))
    with author.commit(via, now_us) as commit:
        commit.edit(entity, [put("field.parent", bytes(parent) if parent else NO_PARENT)])


def refuse_with_children(store: AgentStore, entity: RecordId, now_us: int) -> None:
    """Raise ``ChildrenError`` while live entities hang on one."""
    tree = Tree.of(store, Scope(store.agent, every_state=False), now_us)
    children = tree.children(entity)
    if children:
        raise ChildrenError(
            f"{len(children)} entities hang on it",
            hint="move or remove them first: roost entity move AGENT CHILD --parent OTHER",
            record=str(entity),
            children=[str(c) for c in children[:20]],
        )


def set_property(  # noqa: PLR0913 - what a property is made of
    author: Author,
    entity: RecordId,
    name: str,
    note: Note,
    reason: str,
    *,
    via: Via,
    now_us: int,
) -> Written:
    """Give an entity's property a value; the live values of that name are superseded.

    The note's text is the value, its sources are the evidence. Raises ``RefusedError``.
    """
    store = author.store
    of_kind(store, entity, ("entity",), now_us)
    extra = (("body.entity", bytes(entity)), ("body.name", check_name("property", name)))
    held = properties(store, Scope(store.agent, every_state=False), entity, now_us, name)
    written = remember(author, replace(note, kind="property", extra=extra), via, now_us)
    _supersede(author, [s.record for s in held], written.record, reason, via, now_us)
    return written


def properties(
    store: AgentStore, scope: Scope, entity: RecordId, now_us: int, name: str | None = None
) -> list[Seen]:
    """The properties of an entity, oldest first; of one name when given."""
    wanted = Filters(
        kinds=("property",), owner=entity, name=None if name is None else folded_name(name)
    )
    return list(all_of(store, scope, wanted, now_us))[::-1]


def _supersede(
    author: Author, old: Iterable[RecordId], new: RecordId, reason: str, via: Via, now_us: int
) -> None:
    replaced = [record for record in old if record != new]
    if not replaced:
        return
    with author.commit(via, now_us) as commit:
        for record in replaced:
            commit.edit(record, [put(next_key(new), clean(reason).strip())])


# -- relations -----------------------------------------------------------------------------------


def add_relation(
    author: Author, ends: tuple[RecordId, RecordId], note: Note, via: Via, now_us: int
) -> Written:
    """``from type to``: the note's text is the type. Both ends are live entities."""
    for end in ends:
        of_kind(author.store, end, ("entity",), now_us)
    name = check_name("relation", note.text)
    extra = (
        ("body.from", bytes(ends[0])),
        ("body.to", bytes(ends[1])),
        ("body.name", name),
    )
    return remember(author, replace(note, text=name, kind="relation", extra=extra), via, now_us)


# -- perspectives, skills, identity --------------------------------------------------------------


def set_perspective(
    author: Author, name: str, note: Note, reason: str, *, via: Via, now_us: int
) -> Written:
    """Write a perspective; the one before it is superseded and stays in the history."""
    if name not in PERSPECTIVES:
        raise UsageError(f"no perspective {name[:32]!r}", hint="one of " + ", ".join(PERSPECTIVES))
    held = live_named_by_body(author.store, "perspective", name, now_us)
    made = replace(note, kind="perspective", extra=(("body.name", name),))
    written = remember(author, made, via, now_us)
    _supersede(author, held, written.record, reason, via, now_us)
    return written


def live_named_by_body(store: AgentStore, kind: str, name: str, now_us: int) -> list[RecordId]:
    """The live records of a kind whose creation names them so."""
    return [seen.record for seen in live_named(store, kind, name, now_us)]


def add_skill(author: Author, name: str, note: Note, via: Via, now_us: int) -> Written:
    """A script with its parameters; it waits until a person approves exactly those bytes."""
    title = check_name("skill", name)
    return remember(author, replace(note, kind="skill", title=title), via, now_us)


def add_identity(author: Author, note: Note, via: Via, now_us: int) -> Written:
    """Who the agent is: the core first, amendments after it; each waits for a person."""
    store = author.store
    before = all_of(store, person_scope(store), Filters(kinds=("identity",)), now_us)
    is_core = not any(
        s.detail.get("body", {}).get("name") == "core"
        and s.state_at(now_us) in (*LIVE_STATES, "proposed")
        for s in before
    )
    extra = (("body.name", "core" if is_core else "amendment"),)
    return remember(author, replace(note, kind="identity", extra=extra), via, now_us)


# -- sessions ------------------------------------------------------------------------------------


def add_session(author: Author, note: Note, channel: str | None, via: Via, now_us: int) -> Written:
    """A session by its name (the note's text); one of that name that is here is returned."""
    name = check_name("session", note.text)
    held = live_named(author.store, "session", name, now_us)
    if held:
        return Written(held[0].record, created=False)
    made = replace(note, text=name, kind="session", session=name, extra=_channel(channel))
    return remember(author, made, via, now_us)


def _channel(channel: str | None) -> tuple[tuple[str, str], ...]:
    return () if channel is None else (("body.channel", check_name("channel", channel)),)


def append_turn(
    author: Author, note: Note, channel: str | None, message: str | None, via: Via, now_us: int
) -> Written:
    """One turn of the session that the note names; a new session when there is none.

    Its channel is the session's unless one is given.
    """
    name = check_name("session", note.session or "")
    store = author.store
    session = live_named(store, "session", name, now_us)
    if not session:
        add_session(author, Note(name, provenance=note.provenance), channel, via, now_us)
    elif channel is None:
        held = session[0].detail["body"].get("channel")
        channel = held if isinstance(held, str) else None
    extra: tuple[tuple[str, str], ...] = _channel(channel)
    if message is not None:
        extra += (("body.message", check_name("message id", message)),)
    return remember(author, replace(note, kind="turn", session=name, extra=extra), via, now_us)


def summarise(author: Author, note: Note, reason: str, *, via: Via, now_us: int) -> Written:
    """The rolling summary of a session; it cites the turns it is made from and replaces the last.

    ``note.derived_from`` are those turns; without any, all live turns of the session.
    """
    store = author.store
    name = check_name("session", note.session or "")
    readers = Scope(store.agent, every_state=False)
    before = list(all_of(store, readers, Filters(kinds=("summary",), session=name), now_us))
    turns = list(all_of(store, readers, Filters(kinds=("turn",), session=name), now_us))
    if not turns:
        raise UsageError("this session has no turns to summarise")
    cited = note.derived_from or tuple(t.record for t in turns[:1024])
    channel = turns[0].detail["body"].get("channel")
    extra = _channel(channel if isinstance(channel, str) else None)
    made = replace(note, kind="summary", session=name, derived_from=cited, extra=extra)
    written = remember(author, made, via, now_us)
    _supersede(author, [s.record for s in before], written.record, reason, via, now_us)
    return written


def end_session(author: Author, session: RecordId, via: Via, now_us: int) -> None:
    """Note when a session ended."""
    of_kind(author.store, session, ("session",), now_us)
    with author.commit(via, now_us) as commit:
        commit.edit(session, [put("field.ended_at", now_us)])


def retire(author: Author, records: Iterable[RecordId], reason: str, via: Via, now_us: int) -> None:
    """Withhold live records in one commit."""
    words = check_reason(reason)
    with author.commit(via, now_us) as commit:
        for record in records:
            mark = f"mark.{random_bytes(MARK_ID_BYTES).hex()}"
            commit.edit(record, [put(mark, f"deprecated {words}")])
