"""Getting the lock of a home for a node: who is asked to go, who is waited for, who stays.

- A background node is asked to go, and does within 2 s.
- A command is waited for; it holds the home for a moment.
- A node that a person started stays, and the newcomer says so.
"""

from __future__ import annotations

import contextlib
from typing import Final

from keys.errors import RoostError
from node.client import call
from node.clock import Clock
from node.control import PING, YIELD
from node.home import Home
from node.lock import Holder, HomeLock, Patience, Role, acquire, in_use

ASK_EVERY_S: Final = 0.2
ASK_TIMEOUT_S: Final = 1.0
PATIENCE: Final[Patience] = {
    Role.NODE: 0.0,
    Role.BACKGROUND: 5.0,
    Role.COMMAND: 30.0,
    None: 2.0,
}


async def take_home(home: Home, role: Role, clock: Clock) -> HomeLock:
    """The lock of ``home``, held as ``role`` by a node; raises ``InUseError``."""
    ask_at_s = clock.monotonic_s()

    async def ask(by: Holder) -> None:
        nonlocal ask_at_s
        if by.role is Role.BACKGROUND and clock.monotonic_s() >= ask_at_s:
            await _ask(home, by, role)
            ask_at_s = clock.monotonic_s() + ASK_EVERY_S

    return await acquire(home, role, clock, PATIENCE, ask)


async def _ask(home: Home, by: Holder, role: Role) -> None:
    """Ask a background node to go; a second one leaves the first, if it answers, where it is."""
    if role is Role.NODE:
        with contextlib.suppress(RoostError):  # it may be stopping already
            await call(home.path, YIELD, {}, ASK_TIMEOUT_S)
    elif await call(home.path, PING, {}, ASK_TIMEOUT_S) is not None:
        raise in_use(home, by)
