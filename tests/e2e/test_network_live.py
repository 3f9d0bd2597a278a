"""Two and three nodes over real sockets: writes travel, nodes restart, restores are noticed."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.peers import (
    PASSPHRASE,
    Node,
    befriend,
    equal,
    holds,
    pair,
    remember,
    running,
    share,
    until_true,
)


async def test_a_write_on_either_device_of_an_owner_shows_on_the_other(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await equal("muse", a, b)
        for node, other in ((a, b), (b, a)):
            record = await remember(node, "muse", f"said on {node.name}")
            await until_true(partial(holds, other, "muse", record))
        await equal("muse", a, b)


async def test_agents_from_before_the_pairing_arrive_too(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        for name in ("muse", "clio"):
            await a("agent.create", name=name, passphrase=PASSPHRASE)
            await remember(a, name, f"first of {name}")
        await pair(a, b, tasks)
        for name in ("muse", "clio"):
            await equal(name, a, b)


async def test_a_foreign_agent_is_offered_and_not_fetched_before_it_is_accepted(
    two: list[Node], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", "only for who accepts")
        await a("grant", agent="muse", subject=b.device, rights=["read"], passphrase=PASSPHRASE)
        await until_true(lambda: b.said("agent.offered"))
        await asyncio.sleep(0.1)
        assert not b.core.agents.all()
        await b("agent.accept", agent="muse", passphrase=PASSPHRASE)
        await until_true(lambda: holds(b, "muse", record))


async def test_what_is_granted_to_an_owner_reaches_the_devices_of_that_owner(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks, mine=False)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        owner = str(await b.core.ownership.owner())
        await a("grant", agent="muse", subject=owner, rights=["write"], passphrase=PASSPHRASE)
        await until_true(lambda: b.said("agent.offered"))
        await b("agent.accept", agent="muse", passphrase=PASSPHRASE)
        await equal("muse", a, b)
        record = await remember(b, "muse", "by a device of another owner")
        await until_true(lambda: holds(a, "muse", record))


async def test_news_is_passed_on_by_a_node_in_the_middle(three: list[Node]) -> None:
    a, b, c = three
    async with running(a, b, c) as tasks:
        await pair(a, b, tasks)
        await pair(b, c, tasks)  # a and c are no peers
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", "through the middle")
        await until_true(lambda: holds(c, "muse", record))


async def test_a_node_that_comes_back_on_another_port_is_found_again(two: list[Node]) -> None:
    """S-C10: it dials the address it knows, and tells its own."""
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await equal("muse", a, b)
        before, b.port = b.address, 0
        await b.stop()
        record = await remember(a, "muse", "while b was away")
        await b.start(tasks)
        assert b.address != before
        await until_true(lambda: holds(b, "muse", record))
        record = await remember(b, "muse", "and back")
        await until_true(lambda: holds(a, "muse", record))
        (peer,) = (await a("peers"))["peers"]
        assert b.address in peer["addresses"]
        assert before not in peer["addresses"]


async def test_status_tells_what_a_peer_lacks_and_why(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await remember(a, "muse", "one")
        await equal("muse", a, b)

        async def row() -> dict[str, Any]:
            (peer,) = (await a("status"))["peers"]
            (agent,) = peer["agents"]
            return {"state": peer["state"], **agent}

        async def in_sync() -> bool:
            found = await row()
            return (found["they_lack"], found["we_lack"], found["reason"]) == (0, 0, None)

        await until_true(in_sync)
        await b.stop()
        await until_true(lambda: a.network._exchange.peer(b.core.device).connected is False)
        await remember(a, "muse", "two")
        found = await row()
        assert (found["state"], found["they_lack"], found["we_lack"]) == ("offline", 1, 0)
        assert found["reason"] == "offline"


async def test_one_round_by_hand_counts_what_came_and_names_who_did_not_answer(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await share(a, "muse", b, "read", "write")
        done = await b("sync", peer=a.device)
        assert done["peers"] == [{"device": a.device, "name": "a", "pulled": 0}]
        await a.stop()
        done = await b("sync")
        assert done["peers"][0]["error"]["code"] == "unreachable"


async def test_s_a2_a_restored_home_takes_its_tail_back_and_goes_on_in_a_new_log(
    two: list[Node], tmp_path: Path
) -> None:
    """S-A2, S-A3, X-101: noticed by the peer alone, since the marker was restored as well."""
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await remember(a, "muse", "before the backup")
        await equal("muse", a, b)
        await a.stop()
        await asyncio.to_thread(shutil.copytree, tmp_path / "a", tmp_path / "backup")
        await a.start(tasks)
        lost = [await remember(a, "muse", f"after the backup {i}") for i in range(3)]
        await equal("muse", a, b)
        await a.stop()
        await asyncio.to_thread(_restore, tmp_path / "backup", tmp_path / "a")
        a.lines.clear()
        await a.start(tasks)
        await equal("muse", a, b)
        assert all([await holds(a, "muse", record) for record in lost])
        assert len(a.said("restore.peer")) + len(a.said("restore.agent")) == 1
        before = {log["incarnation"] for log in (await a("digest", agent="muse"))["vector"]}
        await remember(a, "muse", "a new log")
        await equal("muse", a, b)
        after = {log["incarnation"] for log in (await a("digest", agent="muse"))["vector"]}
        assert len(after - before) == 1
        a.lines.clear()
        await a.stop()
        await a.start(tasks)
        done = await a("sync")
        assert done["pulled"] == 0
        assert not a.said("restore.peer")


async def test_s_a3_a_restore_that_was_dealt_with_is_not_noticed_again(
    two: list[Node], tmp_path: Path
) -> None:
    """The first write after it was made while no peer was in reach; then a peer tells more."""
    a, b = two
    async with running(a, b) as tasks:
        for node in two:
            node.port = int(node.address.rpartition(":")[2])
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await remember(a, "muse", "before the backup")
        await equal("muse", a, b)
        await a.stop()
        await asyncio.to_thread(shutil.copytree, tmp_path / "a", tmp_path / "backup")
        await a.start(tasks)
        lost = await remember(a, "muse", "after the backup")
        await equal("muse", a, b)
        await a.stop()
        await b.stop()
        await asyncio.to_thread(_restore, tmp_path / "backup", tmp_path / "a")
        await a.start(tasks)
        await remember(a, "muse", "a new log")
        assert (await a("status"))["alerts"] == []
        await b.start(tasks)
        await equal("muse", a, b)
        assert await holds(a, "muse", lost)
        await remember(a, "muse", "the same log")
        await equal("muse", a, b)
        assert (await a("status"))["alerts"] == []
        logs = (await a("digest", agent="muse"))["vector"]
        assert len([log for log in logs if log["device"] == a.device]) == 2


def _restore(backup: Path, home: Path) -> None:
    """Put the databases of a backup back, in place, and leave everything else."""
    for found in (home / "agents").iterdir():
        found.unlink()
    for saved in (backup / "agents").iterdir():
        shutil.copy(saved, home / "agents" / saved.name)


async def test_S_A7_two_live_copies_of_one_device_are_noticed_by_a_peer(
    two: list[Node], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await a.stop()
        await asyncio.to_thread(shutil.copytree, tmp_path / "a", tmp_path / "copy")
    copy = Node(tmp_path / "copy", new=False)
    async with running(a, b, copy):
        for node in (a, copy, a, copy):
            await node("sync")
        assert b.said("peer.cloned")
        assert "clone" in {alert["code"] for alert in (await b("status"))["alerts"]}
