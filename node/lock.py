"""Exactly one process holds a home (X-99).

The kernel holds the lock for as long as the process lives, so a killed one is out at once, and
nobody cleans up. What the file says (pid, role) serves messages and decisions, never the exclusion.

Roles: ``node`` serves until it is stopped, ``background`` serves until its clients are gone and
makes way for a ``node``, ``command`` holds the home for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from keys.errors import InUseError, StoreError
from node.clock import Clock
from node.home import Home
from node.jsontext import parse_json

POLL_S: Final = 0.02
HOLDER_BYTES_MAX: Final = 256


class Role(StrEnum):
    """What the holder of a home is there for."""

    NODE = "node"
    BACKGROUND = "background"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a home, as far as it said; role None when it has not yet said."""

    pid: int | None
    role: Role | None


UNKNOWN: Final = Holder(None, None)


class HomeLock:
    """The lock of one home: free, or held by this process."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the home."""
        return self._descriptor is not None

    def try_acquire(self, role: Role) -> bool:
        """Take the lock if it is free. Raises ``StoreError`` when there can be no lock here."""
        assert self._descriptor is None, "a lock is taken once"
        try:
            descriptor, writable = self._open()
        except OSError as exc:
            raise self._failed(exc) from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if writable:
                os.ftruncate(descriptor, 0)
                _say(descriptor, role)
        except OSError as exc:
            os.close(descriptor)
            if exc.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return False
            raise self._failed(exc) from exc
        self._descriptor = descriptor
        return True

    def _open(self) -> tuple[int, bool]:
        """What to lock, and whether it can be written to: on a read-only disk it cannot."""
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self._home.lock_path, flags | os.O_RDWR | os.O_CREAT, 0o600), True
        except OSError as exc:
            if exc.errno != errno.EROFS:
                raise
        there = self._home.lock_path.exists()
        return os.open(self._home.lock_path if there else self._home.path, flags), False

    def release(self) -> None:
        """Let go; more than once does nothing. The file stays: removing it would race."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _failed(self, exc: OSError) -> StoreError:
        return StoreError(
            f"cannot lock {self._home.path}: {exc.strerror or exc}",
            hint="check the disk and the permissions of the file `lock` in it",
        )


def _say(descriptor: int, role: Role) -> None:
    """Write down who holds it; a full disk is no reason not to hold, and to read what is there."""
    said = json.dumps({"pid": os.getpid(), "role": role.value}) + "\n"
    try:
        os.pwrite(descriptor, said.encode(), 0)
    except OSError as exc:
        if exc.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise


def holder(home: Home) -> Holder:
    """Who says it holds ``home``; meaningful only after ``try_acquire`` failed."""
    try:
        with open(home.lock_path, "rb") as file:
            said = parse_json(file.read(HOLDER_BYTES_MAX))
        pid, role = int(said["pid"]), Role(said["role"])
    except (OSError, ValueError, TypeError, KeyError):
        return UNKNOWN
    return Holder(pid, role) if _alive(pid) else Holder(pid, None)


def in_use(home: Home, by: Holder) -> InUseError:
    """The error that names who holds the home."""
    whom = f"pid {by.pid}" if by.pid else "another process"
    match by.role:
        case Role.NODE:
            what, hint = f"the node with {whom}", "stop it, or use it: commands go through it"
        case Role.BACKGROUND:
            what, hint = f"the background node with {whom}", "it stops when its clients are gone"
        case _:
            what, hint = whom, "try again when it is done"
    details = {"pid": by.pid} if by.pid else {}
    return InUseError(f"{home.path} is in use by {what}", hint=hint, **details)


Patience = Mapping[Role | None, float]
"""For how many seconds a holder of each role is waited for; None: who has not said."""


async def acquire(
    home: Home,
    role: Role,
    clock: Clock,
    patience: Patience,
    meanwhile: Callable[[Holder], Awaitable[None]] | None = None,
) -> HomeLock:
    """Hold ``home``, after waiting for its holder; ``meanwhile`` is awaited between two tries.

    Raises ``InUseError`` when patience ends.
    """
    lock = HomeLock(home)
    started_s = clock.monotonic_s()
    while not await asyncio.to_thread(lock.try_acquire, role):
        by = await asyncio.to_thread(holder, home)
        if clock.monotonic_s() - started_s >= patience[by.role]:
            raise in_use(home, by)
        if meanwhile is not None:
            await meanwhile(by)
        await clock.sleep(POLL_S)
    return lock


def _alive(pid: int) -> bool:
    """Whether there is such a process here; a pid of another namespace counts as none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
