"""What tells one place on one machine's disk from a copy of it (R38)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MACHINE_ID_PATHS: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))

_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STATX_BTIME: Final = 0x800
_STATX_BYTES: Final = 256
_BIRTH_AT: Final = 80  # struct statx, stx_btime: s64 seconds, u32 nanoseconds
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """One file or directory: its inode, and its birth in nanoseconds since 1970, 0 if not kept.

    A deleted file's inode is given away at once, and some file systems number anew at every mount;
    a birth nobody can set. So births decide where both are known.
    """

    inode: int
    birth_ns: int

    def same_as(self, other: FileIdentity) -> bool:
        """Whether both are of one file, not of one and its copy."""
        if self.birth_ns and other.birth_ns:
            return self.birth_ns == other.birth_ns
        return self.inode == other.inode


def identity_of(path: Path) -> FileIdentity:
    """The identity of ``path``; raises ``OSError`` when there is no such file."""
    found = os.lstat(path)
    return FileIdentity(found.st_ino, _birth_ns(path, found))


def machine_id(paths: tuple[Path, ...] = MACHINE_ID_PATHS) -> str:
    """What this machine's system was named when it was installed; empty where it was not."""
    for path in paths:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text().strip()
            if text:
                return text
    return ""


def _birth_ns(path: Path, found: os.stat_result) -> int:
    known = getattr(found, "st_birthtime", None)
    if known is not None:
        return int(known * _SECOND_NS)
    with contextlib.suppress(OSError, AttributeError, ValueError):
        buffer = ctypes.create_string_buffer(_STATX_BYTES)
        done = _libc().statx(
            _AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, buffer
        )
        told = buffer.raw
        if done == 0 and _number(told[0:4]) & _STATX_BTIME:
            return _number(told[_BIRTH_AT:][:8]) * _SECOND_NS + _number(told[_BIRTH_AT:][8:12])
    return 0


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _number(field: bytes) -> int:
    return int.from_bytes(field, sys.byteorder)
