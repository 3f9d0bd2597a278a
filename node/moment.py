"""Holding a home for a moment: open it where no node serves it, do one thing, close."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from node.clock import Clock, SystemClock
from node.core import NodeCore
from node.hardening import no_core_file
from node.home import Home, open_home
from node.journal import BoundedFile, Journal, Level
from node.lock import Patience, Role, acquire
from node.paths import is_trusted_socket, socket_candidates

PATIENCE: Final[Patience] = {
    Role.NODE: 0.0,
    Role.BACKGROUND: 0.0,
    Role.COMMAND: 10.0,
    None: 2.0,
}

Work = Callable[[NodeCore], Coroutine[Any, Any, dict[str, Any]]]


def run_on_home(path: Path, work: Work) -> dict[str, Any]:
    """What ``work`` returns; waits up to 10 s for another command that has the home.

    Raises ``InUseError`` at once when a node has it, since the call belongs to that node's socket;
    else what ``work`` raises.
    """
    no_core_file()
    home = open_home(path)
    clock = SystemClock()
    journal = Journal(BoundedFile(home.journal_path).write, clock, Level.WARNING)
    with contextlib.closing(journal):
        return asyncio.run(_run(home, clock, journal, work))


async def _run(home: Home, clock: Clock, journal: Journal, work: Work) -> dict[str, Any]:
    lock = await acquire(home, Role.COMMAND, clock, PATIENCE)
    try:
        await asyncio.to_thread(_remove_stale_sockets, home)
        core = await NodeCore.open(home, clock, journal)
        try:
            return await work(core)
        finally:
            await core.close()
    finally:
        lock.release()


def _remove_stale_sockets(home: Home) -> None:
    """What a killed node left: whoever holds the lock knows that nobody listens there."""
    for path in socket_candidates(home.path):
        if is_trusted_socket(path, home.path):
            with contextlib.suppress(OSError):  # on a read-only disk it stays, and harms nobody
                path.unlink()
