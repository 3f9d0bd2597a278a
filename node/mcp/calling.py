"""Running a tool: its arguments become calls of verbs, its result goes to a model.

1. Names of arguments are checked here, against the tool's own; what they say, the verbs check.
2. Every result carries the ids of the records that it is about.
3. What a tool cannot change (``GUARDED``) may be sent back as it was read, and not otherwise.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import RefusedError, RoostError, UsageError
from node.mcp.fulltools import FULL
from node.mcp.graph import GRAPH, RUN_GRAPH
from node.mcp.tools import DEFAULT, Answer, Call, Result, Tool
from node.params import unknown_parameter

PROFILES: Final[Mapping[str, tuple[Tool, ...]]] = {
    "default": DEFAULT,
    "full": (*DEFAULT, *FULL),
    "graph": GRAPH,
}
GUARDED: Final = ("kind", "provenance", "via", "state", "created_at", "recorded_at")
NEAR_MAX: Final = 3
NEAR_QUERY_CHARS: Final = 400


class GuardedFieldError(RefusedError):
    """A field that no tool changes."""

    code = "guarded_field"


def tool_named(profile: str, name: str) -> Tool:
    """A tool of a profile; raises ``UsageError`` where it has none of this name."""
    for tool in PROFILES.get(profile, ()):
        if tool.name == name:
            return tool
    raise UsageError(f"no tool {name[:40]!r}")


async def run_tool(call: Call, tool: Tool, given: Mapping[str, Any]) -> Answer:
    """What a tool answers; raises ``RoostError``."""
    arguments = await _arguments(call, tool, given)
    if tool.name in RUN_GRAPH:
        return await RUN_GRAPH[tool.name](call, arguments)
    if tool.name in _SPECIAL:
        return _answer(await _SPECIAL[tool.name](call, arguments))
    if tool.verb.endswith(".remove") and arguments.pop("dry_run", False):
        return _answer(await _would_remove(call, tool, arguments))
    return _answer(await call(tool.verb, arguments))


def _answer(result: Result) -> Answer:
    """A result as JSON; a block of text comes first, as it is."""
    if "entries" not in result:
        return Answer(result, (json.dumps(result, ensure_ascii=False),))
    rest = {k: v for k, v in result.items() if k != "text"}
    return Answer(result, (str(result["text"]), json.dumps(rest, ensure_ascii=False)))


async def _would_remove(call: Call, tool: Tool, arguments: Result) -> Result:
    kind = tool.verb.removesuffix(".remove")
    seen = await call(f"{kind}.show", _whose(arguments) | {kind: arguments[kind]})
    return {"record": seen["record"], "would_retire": True, "dry_run": True}


async def _arguments(call: Call, tool: Tool, given: Mapping[str, Any]) -> Result:
    names = tool.names()
    out: Result = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in names:
            with contextlib.suppress(RoostError):  # it is refused, and noted, where all calls are
                await call("session.about", {name[:64]: ""})
            raise unknown_parameter(name, names)
        known = names[name]
        if known in out:
            raise UsageError(f"{known} is given twice")
        out[known] = [value] if _wants_list(tool, known) and isinstance(value, str) else value
    missing = [p.name for p in tool.parameters if p.required and p.name not in out]
    if missing:
        raise UsageError(f"{missing[0]} is missing")
    return out


def _wants_list(tool: Tool, name: str) -> bool:
    return any(p.name == name and p.schema["type"] == "array" for p in tool.parameters)


async def _store(call: Call, arguments: Result) -> Result:
    done = await call("remember", arguments)
    query = {"query": str(arguments["text"])[:NEAR_QUERY_CHARS], "limit": NEAR_MAX + 1}
    found = (await call("search", query))["results"]
    near = [
        {"record": r["record"], "text": r["text"]} for r in found if r["record"] != done["record"]
    ]
    waits = {"note": "it waits for a person to approve it"} if done["state"] == "proposed" else {}
    return done | {"near": near[:NEAR_MAX]} | waits


async def _explain(call: Call, arguments: Result) -> Result:
    return await call("search", arguments | {"explain": True})


async def _update(call: Call, arguments: Result) -> Result:
    record = arguments["record"]
    whose = _whose(arguments)
    seen = await call("show", whose | {"record": record})
    for name in GUARDED:
        if name in arguments and arguments[name] != seen.get(name):
            raise GuardedFieldError(f"{name} cannot be changed", record=seen["record"])
    target = whose | {"record": seen["record"]}
    text, tags, layer = (arguments.get(name) for name in ("text", "tags", "layer"))
    if tags is not None and not isinstance(tags, list):
        raise UsageError("tags must be a list of texts")
    wanted, held = set(tags if tags is not None else seen["tags"]), set(seen["tags"])
    changes = {
        "text": text is not None and text != seen["text"],
        "tags": wanted != held,
        "layer": layer is not None and layer != seen["layer"],
    }
    if changes["text"] and not arguments.get("reason"):
        raise UsageError("a new text needs a reason")
    done: Result = {"record": seen["record"], "changed": [k for k, v in changes.items() if v]}
    if arguments.get("dry_run"):
        return done | {"dry_run": True}
    # The tags and the layer first: a new text takes them along, and may wait for a person.
    if wanted - held:
        await call("tag", target | {"tags": sorted(wanted - held)})
    if held - wanted:
        await call("untag", target | {"tags": sorted(held - wanted)})
    if changes["layer"]:
        await call("move", target | {"layer": layer})
    if changes["text"]:
        done |= await call("revise", target | {"text": text, "reason": arguments["reason"]})
    return done


async def _retire(call: Call, arguments: Result) -> Result:
    if not arguments.pop("dry_run", False):
        return await call("retire", arguments)
    seen = await call("show", _whose(arguments) | {"record": arguments["record"]})
    return {"record": seen["record"], "would_retire": True, "dry_run": True}


def _whose(arguments: Result) -> Result:
    return {k: v for k, v in arguments.items() if k == "agent"}


_SPECIAL: Final[Mapping[str, Callable[[Call, Result], Awaitable[Result]]]] = {
    "memory_explain": _explain,
    "memory_store": _store,
    "memory_update": _update,
    "memory_retire": _retire,
}
