"""A read model or a file that is not what the signed log gives, by real nodes (S-G6)."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from node.mending import Scrub
from tests.support.damage import checkpoint
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

DRIFTS = {
    "a record deleted": "DELETE FROM record WHERE n = 2",
    "all deleted": "DELETE FROM record",
    "another text": "UPDATE record SET text = 'forged' WHERE n = 2",
    "retired": "UPDATE record SET state = 'deprecated', live = 0 WHERE n = 2",
    "shown against its state": "UPDATE record SET live = 0 WHERE n = 2",
    "tags gone": "DELETE FROM tag",
    "words gone": "INSERT INTO words (words) VALUES ('delete-all')",
    "invented": "UPDATE record SET record = x'00112233445566778899aabbccddeeff' WHERE n = 2",
}


def edit(path: Path, *statements: str) -> None:
    """Change the file behind the node's back."""
    connection = sqlite3.connect(path)
    for sql in statements:
        connection.execute(sql)
    connection.commit()
    connection.close()
    checkpoint(path)


def reopened(node: Node) -> Node:
    again = Node(node.path, new=False)
    again.port = node.port
    return again


async def written(node: Node) -> tuple[Path, dict[str, object]]:
    """A memory on one node; its file and digest."""
    await node("agent.create", name="muse", passphrase=PASSPHRASE)
    for word in ("bees", "wasps", "moths"):
        await node("remember", agent="muse", text=word, tags=["insect"])
    agent = node.handle("muse").agent
    return node.path / "agents" / f"{agent}.db", await node("digest", agent="muse")


async def test_S_G6_drift_is_found_reported_and_folded_anew(two: list[Node]) -> None:
    """Whatever was changed, the log gives it back; from absence no deletion follows."""
    a, _ = two
    async with running(a):
        path, digest = await written(a)
    for name, sql in DRIFTS.items():
        await off(edit, path, sql)
        async with running(again := reopened(a)):
            first = await again("doctor")
            (check,) = [c for c in first["checks"] if c["name"] == "database muse"]
            assert not check["ok"], name
            assert "made anew" in check["detail"]
            assert (await again("doctor"))["ok"], name
            assert await again("digest", agent="muse") == digest, name
            assert len((await again("search", agent="muse", query="wasps"))["results"]) == 1, name


async def test_S_G6_after_a_crash_the_files_are_looked_through(two: list[Node]) -> None:
    """Nobody has to ask; a file that was closed well is not looked through."""
    a, _ = two
    async with running(a):
        path, digest = await written(a)
    await off(edit, path, DRIFTS["all deleted"])
    async with running(again := reopened(a)) as tasks:
        await Scrub(again.core).start(tasks)
        await until_true(lambda: again("status"))
        assert again.said("scrubbed") == [], "positive control"
    await off(edit, path, "INSERT INTO meta VALUES ('unclean', x'01')")
    async with running(again := reopened(a)) as tasks:
        await Scrub(again.core).start(tasks)
        await until_true(lambda: again.said("scrubbed"))
        assert again.said("drift.rebuilt")
        assert await again("digest", agent="muse") == digest


async def test_S_G6_a_file_that_is_gone_is_fetched_again_and_erases_nothing(
    two: list[Node],
) -> None:
    """Status says so; the peer's copy is whole, and so is ours afterwards."""
    a, b = two
    async with running(a, b):
        path, _ = await written(a)
        await befriend(a, b)
        await share(a, "muse", b, "read", "write")
        digest = await b("digest", agent="muse")
    await off(path.unlink)
    async with running(again := reopened(a)):
        alerts = {x["code"]: x["message"] for x in (await again("status"))["alerts"]}
        assert "fetched anew" in alerts["missing"]
        async with running(other := reopened(b)):
            await equal("muse", again, other)
            assert await again("digest", agent="muse") == digest
            await remember(again, "muse", "written afterwards")
            await equal("muse", again, other)
            assert (await again("audit.verify"))["ok"]
