"""The doors to SQLite: one hop to a connection's thread, or a call in place.

A store is synchronous code over one ``sqlite3.Connection``. The node reaches it through aiosqlite,
whose thread runs a whole batch in one hop (an await costs tens of microseconds, so nothing awaits
per statement). The simulation and short commands call it in place.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import aiosqlite

from keys.errors import StoreError

T = TypeVar("T")
BUSY_TIMEOUT_S = 10.0
FILE_MODE = 0o600
PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA foreign_keys=OFF",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA wal_autocheckpoint=1000",
    "PRAGMA cache_size=-16384",
)


class Door(Protocol):
    """Runs synchronous work on a connection's own thread."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one hop and return what it returns; its exceptions come through."""

    async def close(self) -> None:
        """Close the connection after the work before it."""


def open_connection(path: Path) -> sqlite3.Connection:
    """A connection with Roost's settings. Raises ``StoreError`` when SQLite cannot open it."""
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        for pragma in PRAGMAS:
            connection.execute(pragma)
    except sqlite3.Error as exc:
        raise _cannot_open(path, exc) from exc
    return connection


def _cannot_open(path: Path, exc: sqlite3.Error) -> StoreError:
    return StoreError(
        f"cannot open {path.name}: {exc}",
        hint="check the disk and the file's permissions, or restore it from a backup",
    )


class InlineDoor:
    """Calls in place: for simulation and for commands that own the home for a moment."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` now."""
        return work()

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class AioDoor:
    """aiosqlite's thread: the node's only way to SQLite."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, path: Path) -> tuple[AioDoor, sqlite3.Connection]:
        """A door and the connection behind it, which only work run by the door may touch.

        Raises ``StoreError`` when SQLite cannot open it.
        """
        try:
            connection = await aiosqlite.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            door = cls(connection)
            raw: sqlite3.Connection = connection._conn  # noqa: SLF001 - see run
            try:
                await door.run(lambda: [raw.execute(pragma).fetchall() for pragma in PRAGMAS])
            except BaseException:
                await door.close()  # its thread would keep the process alive
                raise
        except sqlite3.Error as exc:
            raise _cannot_open(path, exc) from exc
        return door, raw

    async def run(self, work: Callable[[], T]) -> T:
        """One hop: the only use of aiosqlite's private ``_execute`` (pinned; tested)."""
        execute = self._connection._execute  # noqa: SLF001
        return await execute(work)  # type: ignore[no-any-return, no-untyped-call]

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.close()


def make_file(path: Path) -> None:
    """Before SQLite makes it with a mode of its own; the files beside it take this one's mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE))
