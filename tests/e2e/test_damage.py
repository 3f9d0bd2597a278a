"""A damaged file is set aside and made anew, by real nodes over real sockets (S-G1)."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from keys.errors import DamageError
from keys.ids import AgentId
from memory.audit import verify_log
from node.aside import all_aside
from node.handle import AgentHandle
from tests.support.byte_scan import found_in
from tests.support.damage import checkpoint, flip_in, overwrite_page, pages_of
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

off = asyncio.to_thread
WORDS = [f"shelf {i} holds jar number {i * 7}" for i in range(30)]


def file_of(node: Node, agent: AgentId) -> Path:
    return node.path / "agents" / f"{agent}.db"


async def two_with_a_memory(a: Node, b: Node) -> AgentId:
    """Both hold 30 records of A; stopped afterwards."""
    async with running(a, b):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await a("agent.create", name="other", passphrase=PASSPHRASE)
        await remember(a, "other", "untouched")
        await befriend(a, b)
        await share(a, "muse", b, "read", "write")
        for word in WORDS:
            await remember(a, "muse", word)
        await equal("muse", a, b)
        return a.handle("muse").agent


def opened(node: Node, agent: AgentId) -> AgentHandle:
    handle = node.core.agents.get(agent)
    assert handle is not None
    return handle


def reopened(node: Node) -> Node:
    """The same home at the same port."""
    again = Node(node.path, new=False)
    again.port = node.port
    return again


def spoil(path: Path, damage: Callable[[Path], None]) -> bytes:
    """Damage a file that was closed well; what it holds then."""
    checkpoint(path)
    before = path.read_bytes()
    damage(path)
    after = path.read_bytes()
    assert after != before
    return after


def noise_in(path: Path, *tables: str) -> None:
    """Overwrite every page of some tables."""
    for number in pages_of(path, *tables):
        overwrite_page(path, number, random.Random(number))


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def one_bit_of_a_payload(path: Path) -> None:
    """SQLite's own check passes over this."""
    connection = sqlite3.connect(path)
    payload = connection.execute("SELECT payload FROM entry WHERE seq = 20").fetchone()[0]
    connection.close()
    flip_in(path, payload[20:60])
    assert sqlite3.connect(path).execute("PRAGMA quick_check(1)").fetchone() == ("ok",)


def one_bit_of_a_header(path: Path) -> None:
    connection = sqlite3.connect(path)
    header = connection.execute("SELECT header FROM entry WHERE seq = 20").fetchone()[0]
    connection.close()
    flip_in(path, header[100:140])


def a_page_of_the_log(path: Path) -> None:
    overwrite_page(path, pages_of(path, "entry")[1], random.Random(2))


def the_schema(path: Path) -> None:
    overwrite_page(path, 1, random.Random(3))


DAMAGES = [
    nothing,
    one_bit_of_a_payload,
    one_bit_of_a_header,
    a_page_of_the_log,
    the_schema,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
async def test_S_G1_a_damaged_agent_file_is_set_aside_and_made_anew(
    two: list[Node], damage: Callable[[Path], None]
) -> None:
    """The node starts, says so, loses nothing that a peer has, and writes under a new log."""
    a, b = two
    agent = await two_with_a_memory(a, b)
    path = file_of(a, agent)
    spoilt = await off(spoil, path, damage)
    again = reopened(a)
    async with running(again):
        assert (await again("search", agent="other", query="untouched"))["results"]
        report = await again("doctor")
        if not (await off(all_aside, path.parent)):
            pytest.fail("nobody noticed")
        (aside,) = await off(all_aside, path.parent)
        left = await off(aside.path.read_bytes)
        assert left == spoilt or damage is nothing, "nothing is changed or deleted"
        alerts = {x["code"]: x["message"] for x in (await again("status"))["alerts"]}
        assert aside.path.name in alerts["damaged"]
        assert "new log" in alerts["restored"]
        assert [c["detail"] for c in report["checks"] if c["name"] == "set aside"]
        mended = opened(again, agent)
        assert await mended.read(lambda _store: mended.author.own_incarnation()) is None
        b2 = reopened(b)
        async with running(b2):
            await until_true(lambda: holds_all(again), 60)
            await equal("muse", again, b2)
            kept = await b2("digest", agent="muse")
            await remember(again, "muse", "written afterwards")
            await equal("muse", again, b2)
            logs = {v["incarnation"] for v in (await b2("digest", agent="muse"))["vector"]}
            assert len(logs) == len({v["incarnation"] for v in kept["vector"]}) + 1
            for node in (again, b2):
                audit = await node.handle("muse").read(verify_log)
                assert audit.problems == []
                assert (await node("quarantine.list", agent="muse"))["quarantine"] == []
        assert (await again("doctor"))["ok"]


async def holds_all(node: Node) -> bool:
    return int((await node("digest", agent="muse"))["records"]) >= len(WORDS)


async def test_S_G1_without_a_peer_the_readable_part_comes_back(two: list[Node]) -> None:
    """A payload is lost and nothing else; the number is told. Undamaged, nothing is set aside."""
    a, b = two
    agent = await two_with_a_memory(a, b)
    path = file_of(a, agent)
    await off(checkpoint, path)
    async with running(control := reopened(a)):
        assert (await control("doctor"))["ok"]
        assert (await off(all_aside, path.parent)) == []
    await off(checkpoint, path)
    await off(one_bit_of_a_payload, path)
    async with running(again := reopened(a)):
        report = await again("doctor")
        bad = [c for c in report["checks"] if not c["ok"]]
        assert [c["name"] for c in bad] == ["database muse"]
        assert (await again("digest", agent="muse"))["records"] == len(WORDS) - 1
        (aside,) = await off(all_aside, path.parent)
        assert aside.report["payloads"] == 1
        assert aside.report["apart"] == 0


async def test_S_G1_damage_met_while_the_node_runs_is_mended_at_once(two: list[Node]) -> None:
    """The call fails with the reason, the next one works; the other agent is not touched."""
    a, b = two
    agent = await two_with_a_memory(a, b)
    path = file_of(a, agent)
    await off(checkpoint, path)
    async with running(again := reopened(a)):
        handle, other = again.handle("muse"), again.handle("other")
        await off(noise_in, path, "record")
        await handle.door.run(
            lambda: handle.store.connection.execute("PRAGMA shrink_memory").fetchall()
        )
        with pytest.raises(DamageError):
            await again("list", agent="muse")
        assert (await again("digest", agent="muse"))["records"] == len(WORDS)
        assert again.handle("muse") is not handle
        assert again.handle("other") is other
        assert again.said("damage.aside")


async def test_S_G1_what_is_erased_later_is_in_no_file_that_was_set_aside(two: list[Node]) -> None:
    """R34 reaches files that were set aside; until then they stay."""
    a, b = two
    agent = await two_with_a_memory(a, b)
    path = file_of(a, agent)
    await off(checkpoint, path)
    await off(one_bit_of_a_payload, path)
    async with running(again := reopened(a)):
        await again("doctor")
        assert await off(found_in, again.path / "agents", WORDS[25]), "positive control"
        record = (await again("search", agent="muse", query="jar 175"))["results"][0]["record"]
        aside = (await off(all_aside, path.parent))[0].path
        await remember(again, "muse", "no erasure")
        assert await off(aside.exists)
        await again("forget", agent="muse", record=record, reason="private")
        assert not await off(aside.exists)
    assert await off(found_in, again.path, WORDS[25]) == []


async def test_S_G1_a_kill_between_setting_aside_and_making_anew_is_made_up_for(
    two: list[Node],
) -> None:
    """The agent does not vanish, and its write-ahead log is not lost."""
    a, b = two
    agent = await two_with_a_memory(a, b)
    path = file_of(a, agent)
    moved = path.with_name(f"{path.name}.damaged-unreadable-20260101T000000Z")
    await off(path.rename, moved)
    await off(path.with_name(path.name + ".new").write_bytes, b"half")
    async with running(again := reopened(a)):
        assert (await again("digest", agent="muse"))["records"] == len(WORDS)
        assert await off(moved.exists)


async def test_S_G1_a_damaged_node_db_is_made_anew(two: list[Node]) -> None:
    """Peers, owner and names come back from the rows and statements that can be read."""
    a, b = two
    await two_with_a_memory(a, b)
    path = a.path / "node.db"
    await off(checkpoint, path)
    await off(noise_in, path, "setting", "owner_statement")
    async with running(again := reopened(a)):
        said = await again("status")
        assert [p["name"] for p in said["peers"]] == ["b"]
        assert said["name"] == "a"
        assert "node.db" in next(x["message"] for x in said["alerts"] if x["code"] == "damaged")
        await again("agent.create", name="third", passphrase=PASSPHRASE)
    await off(path.write_bytes, b"x" * 9_000)
    async with running(again := reopened(a)):
        said = await again("status")
        assert said["peers"] == []
        assert {x["name"] for x in said["agents"]} == {"muse", "other", "third"}
        assert "paired again" in str(said["alerts"])
        await again("agent.create", name="fourth", passphrase=PASSPHRASE)
