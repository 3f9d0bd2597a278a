"""The profiles ``graph`` and ``full``: as the reference server answers, and every further tool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keys.errors import NotFoundError, RoostError, UsageError
from memory.writing import RetiredError
from node.caller import Credential
from node.mcp.calling import PROFILES, run_tool, tool_named
from node.mcp.fulltools import FULL
from node.mcp.graph import GRAPH
from node.mcp.tools import Answer
from tests.support.peers import PASSPHRASE
from tests.support.surface import OTHER, PROPOSED, Surface, surface

pytestmark = pytest.mark.asyncio(loop_scope="module")
RECORDED = json.loads((Path(__file__).parent / "graph" / "recorded.json").read_text())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Surface]:
    """A node with what an agent must not see."""
    async with surface(tmp_path_factory.mktemp("graph") / "home") as made:
        yield made


async def use(at: Surface, profile: str, tool: str, arguments: dict[str, Any]) -> Answer:
    """What a tool answers to a session of muse's; by the functions that both transports call."""
    credential = Credential(agent="muse", run="one", profile=profile)

    async def call(verb: str, params: dict[str, Any]) -> dict[str, Any]:
        return await at.node.dispatch.call(verb, params, None, credential)

    return await run_tool(call, tool_named(profile, tool), arguments)


async def test_the_graph_profile_answers_as_the_reference_server(at: Surface) -> None:
    """A recorded script of 30 calls and more: the same texts, the same JSON, the same errors."""
    assert {t.name for t in GRAPH} == {call["tool"] for call in RECORDED["calls"]}
    assert len(RECORDED["calls"]) >= 30
    for step, call in enumerate(RECORDED["calls"]):
        wanted = call["answer"]
        if wanted["error"]:
            with pytest.raises(RoostError) as caught:
                await use(at, "graph", call["tool"], call["arguments"])
            assert [caught.value.message] == wanted["texts"]
            continue
        done = await use(at, "graph", call["tool"], call["arguments"])
        told = (call["tool"], list(done.texts), done.value)
        assert told == (call["tool"], wanted["texts"], wanted["value"]), step
    gone = await at.node("list", agent="muse", kinds=["entity"], states=["deprecated"])
    assert "Oak" in {r["text"] for r in gone["records"]}  # deleted is retired, not erased
    again = [{"entityName": "Ada", "contents": ["likes tea"]}]
    with pytest.raises(RetiredError):  # and does not return by itself
        await use(at, "graph", "add_observations", {"observations": again})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_entities", {"entities": [{"name": "x"}]}),
        ("create_entities", {"entities": "x"}),
        ("create_entities", {"entities": [{"name": 1, "entityType": "", "observations": []}]}),
        ("create_relations", {"relations": [{"from": "a", "to": "b"}]}),
        ("add_observations", {"observations": [{"entityName": "a", "contents": "x"}]}),
        ("delete_entities", {"entityNames": [1]}),
        ("open_nodes", {}),
        ("read_graph", {"agent": "other"}),
    ],
)
async def test_what_the_graph_tools_do_not_take(
    at: Surface, tool: str, arguments: dict[str, Any]
) -> None:
    """Shapes are checked before anything is written."""
    before = await at.node("digest", agent="muse")
    with pytest.raises(UsageError):
        await use(at, "graph", tool, arguments)
    assert await at.node("digest", agent="muse") == before


# (tool, arguments, a word of the answer), in order: later ones use what earlier ones made.
FULL_CASES: list[tuple[str, dict[str, Any], str]] = [
    ("entity_add", {"name": "Harbour", "root": "locations"}, "created"),
    ("entity_add", {"name": "Mill", "root": "locations", "tag": "old"}, "created"),
    ("entity_set", {"entity": "Mill", "property": "colour", "value": "white"}, "created"),
    ("entity_show", {"name": "Mill"}, "white"),
    ("entity_list", {}, "Harbour"),
    ("relation_add", {"from": "Mill", "type": "stands at", "to": "Harbour"}, "created"),
    ("relation_list", {}, "stands at"),
    ("relation_show", {"relation": "{relation}"}, "stands at"),
    ("relation_remove", {"relation": "{relation}", "reason": "so", "dry_run": True}, "would"),
    ("relation_remove", {"relation": "{relation}", "reason": "so"}, "retired"),
    ("entity_remove", {"entity": "Mill", "property": "colour", "reason": "so"}, "retired"),
    ("file_add", {"name": "notes.md", "content": "# One\n\nfirst lines\n"}, "created"),
    ("file_show", {"file": "notes.md"}, "first lines"),
    ("file_list", {}, "notes.md"),
    ("file_set", {"file": "notes.md", "text": "# One\n\nnew\n", "hash": "{hash}"}, "record"),
    ("file_remove", {"file": "notes.md", "reason": "so"}, "retired"),
    ("diary_add", {"text": "a quiet day", "title": "Monday"}, "created"),
    ("diary_list", {}, "quiet"),
    ("diary_show", {"diary": "{diary}"}, "quiet"),
    ("session_append", {"session": "s1", "role": "bob", "text": "good morning"}, "created"),
    ("session_show", {"session": "s1"}, "good morning"),
    ("session_list", {}, "s1"),
    ("session_summarise", {"session": "s1", "text": "a greeting"}, "record"),
    ("session_end", {"session": "s1"}, "record"),
    ("skill_propose", {"name": "tidy", "script": "echo tidy"}, "proposed"),
    ("skill_list", {}, "skills"),
    ("memory_history", {"id": "{live}"}, "kettle"),
    ("memory_explain", {"q": "kettle"}, "why"),
]


async def test_every_tool_of_the_full_profile(at: Surface) -> None:
    """Each does what it says; nothing that waits is shown, nothing is approved."""
    cases = {tool for tool, _, _ in FULL_CASES}
    assert {t.name for t in FULL} - cases == {"skill_show"}
    known = {"live": at.live}
    for tool, arguments, word in FULL_CASES:
        given = {
            k: v.format(**known) if isinstance(v, str) and v[:1] == "{" else v
            for k, v in arguments.items()
        }
        answer = (await use(at, "full", tool, given)).value
        said = json.dumps(answer)
        assert word in said, tool
        assert PROPOSED not in said
        assert OTHER not in said
        assert "echo tidy" not in said, tool  # skills that wait
        if tool in ("relation_add", "diary_add", "skill_propose"):
            known[tool.partition("_")[0]] = str(answer["record"])
        if tool == "file_show":
            known["hash"] = answer["hash"]
    with pytest.raises(NotFoundError):
        await use(at, "full", "skill_show", {"skill": known["skill"]})
    waiting = await at.node("review.show", agent="muse", record=known["skill"])
    await at.node(
        "review.approve",
        agent="muse",
        record=known["skill"],
        heads=waiting["heads"],
        passphrase=PASSPHRASE,
    )
    shown = await use(at, "full", "skill_show", {"skill": "tidy"})
    assert "echo tidy" in json.dumps(shown.value)


async def test_every_tool_names_a_verb_that_an_agent_may_call() -> None:
    """No tool of any profile leads to what is for a person."""
    from node.rules import RULES, Does

    for profile, tools in PROFILES.items():
        assert len({t.name for t in tools}) == len(tools), profile
        for tool in tools:
            assert RULES[tool.verb].does is not Does.PERSON, tool.name
            assert tool.reads == (RULES[tool.verb].does is Does.READ), tool.name
