"""The doors to SQLite: one hop to a connection's thread, or a call in place.

A store is synchronous code over one ``sqlite3.Connection``. The node reaches it through aiosqlite,
whose thread runs a whole batch in one hop (an await costs tens of microseconds, so nothing awaits
per statement). The simulation and short commands call it in place.

A home is read wherever that can be done at all (S-F10):

- On a full disk there is no room for SQLite's shared memory: the file is held alone, which needs
  none. Writes fail until there is room.
- On a read-only disk nothing can be made beside the file. Without a write-ahead log it is opened as
  one that nobody changes; with one, without locks, since to pass over the log would be to show an
  older state.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import aiosqlite

from keys.errors import DiskFullError, StoreError
from memory.faults import os_error, read_only, store_error
from memory.mounts import space_of

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
    # Of all files of this process together: past it a page takes the place of another (S-F1).
    "PRAGMA soft_heap_limit=67108864",
)


class Door(Protocol):
    """Runs synchronous work on a connection's own thread."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one hop and return what it returns; its exceptions come through."""

    async def close(self) -> None:
        """Close the connection after the work before it."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to open a file: an address for SQLite, and what to set first."""

    address: str
    pragmas: tuple[str, ...]


_ALONE: Final = "PRAGMA locking_mode=EXCLUSIVE"
_READING: Final = ("PRAGMA temp_store=MEMORY", "PRAGMA trusted_schema=OFF")


def ways_to(path: Path) -> list[_Way]:
    """The ways to open ``path``, to be tried in order while the disk is full."""
    try:
        is_read_only = space_of(path.parent).read_only
    except OSError:
        is_read_only = False
    address = path.absolute().as_uri()
    if not is_read_only:
        return [_Way(address, PRAGMAS), _Way(address, (_ALONE, *PRAGMAS))]
    if not path.exists():
        raise read_only(path)
    beside = path.with_name(path.name + "-wal")
    if beside.exists() and beside.stat().st_size:
        return [_Way(address + "?mode=ro&vfs=unix-none", (_ALONE, *_READING))]
    return [_Way(address + "?mode=ro&immutable=1", _READING)]


def open_connection(path: Path) -> sqlite3.Connection:
    """A connection with Roost's settings. Raises ``StoreError`` when SQLite cannot open it."""
    *others, last = ways_to(path)
    for way in others:
        with contextlib.suppress(DiskFullError):
            return _open(path, way)
    return _open(path, last)


def _open(path: Path, way: _Way) -> sqlite3.Connection:
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            way.address,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        _set_up(connection, way)
    except sqlite3.Error as exc:
        if connection is not None:
            connection.close()
        raise store_error(exc, path, "open", opening=True) from exc
    return connection


def _set_up(connection: sqlite3.Connection, way: _Way) -> None:
    for pragma in way.pragmas:
        connection.execute(pragma).fetchall()
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the first access


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

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._closed = False

    @classmethod
    async def open(cls, path: Path) -> tuple[AioDoor, sqlite3.Connection]:
        """A door and the connection behind it, which only work run by the door may touch.

        Raises ``StoreError`` when SQLite cannot open it.
        """
        *others, last = await asyncio.to_thread(ways_to, path)
        for way in others:
            with contextlib.suppress(DiskFullError):
                return await cls._open(path, way)
        return await cls._open(path, last)

    @classmethod
    async def _open(cls, path: Path, way: _Way) -> tuple[AioDoor, sqlite3.Connection]:
        try:
            connection = await aiosqlite.connect(
                way.address,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        except sqlite3.Error as exc:
            error = await asyncio.to_thread(store_error, exc, path, "open", opening=True)
            raise error from exc
        door = cls(connection, path)
        raw: sqlite3.Connection = connection._conn  # noqa: SLF001 - see run
        try:
            await door.run(lambda: _set_up(raw, way))
        except BaseException:
            await door.close()  # its thread would keep the process alive
            raise
        return door, raw

    async def run(self, work: Callable[[], T]) -> T:
        """One hop: the only use of aiosqlite's private ``_execute`` (pinned; tested).

        What SQLite raises is told in words: ``DiskFullError``, ``ReadOnlyError``, ``DamageError``,
        or another ``StoreError``.
        """
        self.require_open()
        execute = self._connection._execute  # noqa: SLF001
        try:
            return await execute(work)  # type: ignore[no-any-return, no-untyped-call]
        except sqlite3.Error as exc:
            raise await asyncio.to_thread(store_error, exc, self._path) from exc

    def require_open(self) -> None:
        """Raise ``StoreError`` once it is closed."""
        if self._closed:
            raise StoreError(f"{self._path.name} is closed", hint="try again")

    async def close(self) -> None:
        """Close the connection and end its thread; more than once does nothing."""
        if not self._closed:
            self._closed = True
            await self._connection.close()


def make_file(path: Path) -> None:
    """Before SQLite makes it with a mode of its own; the files beside it take this one's mode.

    Raises ``DiskFullError`` or ``ReadOnlyError``; a file that is there may be on a read-only disk.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(path, flags, FILE_MODE))
    except OSError as exc:
        if exc.errno == errno.EROFS and path.exists():
            return
        if exc.errno in {errno.EROFS, errno.ENOSPC, errno.EDQUOT}:
            raise os_error(exc, path) from exc
        raise
