"""Forgetting a whole agent: nothing of it is left on any device, and no other is touched."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from keys.errors import NotFoundError, RoostError
from tests.support.byte_scan import found_in
from tests.support.peers import PASSPHRASE, Node, equal, pair, remember, running, until_true

WORDS = {"muse": "zanzibarumbrella", "other": "xylophonecurtain"}


def _files_of(node: Node, agent: str) -> dict[str, bytes]:
    paths = [*node.path.rglob(f"{agent}.db"), *node.path.rglob(f"{agent}.values")]
    return {p.name: p.read_bytes() for p in paths}


def _all_files(nodes: list[Node], agent: str) -> dict[str, dict[str, bytes]]:
    return {node.name: _files_of(node, agent) for node in nodes}


async def _no_keys(node: Node, agent: str) -> bool:
    return not await asyncio.to_thread(lambda: [*node.path.rglob(f"{agent}.values")])


async def test_M_A14_an_agent_is_forgotten_on_every_device_and_no_other(two: list[Node]) -> None:
    """Records, words, tokens and keys go on both; the other agent is byte for byte what it was."""
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        ids = {}
        for name in ("muse", "other"):
            made = await a("agent.create", name=name, passphrase=PASSPHRASE)
            ids[name] = made["agent"]
            await remember(a, name, WORDS[name], tags=["home"])
            await equal(name, a, b)
            await remember(b, name, f"seen from b: umbrellas, {WORDS[name]}")
            await equal(name, a, b)
            for node in two:
                await node("token.create", agent=name, passphrase=PASSPHRASE)
        before = await asyncio.to_thread(_all_files, two, ids["other"])
        assert all(len(files) == 2 for files in before.values())
        given = {"reason": "private", "passphrase": PASSPHRASE}
        done = await a("agent.forget", agent="muse", **given)
        assert (len(done["erased"]), done["left"]) == (2, [])

        async def everywhere() -> bool:
            again = await a("agent.forget", agent=ids["muse"], **given)
            return bool(again["receipts"]) and all(r["done"] for r in again["receipts"])

        await until_true(everywhere)
        for node in two:
            await until_true(partial(_no_keys, node, ids["muse"]))
            assert [r["name"] for r in (await node("agent.list"))["agents"]] == ["other"]
            assert {t["agent"] for t in (await node("token.list"))["tokens"]} == {ids["other"]}
            with pytest.raises(NotFoundError):
                await node("search", agent=ids["muse"], query=WORDS["muse"])
            assert (await node("search", agent="other", query=WORDS["other"]))["results"]
        assert await asyncio.to_thread(_all_files, two, ids["other"]) == before
    for node in two:
        assert await asyncio.to_thread(found_in, node.path, WORDS["muse"]) == []
        assert await asyncio.to_thread(found_in, node.path, WORDS["other"])


async def test_S_H7_the_name_is_free_again_for_another_agent(two: list[Node]) -> None:
    """M-A19: a new id, writes work, nothing old is seen, also after a restart."""
    a, _ = two
    given = {"reason": "private", "passphrase": PASSPHRASE}
    async with running(a):
        old = (await a("agent.create", name="coach", passphrase=PASSPHRASE))["agent"]
        await remember(a, "coach", "bees on the roof")
        with pytest.raises(RoostError):
            await a("agent.forget", agent="coach", reason="private", passphrase="wrong")
        assert (await a("search", agent="coach", query="bees"))["results"]
        await a("agent.forget", agent="coach", **given)
        new = (await a("agent.create", name="coach", passphrase=PASSPHRASE))["agent"]
        assert new != old
        assert (await a("list", agent="coach"))["total"] == 0
        await remember(a, "coach", "bees on the roof")
    async with running(a):
        assert [r["agent"] for r in (await a("agent.list"))["agents"]] == [new]
        assert len((await a("search", agent="coach", query="bees"))["results"]) == 1
        await remember(a, "coach", "wasps in the shed")
