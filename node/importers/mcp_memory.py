"""The MCP reference memory server (``memory.jsonl``): entities, relations, observations.

Each line is ``{"type": "entity", "name", "entityType", "observations"}`` or ``{"type": "relation",
"from", "to", "relationType"}``. It keeps no times and no ids: names are its ids. An observation
becomes the property ``observation`` of its entity.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memory.notes import clean
from node.importers.jsonl import read_objects
from node.importers.opening import plain_file
from node.importers.rows import (
    Problem,
    Row,
    entity_row,
    name_of,
    property_row,
    relation_row,
    source_of,
)


def read_mcp_memory(path: Path) -> Iterator[Row | Problem]:
    """The rows of such a file, line by line; raises ``UsageError``, see ``plain_file``."""
    with plain_file(path) as file:
        for found in read_objects(file):
            if isinstance(found, Problem):
                yield found
            else:
                yield from _line(path.name, *found)


def _line(file: str, line: int, found: Row) -> Iterator[Row | Problem]:
    match found.get("type"):
        case "entity":
            yield from _entity(file, line, found)
        case "relation":
            names = [name_of(found.get(key)) for key in ("from", "relationType", "to")]
            start, name, end = names
            if start is None or name is None or end is None:
                yield Problem(line, "a relation has from, to and relationType, each a short text")
            else:
                yield relation_row(line, start, name, end, source_of(file, line))
        case _:
            yield Problem(line, "neither an entity nor a relation")


def _entity(file: str, line: int, found: Row) -> Iterator[Row | Problem]:
    name, said = name_of(found.get("name")), found.get("observations", [])
    if name is None:
        yield Problem(line, "an entity has a name, a short text")
        return
    yield entity_row(line, name, found.get("entityType"), source_of(file, line))
    if not isinstance(said, list):
        yield Problem(line, "observations are no list")
        return
    for place, text in enumerate(said):
        if isinstance(text, str) and text.strip():
            source = source_of(file, f"{line}/{place}")
            yield property_row(line, name, "observation", clean(text), source)
        else:
            yield Problem(line, "an observation is no text", f"observations[{place}]")
