"""A disk of a few megabytes that can be filled and made read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A file system in memory, mounted at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fill = path / "fill"

    def fill(self) -> None:
        """Leave no byte free."""
        descriptor = os.open(self._fill, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (1024 * 1024, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.write(descriptor, bytes(size))
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Take away what filled it."""
        self._fill.unlink()

    def read_only(self, *, yes: bool) -> None:
        """Let it take writes or not."""
        mode = "ro" if yes else "rw"
        subprocess.run(["mount", "-o", f"remount,{mode},bind", str(self.path)], check=True)


@contextlib.contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[SmallDisk]:
    """A disk of this size; skips the test where none can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("mounting a disk takes root")
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size_mib}m,mode=700", "tmpfs"]
    done = subprocess.run(["mount", *options, str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
