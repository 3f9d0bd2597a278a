"""Writes that wait for the disk together share one transaction, and nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from crdt.entry import Via
from keys.errors import RoostError, StoreError
from memory.authoring import Author
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember
from node.handle import AgentHandle
from node.together import ACTS_MAX
from tests.support.peers import PASSPHRASE, Node, running, until_true

AGENT = "muse"
HELD_S = 30.0


@pytest.fixture
def home(tmp_path: Path) -> Node:
    """A node that does not run yet."""
    return Node(tmp_path / "a")


@pytest.fixture
async def node(home: Node) -> AsyncIterator[Node]:
    """A running node with one agent that has been written to."""
    node = home
    async with running(node):
        await node("agent.create", name=AGENT, passphrase=PASSPHRASE)
        await node("remember", agent=AGENT, text="the first one opens the log")
        yield node


def remembering(node: Node, *texts: str) -> list[Awaitable[dict[str, Any]]]:
    """Calls that are to be under way at once."""
    return [node("remember", agent=AGENT, text=text) for text in texts]


async def at_once(
    handle: AgentHandle, calls: list[Awaitable[dict[str, Any]]]
) -> list[dict[str, Any] | BaseException]:
    """How calls end that all wait while the store's thread is held up."""
    go_on = threading.Event()
    holding = asyncio.create_task(handle.read(lambda _store: go_on.wait(HELD_S)))
    waiting = asyncio.gather(*calls, return_exceptions=True)
    await until_true(lambda: len(handle._together._waiting) == len(calls))
    go_on.set()
    await holding
    return await waiting


def statements(handle: AgentHandle) -> list[str]:
    """What is executed from now on, to be filled."""
    said: list[str] = []
    handle.store.connection.set_trace_callback(said.append)
    return said


async def entries(node: Node) -> int:
    """Entries on the disk, as another connection to the file sees them."""
    return await asyncio.to_thread(entries_now, node)


def entries_now(node: Node) -> int:
    """The same, in this thread."""
    path = node.core.agents.path_of(node.handle(AGENT).agent)
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as other:
        return int(other.execute("SELECT count(*) FROM entry").fetchone()[0])


async def test_writes_that_wait_share_one_commit(node: Node) -> None:
    """16 at once are one transaction and one word to the marker, one after the other are 16."""
    handle = node.handle(AGENT)
    advances: list[None] = []
    advance = handle._together._committed

    def advancing() -> None:
        advances.append(None)
        advance()

    handle._together._committed = advancing
    said = statements(handle)
    done = await at_once(handle, remembering(node, *(f"together {i}" for i in range(16))))
    assert [d["created"] for d in done if isinstance(d, dict)] == [True] * 16
    assert (said.count("COMMIT"), len(advances)) == (1, 1)
    for i in range(16):
        await node("remember", agent=AGENT, text=f"alone {i}")
    assert (said.count("COMMIT"), len(advances)) == (17, 17)


async def test_more_than_fit_are_several_transactions(node: Node) -> None:
    """None of them waits for ever."""
    handle = node.handle(AGENT)
    said = statements(handle)
    done = await at_once(handle, remembering(node, *(f"one of {i}" for i in range(ACTS_MAX + 1))))
    assert [type(d) for d in done] == [dict] * (ACTS_MAX + 1)
    assert said.count("COMMIT") == 2


async def test_each_stays_a_signed_commit_of_its_own(node: Node) -> None:
    """No act is bound to another: every entry ends a commit and bears a signature."""
    handle = node.handle(AGENT)
    await at_once(handle, remembering(node, "red", "green", "blue"))
    signatures = await handle.read(
        lambda store: store.connection.execute("SELECT signature FROM entry").fetchall()
    )
    assert [len(s[0]) for s in signatures] == [64] * 5  # with the opening and the first
    audit = await node("audit.verify", agent=AGENT)
    assert audit["ok"]


async def test_one_that_is_refused_fails_alone(node: Node) -> None:
    """Each caller gets its own result or its own error; no half of what failed stays."""
    handle = node.handle(AGENT)
    wrong = node("retire", agent=AGENT, record="zzzz", reason="no such record")
    asked = [*remembering(node, "before"), wrong, *remembering(node, "", "after")]
    before, missing, empty, after = await at_once(handle, asked)
    assert isinstance(missing, RoostError)
    assert isinstance(empty, RoostError)
    assert missing.code != empty.code
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["record"] != after["record"]
    assert await entries(node) == 4
    assert (await node("audit.verify", agent=AGENT))["ok"]


async def test_what_one_writes_the_next_one_sees(node: Node) -> None:
    """The same value twice in one transaction is one record and a reinforcement."""
    first, second = await at_once(node.handle(AGENT), remembering(node, "twice", "twice"))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["record"] == second["record"]
    assert {first["created"], second["created"]} == {True, False}  # whichever came first


async def test_none_is_told_before_it_is_durable(node: Node) -> None:
    """While the transaction is not committed nobody has an answer; then another reader sees all."""
    handle = node.handle(AGENT)
    before = await entries(node)
    seen: list[tuple[int, int]] = []
    answered: list[object] = []

    def look(statement: str) -> None:
        if statement == "COMMIT":
            seen.append((entries_now(node), len(answered)))

    async def answering(call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        found = await call
        answered.append(found)
        assert await entries(node) == before + 3
        return found

    handle.store.connection.set_trace_callback(look)
    calls: list[Awaitable[dict[str, Any]]] = [
        answering(c) for c in remembering(node, "one", "two", "three")
    ]
    done = await at_once(handle, calls)
    assert [type(d) for d in done] == [dict] * 3
    assert seen == [(before, 0)]


def refuse_commits(db: sqlite3.Connection, *, refused: bool) -> None:
    """Let SQLite refuse to commit, or no longer; what is undone is really undone."""

    def authorise(action: int, name: str | None, *_: object) -> int:
        commits = action == sqlite3.SQLITE_TRANSACTION and name == "COMMIT"
        return sqlite3.SQLITE_DENY if commits else sqlite3.SQLITE_OK

    db.set_authorizer(authorise if refused else None)


async def writing(
    handle: AgentHandle, text: str, runs: list[str], *, spoils: bool = False
) -> dict[str, Any]:
    """Write a memory; one that ``spoils`` makes the commit fail that it is part of."""

    def act(store: AgentStore, author: Author, now_us: int) -> dict[str, Any]:
        runs.append(text)
        refuse_commits(store.connection, refused=spoils)
        return {"record": remember(author, Note(text), Via.LOCAL, now_us).record}

    return await handle.write_short(act)


async def test_a_transaction_that_fails_is_done_again_one_at_a_time(node: Node) -> None:
    """The common commit fails, then that of the last act alone: only the last has an error."""
    handle = node.handle(AGENT)
    before = await entries(node)
    runs: list[str] = []
    calls: list[Awaitable[dict[str, Any]]] = [
        writing(handle, "one", runs),
        writing(handle, "two", runs),
        writing(handle, "three", runs, spoils=True),
    ]
    one, two, three = await at_once(handle, calls)
    await handle.read(lambda store: refuse_commits(store.connection, refused=False))
    assert runs == ["one", "two", "three"] * 2
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    assert isinstance(three, StoreError)
    assert await entries(node) == before + 2
    assert (await node("audit.verify", agent=AGENT))["ok"]


async def test_an_undone_transaction_leaves_no_incarnation_behind(home: Node) -> None:
    """The log's opening goes with it, and the acts that run again open it once."""
    async with running(home):
        await home("agent.create", name=AGENT, passphrase=PASSPHRASE)
        handle = home.handle(AGENT)
        assert await handle.read(lambda store: store.logs.rows()) == []
        runs: list[str] = []

        async def spoiling_once(text: str) -> dict[str, Any]:
            def act(store: AgentStore, author: Author, now_us: int) -> dict[str, Any]:
                runs.append(text)
                refuse_commits(store.connection, refused=len(runs) == 2)
                return {"record": remember(author, Note(text), Via.LOCAL, now_us).record}

            return await handle.write_short(act)

        done = await at_once(handle, [spoiling_once("one"), spoiling_once("two")])
        assert runs == ["one", "two", "one", "two"]
        assert [type(d) for d in done] == [dict, dict]
        assert len(await handle.read(lambda store: store.logs.rows())) == 1
        assert (await home("audit.verify", agent=AGENT))["ok"]
        assert handle.doubt is None


async def test_a_closed_store_runs_nothing_that_it_refused(node: Node) -> None:
    """Who is told that it is closed may try again: nothing of it was written."""
    handle = node.handle(AGENT)
    before = await entries(node)
    go_on = threading.Event()
    holding = asyncio.create_task(handle.read(lambda _store: go_on.wait(HELD_S)))
    accepted = asyncio.create_task(node("remember", agent=AGENT, text="in time"))
    await until_true(lambda: handle._together._waiting)
    closing = asyncio.create_task(handle.door.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="closed"):
        await handle.write_short(lambda _store, _author, _now: None)
    go_on.set()
    await asyncio.gather(holding, accepted, closing, return_exceptions=True)
    assert not handle._together._waiting
    assert await entries(node) == before + 1
