"""Real nodes for the benches: one process each, asked through its local socket.

No command's start-up is in a figure. The machine may be busy with other work, so beside the time on
the wall there is the processor time that a node's process used.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.session import Session
from crdt.entry import Via
from memory.authoring import Author
from memory.store import AgentStore
from memory.writing import remember_batch
from tests.bench.world import note
from tests.support.cluster import Node
from tests.support.peers import PASSPHRASE
from tests.support.peers import Node as InProcess

BATCH = 500
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


async def write_notes(node: InProcess, agent: str, first: int, count: int) -> None:
    """Write ``count`` small memories in batches, in this process."""
    handle = node.handle(agent)
    for start in range(first, first + count, BATCH):
        notes = [note(i) for i in range(start, min(start + BATCH, first + count))]

        def write(_store: AgentStore, author: Author, now_us: int, notes: Any = notes) -> None:
            assert not remember_batch(author, notes, Via.LOCAL, now_us).refused

        await handle.write(write)
        await asyncio.sleep(0)


def homes(root: Path) -> None:
    """What the commands of homes under ``root`` need."""
    (root / "passphrase").write_text(PASSPHRASE)
    (root / "passphrase").chmod(0o600)


@contextmanager
def up(node: Node) -> Iterator[int]:
    """A node while it serves; its process id."""
    node.up()
    try:
        yield pid_of(node)
    finally:
        node.down()


def call(node: Node, verb: str, **params: Any) -> dict[str, Any]:
    """One verb through the socket of a running node."""
    return Session(node.home).call(verb, params)


def pid_of(node: Node) -> int:
    """The process of a running node."""
    assert node.process is not None
    return node.process.pid


def timed(work: Callable[[], object]) -> float:
    """Seconds on the wall."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def middle(numbers: list[float], part: float = 0.5) -> float:
    """The median, or another quantile."""
    return sorted(numbers)[min(int(len(numbers) * part), len(numbers) - 1)]


def cpu_s(pid: int) -> float:
    """Processor seconds, user and system, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_mib(pid: int) -> int:
    """What a process has resident now, with what it maps of files, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) // 1024
