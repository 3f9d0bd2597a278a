"""What ``remember`` answers and ``show`` and ``list`` tell, through the dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keys.errors import RefusedError
from node.caller import Credential
from tests.support.byte_scan import found_in
from tests.support.surface import Surface, surface

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY_US = 86_400_000_000
TOKEN = "gh" + "p_" + "Zq3TvB8nLw5RkXc7YhD2mJf9PsGa4Ue6Ty1K"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Surface]:
    """One node for all tests here."""
    async with surface(tmp_path_factory.mktemp("remembering") / "home") as made:
        yield made


async def test_M_H24_an_agents_secret_is_refused_noted_and_nowhere_in_the_home(at: Surface) -> None:
    """The row of the refusal has no text; with ``redact`` the rest of the text is kept."""
    token = await at.token()
    text = f"deploy the greenhouse with {TOKEN}"
    error = await at.error(Credential(bearer=token), "remember", text=text)
    assert isinstance(error, RefusedError)
    assert (error.code, error.exit_code) == ("secret", 3)
    assert ("secret", "remember") in [(code, verb) for code, verb, _ in await at.refused()]
    kept = await at.call(Credential(bearer=token), "remember", text=text, redact=True)
    assert kept["redacted"] == ["github token"]
    rows = [{"text": text + " again"}, {"text": "the greenhouse has nine panes"}]
    batch = await at.node("remember.batch", agent="muse", rows=rows)
    assert [(r["line"], r["code"]) for r in batch["refused"]] == [(1, "secret")]
    redacted = await at.node("remember.batch", agent="muse", rows=rows[:1], redact=True)
    assert (redacted["written"], redacted["refused"]) == (1, [])
    run = (await at.node("import.begin", agent="muse"))["run"]
    done = await at.node("import.lines", agent="muse", run=run, rows=rows[:1])
    assert [p["code"] for p in done["problems"]] == ["secret"]
    home = at.node.path
    noted = [verb for code, verb, _ in await at.refused() if code == "secret"]
    assert noted == ["remember", "remember.batch", "import.lines"]
    assert await asyncio.to_thread(found_in, home, TOKEN) == []
    assert await asyncio.to_thread(found_in, home, "deploy the greenhouse") != []


async def test_near_memories_are_named_by_id_and_state(at: Surface) -> None:
    old = await at.node("remember", agent="muse", text="The trellis is painted green")
    await at.node("retire", agent="muse", record=old["record"], reason="repainted")
    new = await at.node("remember", agent="muse", text="the trellis is painted green again")
    assert new["near"] == [{"record": old["record"], "state": "deprecated"}]
    other = await at.node("remember", agent="muse", text="the trellis is not painted green")
    assert old["record"] not in [n["record"] for n in other["near"]]


async def test_M_E12_show_tells_what_the_words_meant(at: Surface) -> None:
    text = "the gardener came yesterday"
    made = await at.node("remember", agent="muse", text=text)
    shown = await at.node("show", agent="muse", record=made["record"])
    assert shown["text"] == text
    assert [words for words, _ in shown["when"]] == ["yesterday"]
    plain = await at.node("remember", agent="muse", text="the gardener came")
    assert "when" not in await at.node("show", agent="muse", record=plain["record"])


async def test_a_suspect_clock_is_shown_in_lists(at: Surface) -> None:
    """Written while this node's clock was two days ahead, and looked at once it was put right."""
    right = await at.node("remember", agent="muse", text="the hourglass is empty")
    at.node.clock.offset_us = 2 * DAY_US
    made = await at.node("remember", agent="muse", text="the sundial is right")
    at.node.clock.offset_us = 0
    listed = await at.node("list", agent="muse", limit=500)
    suspects = [r["record"] for r in listed["records"] if r.get("clock_suspect")]
    assert suspects == [made["record"]]
    assert (await at.node("show", agent="muse", record=made["record"]))["clock_suspect"] is True
    assert "clock_suspect" not in await at.node("show", agent="muse", record=right["record"])
