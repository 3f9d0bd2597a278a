"""Records what the MCP reference memory server answers to a script of calls.

``npm install @modelcontextprotocol/server-memory@2026.8.31`` into a directory, then
``python -m tests.surface.graph.record DIRECTORY > tests/surface/graph/recorded.json``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

VERSION = "2026.8.31"


def entity(name: str, kind: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(start: str, kind: str, end: str) -> dict[str, str]:
    return {"from": start, "to": end, "relationType": kind}


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("read_graph", {}),
    ("create_entities", {"entities": [entity("Ada", "person", "likes tea", "plays chess")]}),
    ("create_entities", {"entities": [entity("Ada", "robot", "is new")]}),
    ("create_entities", {"entities": [entity("Bo", "person"), entity("Oak", "tree", "is old")]}),
    ("create_entities", {"entities": [entity("Elm", "tree")]}),
    ("create_entities", {"entities": []}),
    ("read_graph", {}),
    ("create_relations", {"relations": [relation("Ada", "knows", "Bo")]}),
    ("create_relations", {"relations": [relation("Ada", "knows", "Bo")]}),
    (
        "create_relations",
        {"relations": [relation("Bo", "waters", "Oak"), relation("Bo", "waters", "Elm")]},
    ),
    ("open_nodes", {"names": ["Oak"]}),
    ("read_graph", {}),
    (
        "add_observations",
        {"observations": [{"entityName": "Bo", "contents": ["sings", "swims"]}]},
    ),
    (
        "add_observations",
        {"observations": [{"entityName": "Bo", "contents": ["sings", "paints"]}]},
    ),
    ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
    ("search_nodes", {"query": "TREE"}),
    ("search_nodes", {"query": "tea"}),
    ("search_nodes", {"query": "nothing holds this"}),
    ("open_nodes", {"names": ["Ada", "Nobody"]}),
    ("open_nodes", {"names": []}),
    (
        "delete_observations",
        {"deletions": [{"entityName": "Ada", "observations": ["likes tea"]}]},
    ),
    (
        "delete_observations",
        {"deletions": [{"entityName": "Ada", "observations": ["likes tea", "never said"]}]},
    ),
    ("delete_observations", {"deletions": [{"entityName": "Nobody", "observations": ["x"]}]}),
    ("open_nodes", {"names": ["Ada"]}),
    ("delete_relations", {"relations": [relation("Bo", "waters", "Elm")]}),
    ("delete_relations", {"relations": [relation("Bo", "waters", "Elm")]}),
    ("read_graph", {}),
    ("delete_entities", {"entityNames": ["Bo"]}),
    ("delete_entities", {"entityNames": ["Bo", "Oak"]}),
    ("read_graph", {}),
    ("create_entities", {"entities": [entity("Bo", "boat", "floats")]}),
    ("read_graph", {}),
]


async def play(client: Client) -> list[dict[str, Any]]:
    """The answers to the script."""
    answers = []
    for tool, arguments in SCRIPT:
        done = await client.call_tool(tool, arguments)
        texts = [getattr(part, "text", "") for part in done.content]
        answer = {"error": done.is_error, "texts": texts}
        if not done.is_error:
            answer["value"] = done.structured_content
        answers.append({"tool": tool, "arguments": arguments, "answer": answer})
    return answers


async def record(folder: Path) -> list[dict[str, Any]]:
    """Run the npm server on an empty file."""
    program = folder / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    with tempfile.TemporaryDirectory() as empty:
        environment = {"MEMORY_FILE_PATH": f"{empty}/memory.jsonl"}
        server = StdioServerParameters(command="node", args=[str(program)], env=environment)
        async with Client(server, mode="legacy") as client:
            return await play(client)


if __name__ == "__main__":
    recorded = asyncio.run(record(Path(sys.argv[1]).resolve()))
    sys.stdout.write(json.dumps({"version": VERSION, "calls": recorded}, indent=1) + "\n")
