"""The log-store port behind each of its doors: in memory, in place over a file, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from crdt.chain import VerifiedRun
from crdt.fingerprint import FingerprintKey
from crdt.log import LogStore, ServedRun, Stretch, Vector
from keys.ids import hash256
from keys.statements import agent_of
from memory.door import AioDoor, Door, InlineDoor, open_connection
from memory.store import AgentStore
from tests.support.author import Family, certify, founding, seeded
from tests.support.founding import replace_key
from tests.support.memory_log import MemoryLog

T = TypeVar("T")
SECRET = FingerprintKey(seeded("the family's key"))
NOW_US = 1_700_000_000_000_000


class KeyedFamily(Family):
    """A family whose agent commits to a fingerprint key that is known."""

    def __init__(self, *devices: str) -> None:
        super().__init__(*devices)
        found = replace_key(founding(self.owner), self.owner, SECRET)
        self.agent, self.statements = agent_of(found), [found]
        for key in self.devices.values():
            self.statements.append(certify(self.owner, key, self.heads))


class Port:
    """A store and its door; every call is one hop."""

    def __init__(self, runner: asyncio.Runner, store: LogStore, door: Door) -> None:
        self._runner, self.store, self.door = runner, store, door

    def do(self, work: Callable[[LogStore], T]) -> T:
        """Run work on the store behind its door."""
        return self._runner.run(self._hop(work))

    async def _hop(self, work: Callable[[LogStore], T]) -> T:
        return await self.door.run(lambda: work(self.store))

    def close(self) -> None:
        self._runner.run(self._close())

    async def _close(self) -> None:
        await self.door.close()

    def append(self, *runs: VerifiedRun) -> tuple[int, int]:
        """How many entries were new and known."""
        done = self.do(lambda store: store.append_runs(runs, NOW_US))
        return done.new, done.known

    def vector(self) -> Vector:
        return self.do(lambda store: store.vector())

    def payloads_held(self, runs: Iterable[VerifiedRun]) -> list[bool]:
        """Per entry of the runs whether it is served with its payload."""
        entries = [e.raw for run in self.do(lambda store: served(store, 1)) for e in run.entries]
        held = {hash256(e.header): e.payload is not None for e in entries}
        return [held[e.header.hash] for run in runs for e in run.entries]


def served(store: LogStore, bytes_target: int) -> list[ServedRun]:
    """Everything that a store holds, as it serves it."""
    out = []
    for stretch in store.plan({}):
        rest: Stretch | None = stretch
        while rest is not None:
            run, rest = store.read_run(rest, bytes_target)
            out.append(run)
    return out


class Opener(Protocol):
    """Opens the store of a family; the same name is the same store, where there is a file."""

    def __call__(self, family: Family, name: str = "store") -> Port:
        """Open it."""


class _Here:
    """The door of a store in memory."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    async def close(self) -> None:
        return None


def opener_of(kind: str, folder: Path, runner: asyncio.Runner, opened: list[Port]) -> Opener:
    """What opens stores of one kind below ``folder``; it lists them in ``opened``."""

    async def aio(path: Path, family: Family) -> tuple[LogStore, Door]:
        door, raw = await AioDoor.open(path)
        return await door.run(lambda: AgentStore(raw, family.agent, [SECRET])), door

    def open_port(family: Family, name: str = "store") -> Port:
        store: LogStore
        door: Door
        if kind == "memory":
            store, door = MemoryLog(family.agent), _Here()
        elif kind == "inline":
            connection = open_connection(folder / name)
            store, door = AgentStore(connection, family.agent, [SECRET]), InlineDoor(connection)
        else:
            store, door = runner.run(aio(folder / name, family))
        port = Port(runner, store, door)
        opened.append(port)
        port.do(lambda s: s.add_statements(family.statements))
        return port

    return open_port
