"""What a process that is killed between two steps leaves, and who finishes it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from crdt.entry import Via
from keys.ids import RecordId
from memory.forgetting import forget, reach_of
from tests.support.byte_scan import found_in
from tests.support.peers import PASSPHRASE, Node, remember, running

pytestmark = pytest.mark.e2e

SECRET = "the spare key hangs behind the blue bicycle"
KEPT = "the kettle is on the stove"


async def test_what_was_erased_right_before_a_kill_leaves_the_files_when_they_are_opened(
    tmp_path: Path,
) -> None:
    """R34: the commit is there and the cleaning is not; opening the home again makes up for it."""
    a = await asyncio.to_thread(Node, tmp_path / "a")
    async with running(a):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(a, "muse", SECRET)
        await remember(a, "muse", KEPT)
        handle = a.handle("muse")

        def erase() -> list[RecordId]:
            named = RecordId.parse(record)
            return forget(
                handle.author,
                reach_of(handle.store, [named]),
                with_sources=False,
                reason="private",
                via=Via.LOCAL,
                now_us=a.core.clock.now_us(),
            )

        await handle.door.run(erase)
        killed = tmp_path / "killed"  # what the disk holds if the process ends here
        await asyncio.to_thread(shutil.copytree, a.path, killed)
    assert await asyncio.to_thread(found_in, killed, SECRET), "positive control: not cleaned"
    again = await asyncio.to_thread(lambda: Node(killed, new=False))
    async with running(again):
        assert (await again("show", agent="muse", record=record))["state"] == "erased"
        assert await asyncio.to_thread(found_in, killed, SECRET) == []
        assert await asyncio.to_thread(found_in, killed, KEPT)
