"""The keeper of a node that runs: due times, catching up, who does it, what a person approves."""

from __future__ import annotations

import pytest

from memory.jobs import JobName
from node.keeper import Keeper, next_after, plan
from node.keeping import run_job
from tests.support.peers import PASSPHRASE, Node, equal, pair, remember, running

MINUTE_US = 60_000_000
DAY_US = 24 * 60 * MINUTE_US
FACT = "I moved to Lisbon in May 2023."


def forward(node: Node, us: int) -> None:
    node.clock.offset_us += us


async def diary(node: Node, text: str = FACT) -> None:
    await node("diary.add", agent="muse", text=text)


async def texts(node: Node) -> list[str]:
    found = await node("list", agent="muse", kinds=["observation"])
    return [str(row["text"]) for row in found["records"]]


async def runs(node: Node, kind: str) -> list[str]:
    found = (await node("jobs.log", limit=1_000))["runs"]
    return [str(run["outcome"]) for run in reversed(found) if run["kind"] == kind]


def test_next_after_is_strictly_later() -> None:
    at = next_after("0 * * * *", 1_700_000_000_000_000)
    assert at is not None
    assert at > 1_700_000_000_000_000
    again = next_after("0 * * * *", at)
    assert again == at + 60 * MINUTE_US
    assert next_after("", at) is None
    assert next_after("61 * * * *", at) is None


async def test_a_diary_line_is_an_observation_65_minutes_later(two: list[Node]) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        keeper = Keeper(a.core)
        await keeper.run_due()  # what is new counts from now
        await diary(a)
        assert await texts(a) == []
        forward(a, 65 * MINUTE_US)
        await keeper.run_due()
        assert await texts(a) == [FACT]


async def test_three_days_of_sleep_are_one_run_per_job(two: list[Node]) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        keeper = Keeper(a.core)
        await keeper.run_due()
        await diary(a)
        forward(a, 3 * DAY_US)
        await keeper.run_due()
        await keeper.run_due()
        assert await runs(a, "intake") == ["done"]
        assert (await runs(a, "expiry")) == ["nothing"]
        rows = (await a("jobs.list"))["jobs"]
        assert {row["job"] for row in rows} >= {"intake", "review.day", "expiry"}
        assert all(row["next_run"] is None for row in rows if row["job"] == "review.millennium")
        assert await a("jobs.pause", agent="muse", job="intake") == {
            "job": "intake",
            "agent": rows[0]["agent"],
            "paused": True,
        }
        forward(a, DAY_US)
        await keeper.run_due()
        assert await runs(a, "intake") == ["done"]


async def test_a_clock_set_back_stops_no_job(two: list[Node]) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        keeper = Keeper(a.core)
        await keeper.run_due()
        forward(a, -900 * DAY_US)
        await keeper.run_due()
        await diary(a)
        forward(a, 65 * MINUTE_US)
        await keeper.run_due()
        assert await texts(a) == [FACT]


async def test_S_K1_two_nodes_give_one_result(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await diary(a)
        light = await remember(a, "muse", "it rained", weight=0.1)
        await equal("muse", a, b)
        keepers = [Keeper(node.core) for node in (a, b)]
        for keeper in keepers:
            await keeper.run_due()
        for node in (a, b):
            forward(node, DAY_US + 3 * 60 * MINUTE_US)
        for keeper in keepers:
            await keeper.run_due()
        await equal("muse", a, b)
        for node in (a, b):
            assert sorted(await texts(node)) == sorted([FACT, "it rained"])
        (verdict,) = (await b("review.list", agent="muse"))["review"]
        assert (await a("review.list", agent="muse"))["review"] == [verdict]
        assert verdict["kind"] == "verdict"
        reviews = [set(await runs(node, "review")) for node in (a, b)]
        assert sum("elsewhere" in found for found in reviews) == 1
        await b(
            "review.approve",
            agent="muse",
            record=verdict["record"],
            heads=verdict["heads"],
            passphrase=PASSPHRASE,
        )
        await equal("muse", a, b)
        assert (await a("show", agent="muse", record=light))["state"] == "deprecated"


async def test_S_K4_what_could_not_run_is_not_noted_as_done(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = two
    async with running(a):
        made = await a("agent.create", name="muse", passphrase=PASSPHRASE)
        keeper = Keeper(a.core)
        await keeper.run_due()
        await diary(a)
        forward(a, 65 * MINUTE_US)
        with monkeypatch.context() as broken:
            broken.setattr("memory.intake.take_in", lambda *_: 1 / 0)
            await keeper.run_due()
        assert await runs(a, "intake") == ["failed"]
        await keeper.run_due()
        assert await runs(a, "intake") == ["failed", "done"]
        assert await texts(a) == [FACT]
        assert made["agent"]


async def test_R36_expiry_does_not_run_under_a_wrong_clock(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        made = await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", "for a day", expires="2030-01-01")
        await equal("muse", a, b)
        job = JobName(next(iter(a.core.agents.all())).agent, "expiry")
        peer = b.core.device
        forward(a, 4_000 * DAY_US)
        now_us = a.core.clock.now_us()
        await a.core.db.run(lambda db: db.peers.seen(peer, None, -3_700_000, now_us))
        run = await run_job(a.core, job, asked=True, started_us=0)
        assert run.outcome == "skipped"
        shown = await a("list", agent="muse", states=["expired"])
        assert [row["record"] for row in shown["records"]] == [record]
        await a.core.db.run(lambda db: db.peers.seen(peer, None, 0, now_us))
        run = await run_job(a.core, job, asked=True, started_us=0)
        assert [str(r) for r in run.wrote] == [record]
        assert made["agent"]
        assert len(await plan(a.core)) == 9
