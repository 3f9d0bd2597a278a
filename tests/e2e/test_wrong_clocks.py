"""Real nodes of which one has a wrong clock (S-B1, S-B3)."""

from __future__ import annotations

import pytest

from tests.support.peers import (
    PASSPHRASE,
    Node,
    befriend,
    equal,
    remember,
    running,
    share,
    until_true,
)

pytestmark = pytest.mark.e2e

HOUR_US = 3_600_000_000
YEARS_US = 14 * 365 * 24 * HOUR_US


async def met(a: Node, b: Node) -> None:
    await a("agent.create", name="muse", passphrase=PASSPHRASE)
    await befriend(a, b)
    await share(a, "muse", b, "read", "write")


async def alerts(node: Node) -> dict[str, str]:
    return {x["code"]: x["message"] for x in (await node("status"))["alerts"]}


async def layer(node: Node, record: str) -> str:
    return str((await node("show", agent="muse", record=record))["layer"])


async def test_S_B1_who_edits_last_wins_though_the_other_clock_is_fast(two: list[Node]) -> None:
    """A an hour ahead is told of by name; its edit loses to B's later one, and nothing is lost."""
    a, b = two
    async with running(a, b):
        await met(a, b)
        assert "clock" not in await alerts(b), "positive control"
        a.clock.offset_us = HOUR_US
        record = await remember(a, "muse", "The shop opens at nine")
        await a("move", agent="muse", record=record, layer="year")
        await equal("muse", a, b)
        await b("sync")
        assert "clock of a is +1 h ahead" in (await alerts(b))["clock"]
        assert "clock of b is -1 h behind" in (await alerts(a))["clock"]
        await b("move", agent="muse", record=record, layer="week")
        a.clock.offset_us = 0
        await equal("muse", a, b)
        assert [await layer(n, record) for n in (a, b)] == ["week", "week"]
        await a("move", agent="muse", record=record, layer="month")
        await equal("muse", a, b)
        assert [await layer(n, record) for n in (a, b)] == ["month", "month"]
        await b("sync")
        assert "clock" not in await alerts(b)


async def test_S_B3_one_change_stamped_2040_moves_no_clock_and_stops_no_sync(
    two: list[Node],
) -> None:
    """Later writes have their own time and arrive; status names the device and by how much."""
    a, b = two
    async with running(a, b):
        await met(a, b)
        a.clock.offset_us = YEARS_US
        far = await remember(a, "muse", "written in the future")
        a.clock.offset_us = 0
        await until_true(lambda: b("show", agent="muse", record=far))
        now_us = b.clock.now_us()
        mine = await remember(b, "muse", "written now")
        theirs = await remember(a, "muse", "written by the corrected clock")
        await equal("muse", a, b)
        found = await b("history", agent="muse", record=mine)
        assert abs(found["versions"][0]["recorded_at_us"] - now_us) < HOUR_US
        assert (await b("show", agent="muse", record=theirs))["state"] == "new"
        assert "a wrote with a clock that was +14 y ahead" in (await alerts(b))["stamp"]
        assert "clock" not in await alerts(b), "it is right again"
