"""Exports and imports through the verbs of a running node."""

import asyncio
import json
from pathlib import Path
from typing import Any

from node.importers.formats import READERS, detect
from tests.support.peers import PASSPHRASE, Node, running

GRAPH = [
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]},
    {"type": "entity", "name": "Roost", "entityType": "project", "observations": []},
    {"type": "relation", "from": "Ada", "to": "Roost", "relationType": "works on"},
]


async def imported(node: Node, agent: str, rows: list[Any], **more: Any) -> dict[str, Any]:
    """Import rows in one call that is the last."""
    run = (await node("import.begin", agent=agent))["run"]
    given = {"rows": rows, "run": run, "last": True} | more
    return await node("import.lines", agent=agent, **given) | {"run": run}


def rows_of(path: Path) -> list[Any]:
    path.write_text("".join(json.dumps(line) + "\n" for line in GRAPH))
    return [row for row in READERS[detect(path)](path) if isinstance(row, dict)]


async def states(node: Node, agent: str) -> list[tuple[str, str]]:
    found = (await node("list", agent=agent, limit=100))["records"]
    return sorted((r["kind"], r["state"]) for r in found)


async def test_M_H18_an_import_of_any_kind_waits_until_the_run_is_approved(tmp_path: Path) -> None:
    """Trust does not rise by import: no entity, property or relation is live before."""
    graph = await asyncio.to_thread(rows_of, tmp_path / "memory.jsonl")
    node = await asyncio.to_thread(Node, tmp_path / "n")
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        done = await imported(node, "muse", graph)
        assert (done["imported"], done["waiting"], done["problems"]) == (4, 4, [])
        kinds = ["entity", "entity", "property", "relation"]
        assert await states(node, "muse") == [(kind, "proposed") for kind in kinds]
        assert (await node("search", agent="muse", query="tea"))["results"] == []
        again = await imported(node, "muse", graph)
        assert (again["imported"], again["skipped"]) == (0, 4)
        approved = await node(
            "review.approve", agent="muse", run=done["run"], passphrase=PASSPHRASE
        )
        assert approved["approved"] == 4
        assert await states(node, "muse") == [(kind, "current") for kind in kinds]
        assert len((await node("search", agent="muse", query="tea"))["results"]) == 1


async def test_M_H18_a_row_is_checked_as_any_memory_is(tmp_path: Path) -> None:
    """A bad row is reported by its line, the good one beside it is written."""
    rows = [
        {"line": 1, "text": "x", "layer": "epoch"},
        {"line": 2, "text": "y", "unknown": 1},
        {"line": 3, "kind": "property", "name": "n", "text": "z", "entity": "name:Nobody"},
        {"line": 4, "text": "good"},
    ]
    node = await asyncio.to_thread(Node, tmp_path / "n")
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        done = await imported(node, "muse", rows)
        assert done["imported"] == 1
        assert [p["line"] for p in done["problems"]] == [1, 2, 3]
