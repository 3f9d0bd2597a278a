"""A node for a command that needs one and finds none.

``pair`` and the like start one, detached; it stops when nobody has called it for a minute, and
makes way for ``roost up``. Two commands in the same second start two, of which the lock lets one
serve: both commands then use that one.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keys.errors import InUseError, RoostError, StoreError
from node.client import call
from node.clock import Clock, SystemClock
from node.control import PING
from node.home import Home, open_home
from node.journal import open_log
from node.options import IDLE_STOP_S

START_WAIT_S: Final = 60.0  # a small machine that does much else may need many seconds
POLL_S: Final = 0.05
PING_TIMEOUT_S: Final = 2.0
AGAIN_S: Final = 0.5
FOR_COMMANDS_ONLY: Final = "ROOST_PASSPHRASE_FILE"

_started: list[subprocess.Popen[bytes]] = []  # they outlive this process; nobody waits for them


def ensure(path: Path, command: Sequence[str] | None = None) -> None:
    """Return when a node of the home at ``path`` answers; one is started where none does.

    ``command`` starts a node, by default ``roost up --background``. Raises ``RoostError`` when the
    home cannot be served, or nothing answers within a minute.
    """
    home = open_home(path)
    asyncio.run(_ensure(home, SystemClock(), command or command_for(home)))


def command_for(home: Home, idle_stop_s: float = IDLE_STOP_S) -> list[str]:
    """The command that serves ``home`` in the background.

    ``-P``: what is imported never depends on the directory somebody happens to be in.
    """
    python = [sys.executable, "-P", "-m", "cli.main"]
    options = ["--background", "--idle-stop", f"{idle_stop_s:g}"]
    return [*python, "--home", str(home.path), "--json", "up", *options]


async def _ensure(home: Home, clock: Clock, command: Sequence[str]) -> None:
    give_up_s = clock.monotonic_s() + START_WAIT_S
    child: subprocess.Popen[bytes] | None = None
    while not await _answers(home):
        if clock.monotonic_s() >= give_up_s:
            raise _not_started(home, "it does not answer")
        if child is None:
            child = await asyncio.to_thread(_start, home, command)
        elif child.poll() == InUseError.exit_code:
            child = None  # somebody else serves, or did until now
            await clock.sleep(AGAIN_S)
        elif child.poll() is not None:
            raise _not_started(home, f"it ended with exit code {child.returncode}")
        await clock.sleep(POLL_S)


async def _answers(home: Home) -> bool:
    try:
        return await call(home.path, PING, {}, PING_TIMEOUT_S) is not None
    except RoostError:
        return True  # whatever it says, it is there


def _start(home: Home, command: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if k != FOR_COMMANDS_ONLY}
    try:
        said = open_log(home.journal_path)
        try:
            child = subprocess.Popen(  # noqa: S603 - our own program
                command,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        finally:
            os.close(said)
    except OSError as exc:
        raise StoreError(f"cannot start a node: {exc.strerror or exc}") from exc
    _started.append(child)
    return child


def _not_started(home: Home, why: str) -> RoostError:
    return RoostError(
        f"a node was started in the background, but {why}", hint=f"see {home.journal_path}"
    )
