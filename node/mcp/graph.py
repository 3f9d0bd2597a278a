"""The nine tools of the MCP reference memory server, over entities, properties and relations.

Names, parameters and JSON are that server's, so that its users change one line. An entity's type is
its property ``type``; each observation is a property of its own. Deleting retires and never erases.

The differences are Roost's: names that differ only in case, spacing or Unicode form are one name,
also within one call; a relation needs both its ends; and what was deleted does not return by
itself, so that adding it again is an error.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from keys.errors import NotFoundError, UsageError
from keys.ids import hash256
from keys.limits import LIST_LIMIT_MAX
from memory.shapes import folded_name
from node.mcp.tools import TEXT, TEXTS, Answer, Call, Parameter, Result, Schema, Tool

ROOT: Final = "concepts"
TYPE: Final = "type"
OBSERVATION: Final = "observation "
REASON: Final = "deleted by the agent"


class Graph:
    """The graph as the caller sees it now, oldest first."""

    def __init__(
        self, entities: list[Result], properties: list[Result], relations: list[Result]
    ) -> None:
        self.ids = {folded_name(e["name"]): str(e["record"]) for e in entities}
        self._names = {str(e["record"]): str(e["name"]) for e in entities}
        self._types: dict[str, str] = {}
        self.held: dict[str, dict[str, str]] = {record: {} for record in self._names}
        for p in properties:
            if p["entity"] not in self.held:
                continue
            if p["name"] == TYPE:
                self._types[p["entity"]] = p["text"]
            elif p["name"].startswith(OBSERVATION):
                self.held[p["entity"]][p["text"]] = p["name"]
        self._relations = [
            r for r in relations if r["from"] in self._names and r["to"] in self._names
        ]

    @classmethod
    async def read(cls, call: Call) -> Graph:
        """All of it."""
        entities = (await call("entity.list", {}))["entities"]
        relations = (await call("relation.list", {}))["relations"]
        properties: list[Result] = []
        page: Result = {"kinds": ["property"], "limit": LIST_LIMIT_MAX}
        while True:
            found = await call("list", page)
            properties += found["records"]
            if found["next"] is None:
                return cls(entities, properties[::-1], relations)
            page["cursor"] = found["next"]

    def id_of(self, name: str) -> str:
        """The record of an entity; raises ``NotFoundError``."""
        found = self.ids.get(folded_name(name))
        if found is None:
            raise NotFoundError(f"Entity with name {name} not found")
        return found

    def relations(self) -> list[tuple[str, Result]]:
        """(record, relation as it is shown)."""
        return [
            (
                str(r["record"]),
                {
                    "from": self._names[r["from"]],
                    "to": self._names[r["to"]],
                    "relationType": r["name"],
                },
            )
            for r in self._relations
        ]

    def shown(self, wanted: Callable[[Result], bool] | None = None) -> Result:
        """The entities that are wanted, and the relations that touch them."""
        entities = [
            {
                "name": name,
                "entityType": self._types.get(record, ""),
                "observations": list(self.held[record]),
            }
            for record, name in self._names.items()
        ]
        relations = [shown for _, shown in self.relations()]
        if wanted is not None:
            entities = [e for e in entities if wanted(e)]
            names = {e["name"] for e in entities}
            relations = [r for r in relations if r["from"] in names or r["to"] in names]
        return {"entities": entities, "relations": relations}


async def _create_entities(call: Call, arguments: Result) -> Answer:
    made: list[Result] = []
    for given in _rows(arguments["entities"], ("name", "entityType"), ("observations",)):
        done = await call("entity.add", {"name": given["name"], "root": ROOT})
        if not done["created"]:
            continue
        await _set(call, done["record"], TYPE, given["entityType"])
        for text in given["observations"]:
            await _set(call, done["record"], _observation(text), text)
        made.append(given)
    return _answer({"entities": made}, made)


async def _create_relations(call: Call, arguments: Result) -> Answer:
    wanted = _relations(arguments)
    graph = await Graph.read(call)
    ends = [(graph.id_of(r["from"]), graph.id_of(r["to"])) for r in wanted]
    made: list[Result] = []
    for (start, end), given in zip(ends, wanted, strict=True):
        relation = {"from": start, "type": given["relationType"], "to": end}
        if (await call("relation.add", relation))["created"]:
            made.append(given)
    return _answer({"relations": made}, made)


async def _add_observations(call: Call, arguments: Result) -> Answer:
    wanted = _rows(arguments["observations"], ("entityName",), ("contents",))
    graph = await Graph.read(call)
    records = [graph.id_of(given["entityName"]) for given in wanted]
    results: list[Result] = []
    for record, given in zip(records, wanted, strict=True):
        held = graph.held[record]
        fresh = [text for text in given["contents"] if text not in held]
        for text in fresh:
            await _set(call, record, _observation(text), text)
            held[text] = _observation(text)
        results.append({"entityName": given["entityName"], "addedObservations": fresh})
    return _answer({"results": results}, results)


async def _delete_entities(call: Call, arguments: Result) -> Answer:
    names = _texts(arguments["entityNames"], "entityNames")
    graph = await Graph.read(call)
    for record in {graph.ids.get(folded_name(name)) for name in names} - {None}:
        await call("entity.remove", {"entity": record, "reason": REASON})
    return _told("Entities")


async def _delete_observations(call: Call, arguments: Result) -> Answer:
    wanted = _rows(arguments["deletions"], ("entityName",), ("observations",))
    graph = await Graph.read(call)
    for given in wanted:
        record = graph.ids.get(folded_name(given["entityName"]), "")
        held = graph.held.get(record, {})
        for text in held.keys() & set(given["observations"]):
            gone = {"entity": record, "property": held.pop(text), "reason": REASON}
            await call("entity.remove", gone)
    return _told("Observations")


async def _delete_relations(call: Call, arguments: Result) -> Answer:
    wanted = _relations(arguments)
    for record, shown in (await Graph.read(call)).relations():
        if shown in wanted:
            await call("relation.remove", {"relation": record, "reason": REASON})
    return _told("Relations")


async def _read_graph(call: Call, _arguments: Result) -> Answer:
    graph = (await Graph.read(call)).shown()
    return _answer(graph, graph)


async def _search_nodes(call: Call, arguments: Result) -> Answer:
    query = str(arguments["query"]).lower()

    def matches(entity: Result) -> bool:
        words = (entity["name"], entity["entityType"], *entity["observations"])
        return any(query in word.lower() for word in words)

    graph = (await Graph.read(call)).shown(matches)
    return _answer(graph, graph)


async def _open_nodes(call: Call, arguments: Result) -> Answer:
    names = {folded_name(name) for name in _texts(arguments["names"], "names")}
    graph = (await Graph.read(call)).shown(lambda e: folded_name(e["name"]) in names)
    return _answer(graph, graph)


async def _set(call: Call, record: str, name: str, value: str) -> None:
    await call("entity.set", {"entity": record, "name": name, "value": value})


def _observation(text: str) -> str:
    """The name of the property that holds an observation: another one for each text."""
    return OBSERVATION + hash256(b"roost observation", text.encode("utf-8", "replace")).hex()[:16]


def _answer(structured: Result, shown: object) -> Answer:
    return Answer(structured, (json.dumps(shown, indent=2, ensure_ascii=False),))


def _told(what: str) -> Answer:
    """What that server says of every deletion, whether or not there was anything to delete."""
    message = f"{what} deleted successfully"
    return Answer({"success": True, "message": message}, (message,))


def _relations(arguments: Result) -> list[Result]:
    return _rows(arguments["relations"], ("from", "to", "relationType"), ())


def _rows(given: object, texts: tuple[str, ...], lists: tuple[str, ...]) -> list[Result]:
    """Objects with exactly these members; raises ``UsageError``."""
    if not isinstance(given, list):
        raise UsageError("a list is wanted")
    for row in given:
        if not isinstance(row, dict) or row.keys() != {*texts, *lists}:
            raise UsageError("each item has exactly " + ", ".join((*texts, *lists)))
        for name in texts:
            if not isinstance(row[name], str):
                raise UsageError(f"{name} must be text")
        for name in lists:
            _texts(row[name], name)
    return given


def _texts(given: object, name: str) -> list[str]:
    if not isinstance(given, list) or any(not isinstance(v, str) for v in given):
        raise UsageError(f"{name} must be a list of texts")
    return given


def _array(*texts: str, lists: tuple[str, ...] = ()) -> Schema:
    properties = dict.fromkeys(texts, TEXT) | dict.fromkeys(lists, TEXTS)
    item = {"type": "object", "properties": properties, "required": [*texts, *lists]}
    return {"type": "array", "items": item}


def _needed(name: str, schema: Schema, about: str) -> Parameter:
    return Parameter(name, schema, about, required=True)


_ENTITIES: Final = _array("name", "entityType", lists=("observations",))
_RELATIONS: Final = _array("from", "to", "relationType")

GRAPH: Final = (
    Tool(
        "create_entities",
        "entity.add",
        "Create entities; those whose name there is already are left as they are.",
        (_needed("entities", _ENTITIES, "The entities."),),
    ),
    Tool(
        "create_relations",
        "relation.add",
        "Create relations between entities, in active voice.",
        (_needed("relations", _RELATIONS, "The relations."),),
    ),
    Tool(
        "add_observations",
        "entity.set",
        "Add observations to entities.",
        (_needed("observations", _array("entityName", lists=("contents",)), "What is new."),),
    ),
    Tool(
        "delete_entities",
        "entity.remove",
        "Withhold entities and their relations.",
        (_needed("entityNames", TEXTS, "Their names."),),
        destroys=True,
        repeats=True,
    ),
    Tool(
        "delete_observations",
        "entity.remove",
        "Withhold observations of entities.",
        (_needed("deletions", _array("entityName", lists=("observations",)), "What goes."),),
        destroys=True,
        repeats=True,
    ),
    Tool(
        "delete_relations",
        "relation.remove",
        "Withhold relations.",
        (_needed("relations", _RELATIONS, "The relations."),),
        destroys=True,
        repeats=True,
    ),
    Tool("read_graph", "list", "Read the whole graph.", (), reads=True),
    Tool(
        "search_nodes",
        "list",
        "Find entities whose name, type or observations hold a text.",
        (_needed("query", TEXT, "The text."),),
        reads=True,
    ),
    Tool(
        "open_nodes",
        "list",
        "Read entities by their names.",
        (_needed("names", TEXTS, "The names."),),
        reads=True,
    ),
)

RUN_GRAPH: Final[Mapping[str, Callable[[Call, Result], Awaitable[Answer]]]] = {
    "create_entities": _create_entities,
    "create_relations": _create_relations,
    "add_observations": _add_observations,
    "delete_entities": _delete_entities,
    "delete_observations": _delete_observations,
    "delete_relations": _delete_relations,
    "read_graph": _read_graph,
    "search_nodes": _search_nodes,
    "open_nodes": _open_nodes,
}
