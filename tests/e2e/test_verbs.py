"""What single verbs answer, on nodes that run."""

from __future__ import annotations

import pytest

from memory.writing import NotLiveError, TombstonedError
from tests.support.peers import PASSPHRASE, Node, equal, pair, remember, running, until_true


async def test_r35_an_erased_record_is_not_reinstated_and_its_value_stays_refused(
    two: list[Node],
) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", "bees on the roof")
        await a("forget", agent="muse", record=record, reason="private")
        given = {"agent": "muse", "record": record, "reason": "back", "passphrase": PASSPHRASE}
        with pytest.raises(NotLiveError, match="erased") as refused:
            await a("reinstate", **given)
        assert "roost lift" in str(refused.value.hint)
        with pytest.raises(TombstonedError):
            await remember(a, "muse", "bees on the roof")
        assert (await a("lift", **given))["lifted"] == 1
        await remember(a, "muse", "bees on the roof")
        shown = await a("show", agent="muse", record=record)
        assert shown["state"] == "erased"
        assert "device" not in shown


async def test_forget_names_who_has_yet_to_erase(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", "bees on the roof")
        await equal("muse", a, b)
        given = {"agent": "muse", "record": record}
        done = await a("forget", **given, reason="private")
        assert [row["device"] for row in done["receipts"]] == [b.device]
        assert done["receipts"][0]["done"] is False

        async def erased_there() -> bool:
            return all(r["done"] for r in (await a("forget.status", **given))["receipts"])

        await until_true(erased_there)
        assert (await a("forget", **given, reason="again"))["receipts"][0]["done"] is True


async def test_a_peer_that_hangs_up_is_no_fault(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await remember(a, "muse", "bees on the roof")
        await equal("muse", a, b)
        await a("peers.remove", device=b.device)
        await b.stop()
        assert not [line for line in a.lines if line["level"] == "error"]


async def test_a_replaced_record_names_its_successor_in_lists(two: list[Node]) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        old = await remember(a, "muse", "bees on the roof")
        new = await a("revise", agent="muse", record=old, text="bees in the shed", reason="moved")
        rows = (await a("list", agent="muse"))["records"]
        found = {r["record"]: r.get("successor") for r in rows}
        assert found == {old: new["record"], new["record"]: None}


@pytest.mark.parametrize(
    ("verb", "params"),
    [
        ("search", {"query": "\ud800 bees", "layer": "\ud800", "tags": ["\udfff"]}),
        ("list", {"source": "\ud800", "kinds": ["observation"]}),
        ("context", {"query": "\ud800"}),
        ("entity.list", {"channel": "\ud800"}),
    ],
)
async def test_M_H13_a_lone_surrogate_in_any_parameter_is_no_fault(
    two: list[Node], verb: str, params: dict[str, object]
) -> None:
    a, _ = two
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await remember(a, "muse", "bees")
        await a(verb, agent="muse", **params)
