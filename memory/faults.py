"""What an SQLite error means for a person: no room, read-only, damage, or something else.

SQLite tells of a full disk in three ways (``SQLITE_FULL``, a failed extension of the shared memory,
a file that cannot be made), so where its code does not decide, the file system is asked.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from keys.errors import BadInput, DamageError, DiskFullError, ReadOnlyError, StoreError
from memory.mounts import mount_of, space_of

T = TypeVar("T")
ROOM_BYTES_MIN: Final = 64 * 1024  # less cannot take a commit

_PRIMARY: Final = 0xFF
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNREADABLE: Final = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
_SCHEMA_GONE: Final = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH}
_ASK_THE_DISK: Final = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
}


def store_error(
    exc: sqlite3.Error, path: Path, what: str = "use", *, opening: bool = False
) -> StoreError:
    """The error to raise for ``exc`` about the file at ``path``.

    While ``opening`` a schema that is not there is damage; later it would be a fault of ours.
    """
    code = getattr(exc, "sqlite_errorcode", 0)
    primary = code & _PRIMARY
    if primary in _DAMAGE or code in _UNREADABLE or (opening and primary in _SCHEMA_GONE):
        return DamageError(f"{path.name} is damaged: {exc}", hint="roost doctor tells more")
    if primary == sqlite3.SQLITE_FULL:
        return disk_full(path)
    if primary in _ASK_THE_DISK and (found := _of_the_disk(path)) is not None:
        return found
    hint = "check the disk and the file's permissions, or restore it from a backup"
    return StoreError(f"cannot {what} {path.name}: {exc}", hint=hint)


def opened(path: Path, work: Callable[[], T]) -> T:
    """What ``work`` gives, which reads a file for the first time; raises ``DamageError``.

    Whatever our own bytes raise then, they are not those that we wrote.
    """
    try:
        return work()
    except sqlite3.Error as exc:
        raise store_error(exc, path, "open", opening=True) from exc
    except (BadInput, AssertionError, ValueError, TypeError, LookupError) as exc:
        raise DamageError(
            f"{path.name} is damaged: {type(exc).__name__}", hint="roost doctor tells more"
        ) from exc


def disk_full(path: Path) -> DiskFullError:
    """The error that says whose disk is full."""
    mount = mount_of(path.absolute()).point or str(path.parent)
    return DiskFullError(
        f"the disk is full: {mount}",
        hint="make room there; reading works meanwhile, and the rest goes on by itself afterwards",
        mount=mount,
    )


def read_only(path: Path) -> ReadOnlyError:
    """The error that says whose disk takes no writes."""
    mount = mount_of(path.absolute()).point or str(path.parent)
    return ReadOnlyError(
        f"the disk is mounted read-only: {mount}",
        hint="mount it for writing; reading works meanwhile",
        mount=mount,
    )


def os_error(exc: OSError, path: Path) -> StoreError:
    """The error to raise when ``path`` could not be written."""
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(path)
    if exc.errno == errno.EROFS:
        return read_only(path)
    return StoreError(f"cannot write {path}: {exc.strerror or exc}", hint="check the disk")


def _of_the_disk(path: Path) -> StoreError | None:
    try:
        space = space_of(path.parent)
    except OSError:
        return None
    if space.read_only:
        return read_only(path)
    return disk_full(path) if space.free_bytes < ROOM_BYTES_MIN else None
