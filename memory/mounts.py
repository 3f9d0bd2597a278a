"""Which file system a path is on, so that a message can name it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a file system is mounted, and its type; empty where the system does not tell."""

    point: str
    kind: str


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a file system: free for this account, in all; and whether it takes writes."""

    free_bytes: int
    total_bytes: int
    read_only: bool


def mount_of(path: Path, mounts: Path = MOUNTS) -> Mount:
    """The mount that ``path`` is or would be on."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return Mount("", "")
    best, depth = Mount("", ""), -1
    for point, kind in _mounted(lines):
        # Of two mounts on one point the later hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= depth:
            best, depth = Mount(str(point), kind), len(point.parts)
    return best


def space_of(path: Path) -> Space:
    """What the file system of an existing ``path`` has left; raises ``OSError``."""
    found = os.statvfs(path)
    return Space(
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
        bool(found.f_flag & os.ST_RDONLY),
    )


def _mounted(lines: list[str]) -> Iterator[tuple[Path, str]]:
    """(mount point, type) of the lines of mountinfo; see proc(5)."""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 4 and after:
            point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
            yield Path(point), after.split(" ")[0]
