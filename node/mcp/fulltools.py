"""The further tools of the profile ``full``: the kinds beyond observations, history and reasons."""

from __future__ import annotations

from typing import Any, Final

from node.mcp.tools import (
    AGENT,
    DRY_RUN,
    LIMIT,
    QUERY,
    REASON,
    RECORD,
    TEXT,
    TEXTS,
    Parameter,
    Tool,
    enum,
)

_TAGS: Final = Parameter("tags", TEXTS, "Words to find it by.", aliases=("tag",))
_FROM: Final = Parameter("provenance", enum("agent", "tool", "file", "web"), "Where it came from.")
_SOURCE: Final = Parameter("source", TEXT, "The file, page or tool it came from.")
_EVIDENCE: Final = Parameter("evidence", TEXTS, "Ids of the memories that show it.")
_WHENCE: Final = (_TAGS, _FROM, _SOURCE, _EVIDENCE)
_ROOT: Final = Parameter(
    "root",
    enum("persons", "concepts", "procedures", "events", "locations", "organizations", "projects"),
    "What it is; left out below a parent.",
)


def _text(name: str, about: str, *aliases: str, required: bool = True) -> Parameter:
    return Parameter(name, TEXT, about, required, aliases)


def _tool(name: str, verb: str, about: str, *parameters: Parameter, **more: Any) -> Tool:
    return Tool(name, verb, about, (*parameters, AGENT), **more)


def _kind(kind: str, plural: str, about: str) -> tuple[Tool, Tool]:
    named = _text(kind, "Its name or id.", "name", "id", "record")
    return (
        _tool(f"{kind}_list", f"{kind}.list", f"List the {plural}: {about}.", reads=True),
        _tool(f"{kind}_show", f"{kind}.show", f"Show one of the {plural}.", named, reads=True),
    )


def _remover(kind: str, about: str, *more: Parameter) -> Tool:
    named = _text(kind, "Its name or id.", "name", "id", "record")
    parameters = (named, *more, REASON, DRY_RUN)
    return _tool(f"{kind}_remove", f"{kind}.remove", about, *parameters, destroys=True)


FULL: Final = (
    _tool("memory_history", "history", "The versions of a memory.", RECORD, reads=True),
    _tool(
        "memory_explain",
        "search",
        "Search, and say why each memory was found.",
        QUERY,
        LIMIT,
        reads=True,
    ),
    *_kind("entity", "entities", "persons, things and ideas, with their properties"),
    _tool(
        "entity_add",
        "entity.add",
        "Add a person, thing or idea; the one of the same name is returned where there is one.",
        _text("name", "What it is called."),
        _ROOT,
        _text("parent", "The entity it belongs below.", required=False),
        *_WHENCE,
        repeats=True,
    ),
    _tool(
        "entity_set",
        "entity.set",
        "Give an entity a property, in place of the one of the same name.",
        _text("entity", "Its name or id.", "id", "record"),
        _text("name", "The property's name.", "property", "key"),
        _text("value", "The property's value.", "text"),
        _text("reason", "Why; it is kept.", required=False),
        *_WHENCE,
        destroys=True,
        repeats=True,
    ),
    _remover(
        "entity",
        "Withhold an entity that nothing hangs on, or one of its properties.",
        _text("property", "Only this property.", required=False),
    ),
    *_kind("relation", "relations", "what connects two entities"),
    _tool(
        "relation_add",
        "relation.add",
        "Relate two entities.",
        _text("from", "The first one's name or id.", "source_entity", "subject"),
        _text("type", "The relation, in active voice.", "relation", "predicate"),
        _text("to", "The other one's name or id.", "target_entity", "object"),
        *_WHENCE,
        repeats=True,
    ),
    _remover("relation", "Withhold a relation."),
    *_kind("file", "files", "texts that are kept word for word"),
    _tool(
        "file_add",
        "file.add",
        "Keep a text word for word.",
        _text("name", "What it is called."),
        _text("text", "All of it.", "content"),
        Parameter("mutability", enum("mutable", "append", "fixed"), "How it may change."),
        *_WHENCE,
    ),
    _tool(
        "file_set",
        "file.set",
        "Replace a file's text. Give the `hash` that file_show told, so that no other change is"
        " overwritten.",
        _text("file", "Its name or id.", "name", "id", "record"),
        _text("text", "All of it.", "content"),
        _text("base", "The hash of the text that is replaced.", "hash"),
        _text("reason", "Why; it is kept.", required=False),
        *_WHENCE,
        destroys=True,
    ),
    _remover("file", "Withhold a file."),
    *_kind("diary", "diaries", "entries of the diary"),
    _tool(
        "diary_add",
        "diary.add",
        "Write an entry of the diary.",
        _text("text", "The entry.", "content"),
        _text("title", "Its title.", required=False),
        *_WHENCE,
    ),
    *_kind("session", "sessions", "conversations with their turns"),
    _tool(
        "session_append",
        "session.append",
        "Add a turn to a session; the session begins with its first turn.",
        _text("session", "The session's name."),
        _text("speaker", "Who speaks.", "role"),
        _text("text", "What was said.", "content"),
        _text("message", "The message's id, so that none is kept twice.", required=False),
        *_WHENCE,
    ),
    _tool(
        "session_summarise",
        "session.summarise",
        "Replace a session's summary; `evidence` names the turns.",
        _text("session", "The session's name."),
        _text("text", "The summary.", "summary"),
        _text("reason", "Why; it is kept.", required=False),
        *_WHENCE,
    ),
    _tool(
        "session_end",
        "session.end",
        "Say that a session is over.",
        _text("session", "The session's name.", "id"),
    ),
    *_kind("skill", "skills", "scripts that a person approved; nothing runs them here"),
    _tool(
        "skill_propose",
        "skill.add",
        "Propose a script. Nobody sees it until a person approves exactly these bytes.",
        _text("name", "What it is called."),
        _text("text", "The script.", "script"),
        _text("parameters", "What it takes.", required=False),
        *_WHENCE,
    ),
)
