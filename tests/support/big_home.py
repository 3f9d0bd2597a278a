"""Homes with many agents, each of some size, and the memory of the process that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from crdt.entry import Via
from memory.authoring import Author
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember_batch
from tests.support.peers import PASSPHRASE, Node, befriend, running, share

BATCH_BYTES = 2 * 1024 * 1024


async def fill(node: Node, agents: int, records: int, text_bytes: int) -> None:
    """Found agents and give each ``records`` memories of ``text_bytes``."""
    step = max(1, min(250, BATCH_BYTES // text_bytes))
    for number in range(agents):
        name = f"agent{number}"
        await node("agent.create", name=name, passphrase=PASSPHRASE)
        handle = node.handle(name)
        for first in range(0, records, step):
            notes = [
                Note(f"{name} {i} " + f"w{i % 97} ".ljust(text_bytes, "x"))
                for i in range(first, min(first + step, records))
            ]
            await handle.write(_writing(notes))


def _writing(notes: list[Note]) -> Callable[[AgentStore, Author, int], object]:
    return lambda _store, author, now_us: remember_batch(author, notes, Via.LOCAL, now_us)


def make_pair(root: Path, agents: int, records: int, text_bytes: int) -> tuple[Node, Node]:
    """A home with agents, and one that may have them all and has none of their entries yet."""
    a, b = Node(root / "a"), Node(root / "b")

    async def work() -> None:
        async with running(a, b):
            await a("agent.create", name="first", passphrase=PASSPHRASE)
            await befriend(a, b)
            await share(a, "first", b, "read", "write")
        async with running(a):
            await fill(a, agents, records, text_bytes)
            for number in range(agents):
                await a(
                    "grant",
                    agent=f"agent{number}",
                    subject=b.device,
                    rights=["read", "write"],
                    passphrase=PASSPHRASE,
                )

    asyncio.run(work())
    return a, b


def peak_mib(pid: int) -> int:
    """The most memory that a process ever had resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmHWM:"))
    return int(found.split()[1]) // 1024
