"""Room on the disk of the home: whether pulls may go on, and a reserve for what must not fail.

1. A pull stops before the disk is full (S-F10): while less than ``pause_below`` is free nothing is
   fetched, and it goes on by itself when twice that is free, and the reserve too.
2. Erasing needs room before it gives any back. A reserve file is kept for it, given up when the
   disk is full, and made again when there is room.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final

from memory.faults import disk_full, read_only
from memory.mounts import Space, space_of
from node.home import Home

RESERVE_BYTES: Final = 8 * 1024 * 1024
RESERVE_SHARE: Final = 16  # at most this part of the disk
PAUSE_BYTES: Final = 64 * 1024 * 1024
PAUSE_SHARE: Final = 100  # or this part of the disk, whichever is less


def reserve_bytes(total_bytes: int) -> int:
    """How large a reserve a disk of ``total_bytes`` gets."""
    return min(RESERVE_BYTES, total_bytes // RESERVE_SHARE)


def pause_below(total_bytes: int) -> int:
    """With less free than this a disk of ``total_bytes`` counts as full for pulls."""
    return min(PAUSE_BYTES, total_bytes // PAUSE_SHARE)


class Room:
    """The disk of one home. Every method may be called from any thread."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._mutex = threading.Lock()
        self._paused = False
        self.is_spent = False  # the reserve was given up, and is to be made again

    def space(self) -> Space:
        """What the disk has now; as if without end where the system does not tell."""
        try:
            return space_of(self._home.path)
        except OSError:
            return Space(2**62, 2**62, read_only=False)

    def may_grow(self) -> bool:
        """Whether a pull may bring something now; never at the cost of the reserve."""
        if self.is_spent and not self.restore():
            return False
        space = self.space()
        limit = pause_below(space.total_bytes)
        self._paused = space.read_only or space.free_bytes < (2 * limit if self._paused else limit)
        return not self._paused

    def trouble(self) -> str | None:
        """What a person is to know of the disk, in words; None when all is well."""
        space = self.space()
        if space.read_only:
            return read_only(self._home.database_path).message
        if space.free_bytes >= pause_below(space.total_bytes):
            return None
        free = f"{space.free_bytes // 1024} KiB left"
        return f"{disk_full(self._home.database_path).message} ({free})"

    def restore(self) -> bool:
        """Make the reserve where there is none and room for it; whether there is one now."""
        space = self.space()
        size = reserve_bytes(space.total_bytes)
        path = self._home.reserve_path
        with self._mutex, contextlib.suppress(OSError):
            if path.exists():
                self.is_spent = False
                return True
            self.is_spent = True
            if space.read_only or space.free_bytes < size + 2 * pause_below(space.total_bytes):
                return False
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, size)
            except OSError:
                path.unlink(missing_ok=True)
                raise
            finally:
                os.close(descriptor)
            self.is_spent = False
            return True
        return False

    def release(self) -> bool:
        """Give the reserve up; False when there was none."""
        with self._mutex, contextlib.suppress(OSError):
            self._home.reserve_path.unlink()
            self.is_spent = True
            return True
        return False
