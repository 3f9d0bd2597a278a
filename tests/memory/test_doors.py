"""The doors to SQLite: one hop is one call, in order, in the thread; errors come through."""

import asyncio
import inspect
import sqlite3
import threading
import time
import tomllib
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import aiosqlite
import pytest

from keys.errors import StoreError
from memory.door import PRAGMAS, AioDoor, InlineDoor, open_connection

ROOT = Path(__file__).parents[2]
PINNED = "0.22.1"
HOPS = 100
SETTINGS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: an acknowledged commit is on the disk
    "secure_delete": 1,  # ON, not FAST, which leaves some bytes
    "temp_store": 2,  # MEMORY: no temporary file holds a text
    "trusted_schema": 0,
    "foreign_keys": 0,
}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[AioDoor, sqlite3.Connection]]:
    """A door with a thread, and the connection behind it."""
    door, raw = await AioDoor.open(tmp_path / "agent.db")
    yield door, raw
    await door.close()


def test_aiosqlite_is_the_version_whose_private_method_is_used() -> None:
    """Its ``_execute`` is a coroutine function; another version is looked at first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"aiosqlite=={PINNED}" in project["dependencies"]
    assert version("aiosqlite") == PINNED
    execute = aiosqlite.Connection._execute
    assert inspect.iscoroutinefunction(execute)
    assert list(inspect.signature(execute).parameters) == ["self", "fn", "args", "kwargs"]


async def test_work_runs_in_one_other_thread(opened: tuple[AioDoor, sqlite3.Connection]) -> None:
    """Never in the thread of the event loop, and always in the same one."""
    door, _ = opened
    threads = {await door.run(threading.get_ident) for _ in range(5)}
    assert len(threads) == 1
    assert threads.isdisjoint({threading.get_ident()})


async def test_hops_run_in_the_order_in_which_they_were_asked(
    opened: tuple[AioDoor, sqlite3.Connection],
) -> None:
    """Also when the first takes longest and nobody awaits between them."""
    door, _ = opened
    done: list[int] = []

    def work(i: int) -> int:
        if not i:
            time.sleep(0.02)
        done.append(i)
        return i

    hops = [door.run(lambda i=i: work(i)) for i in range(HOPS)]  # type: ignore[misc]
    assert await asyncio.gather(*hops) == list(range(HOPS)) == done


async def test_one_hop_is_one_call(opened: tuple[AioDoor, sqlite3.Connection]) -> None:
    """However many statements the work runs, one item goes through the thread's queue."""
    door, raw = opened
    queue = _Counted(door._connection._tx)
    door._connection._tx = queue  # type: ignore[assignment]
    rows = await door.run(
        lambda: [raw.execute("SELECT ?", (i,)).fetchone()[0] for i in range(1000)]
    )
    door._connection._tx = queue.inner  # type: ignore[assignment]
    assert (rows, queue.puts) == (list(range(1000)), 1)


class _Counted:
    def __init__(self, inner: object) -> None:
        self.inner, self.puts = inner, 0

    def put_nowait(self, item: object) -> None:
        self.puts += 1
        self.inner.put_nowait(item)  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [ValueError("x"), StoreError("y"), KeyError(1)])
async def test_exceptions_come_through_and_the_thread_lives(
    opened: tuple[AioDoor, sqlite3.Connection], error: Exception
) -> None:
    """The very object that was raised; the next hop works."""
    door, _ = opened

    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await door.run(fail)
    assert caught.value is error
    assert await door.run(lambda: 1) == 1


async def test_a_cancelled_wait_does_not_stop_the_work(
    opened: tuple[AioDoor, sqlite3.Connection],
) -> None:
    """A transaction that has begun ends; the caller's absence does not leave it open."""
    door, raw = opened
    began = threading.Event()

    def work() -> None:
        began.set()
        time.sleep(0.05)
        raw.execute("CREATE TABLE t (x)")

    waiting = asyncio.ensure_future(door.run(work))
    await asyncio.to_thread(began.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await door.run(lambda: raw.execute("SELECT count(*) FROM t").fetchone()) == (0,)


async def test_closing_waits_for_the_work_before_it_and_ends_the_thread(tmp_path: Path) -> None:
    """Nothing that was asked for is lost; afterwards the door refuses."""
    before = _workers()
    door, raw = await AioDoor.open(tmp_path / "agent.db")
    assert _workers() == before + 1
    hops = [asyncio.ensure_future(door.run(lambda: time.sleep(0.001))) for _ in range(5)]
    await asyncio.sleep(0)
    await door.close()
    assert all(hop.done() for hop in hops)
    with pytest.raises(StoreError, match="closed"):
        await door.run(lambda: raw.execute("SELECT 1"))
    await asyncio.to_thread(_wait_for, before)


def _workers() -> int:
    """How many threads of aiosqlite there are."""
    return sum("_connection_worker_thread" in thread.name for thread in threading.enumerate())


def _wait_for(workers: int) -> None:
    for _ in range(200):
        if _workers() <= workers:
            return
        time.sleep(0.01)
    raise AssertionError("a thread stays")


async def test_a_door_that_cannot_open_leaves_no_thread(tmp_path: Path) -> None:
    """Where the file is a folder, or no database at all."""
    before = _workers()
    noise = tmp_path / "noise.db"
    await asyncio.to_thread(noise.write_bytes, b"\x07" * 8192)
    for path in (tmp_path, noise):
        with pytest.raises(StoreError):
            await AioDoor.open(path)
    await asyncio.to_thread(_wait_for, before)
    with pytest.raises(StoreError):
        await asyncio.to_thread(open_connection, noise)


async def test_both_doors_set_what_keeps_and_what_erases(
    tmp_path: Path, opened: tuple[AioDoor, sqlite3.Connection]
) -> None:
    """WAL with full synchronisation, secure deletion, temporary data in memory (R34)."""
    door, raw = opened
    assert await door.run(lambda: _settings(raw)) == SETTINGS
    assert await asyncio.to_thread(_inline_settings, tmp_path / "inline.db") == SETTINGS
    assert {p.partition("=")[0].split()[1] for p in PRAGMAS} >= SETTINGS.keys()


def _settings(connection: sqlite3.Connection) -> dict[str, object]:
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


def _inline_settings(path: Path) -> dict[str, object]:
    connection = open_connection(path)
    try:
        return _settings(connection)
    finally:
        connection.close()


def test_the_inline_door_calls_in_place(tmp_path: Path) -> None:
    """The work runs in the caller's thread, now; its errors come through."""
    door = InlineDoor(open_connection(tmp_path / "agent.db"))
    assert asyncio.run(_first(door)) == threading.get_ident()
    asyncio.run(door.close())


async def _first(door: InlineDoor) -> int:
    return await door.run(threading.get_ident)
