"""Damaged files that were set aside: nothing of them is deleted, and status tells of them (S-G1).

1. A file is renamed, with what lies beside it, to ``NAME.damaged-REASON-TIME`` in its own folder; a
   report of what was read back lies next to it as ``….json``.
2. It stays until a person removes it, or until something of its agent is erased: what could be read
   of it is in the new file by then, and erased bytes must be nowhere (R34).
3. A start that finds a file set aside and none in its place goes on with the rebuilding.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from keys.durable import sync_directory

BESIDE: Final = ("-wal", "-shm")
_REPORT: Final = ".json"
_REPORT_BYTES_MAX: Final = 64 * 1024
_NAME: Final = re.compile(
    r"(?P<name>.+\.db)\.damaged-(?P<reason>[a-z_]+)-(?P<at>\d{8}T\d{6}Z)(-\d+)?"
)


@dataclass(frozen=True, slots=True)
class Aside:
    """One file that was set aside: of which file, why, and when (ISO 8601, UTC)."""

    path: Path
    name: str
    reason: str
    at: str
    report: dict[str, int] = field(default_factory=dict)

    def write_report(self, report: dict[str, int]) -> None:
        """Put down what was read back; a report that cannot be written is no reason to stop."""
        with contextlib.suppress(OSError):
            _report_path(self.path).write_text(json.dumps(report) + "\n", encoding="utf-8")


def set_aside(path: Path, reason: str, now_us: int) -> Aside:
    """Rename ``path`` and what lies beside it; raises ``OSError``.

    The file goes first: what is left beside a name without a file is taken along at the next start.
    """
    stamp = datetime.fromtimestamp(now_us / 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    target = base = path.with_name(f"{path.name}.damaged-{reason}-{stamp}")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = base.with_name(f"{base.name}-{number}")
    if path.exists():
        path.rename(target)
        sync_directory(path.parent)  # or a power cut may keep the second change and not this one
    take_along(path, target)
    found = _parse(target)
    assert found is not None, "the name is one of ours"
    return found


def take_along(path: Path, target: Path) -> None:
    """Rename what lies beside ``path``, whose file is ``target`` by now; raises ``OSError``."""
    for suffix in BESIDE:
        beside = path.with_name(path.name + suffix)
        if beside.exists() and not os.path.lexists(target.with_name(target.name + suffix)):
            beside.rename(target.with_name(target.name + suffix))
    sync_directory(path.parent)


def all_aside(folder: Path, name: str | None = None) -> list[Aside]:
    """What was set aside in ``folder`` (of the file ``name`` alone), oldest first."""
    if not folder.is_dir():
        return []
    found = [a for p in folder.iterdir() if (a := _parse(p)) is not None]
    return sorted((a for a in found if name in (None, a.name)), key=lambda a: (a.at, a.path.name))


def discard(folder: Path, name: str) -> int:
    """Remove what was set aside of one file (rule 2), durably; how many. Raises ``OSError``."""
    found = all_aside(folder, name)
    for suffixes in ((*BESIDE, _REPORT), ("",)):  # what has the file's name goes while it is there
        for aside in found:
            for suffix in suffixes:
                aside.path.with_name(aside.path.name + suffix).unlink(missing_ok=True)
        if found:
            sync_directory(folder)
    return len(found)


def _parse(path: Path) -> Aside | None:
    named = _NAME.fullmatch(path.name)
    if named is None:
        return None
    at = datetime.strptime(named["at"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    stamp = at.isoformat().replace("+00:00", "Z")
    return Aside(path, named["name"], named["reason"], stamp, _read_report(path))


def _read_report(path: Path) -> dict[str, int]:
    try:
        with _report_path(path).open("rb") as file:
            said = json.loads(file.read(_REPORT_BYTES_MAX))
        return {str(k): int(v) for k, v in said.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _report_path(path: Path) -> Path:
    return path.with_name(path.name + _REPORT)
