"""Power cuts: what was written since the last sync of a file may be on the disk, or not, or torn.

One real run is traced with all it writes; then the disk is made up as it may stand after a cut at
any moment of the trace, and the file must open as if nothing but time had been lost.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.crash.checks import Held
from tests.crash.program import NORMAL, open_author

ROOT = Path(__file__).parents[2]
CUTS = int(os.environ.get("CRASH_CUTS", "40"))
SEED = int(os.environ.get("CRASH_SEED", "5"))
ACTS = 40
DEEP_EVERY = 10  # cuts: rebuild, audit and scan after these
SECTOR = 512
CALLS = "openat,pwrite64,ftruncate,fdatasync,fsync,unlink,write"
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)", re.DOTALL)
_FD = re.compile(r"^(\d+)<([^>]*)>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
Change = tuple[str, int, bytes]  # ("write", offset, data) or ("cut", size, b"")


@dataclass
class Drive:
    """One file: what is on the disk for certain, and what was written since the last sync."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        """All that was written is on the disk."""
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def after_a_cut(self, source: random.Random) -> bytes:
        """As it may be found: any of the pending writes, in any part of their sectors."""
        found = bytearray(self.durable)
        keeps = source.choice((0.0, 0.5, 0.9, 1.0))
        for what, at, data in self.pending:
            if what == "cut":
                if source.random() < keeps:
                    _apply(found, (what, at, data))
                continue
            for start in range(0, len(data), SECTOR):
                if source.random() < keeps:
                    _apply(found, (what, at + start, data[start : start + SECTOR]))
        return bytes(found)


def _apply(content: bytearray, change: Change) -> None:
    what, at, data = change
    if what == "cut":
        del content[at:]
        content.extend(bytes(at - len(content)))
    else:
        content.extend(bytes(max(0, at + len(data) - len(content))))
        content[at : at + len(data)] = data


def _trace(folder: Path, out: Path, **environ: str) -> None:
    """Trace a process that writes and forgets in a file of ``folder``."""
    strace = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(out)]
    program = [sys.executable, "-m", "tests.crash.program", "acts", str(folder), str(ACTS)]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environ
    subprocess.run([*strace, *program], cwd=ROOT, env=env, check=True, capture_output=True)


def _events(trace: Path, folder: Path) -> Iterator[tuple[str, str, Any]]:
    """(call, file name or acknowledgement, what) in the order of the trace."""
    for line in trace.read_text().split("\n"):
        match = _LINE.match(line)
        if match is None or int(match[3]) < 0:
            continue
        call, arguments = match[1], match[2]
        if call == "unlink":
            yield call, Path(_text(arguments)).name, None
            continue
        fd = _FD.match(arguments)
        if fd is None:
            continue
        path = Path(_unescaped(fd[2]))
        if call == "write" and fd[1] == "1":
            yield "said", _text(arguments), None
        elif path.parent == folder and path.suffix != ".db-shm" and not path.name.endswith("-shm"):
            yield call, path.name, _what(call, arguments)


def _what(call: str, arguments: str) -> Change | None:
    if call == "pwrite64":
        data = _bytes(arguments)
        return "write", int(arguments.rsplit(", ", 1)[1]), data
    if call == "ftruncate":
        return "cut", int(arguments.rsplit(", ", 1)[1]), b""
    return None


def _bytes(arguments: str) -> bytes:
    found = _STRING.search(arguments)
    assert found is not None, "strace shortened a string"
    return bytes.fromhex(found[1].replace("\\x", ""))


def _text(arguments: str) -> str:
    return _bytes(arguments).decode()


def _unescaped(path: str) -> str:
    return bytes.fromhex(path.replace("\\x", "")).decode() if path.startswith("\\x") else path


def _cuts(folder: Path, trace: Path, count: int) -> Iterator[tuple[Held, str]]:
    """The disk after cuts at ``count`` moments of a trace, one after the other, in one place."""
    events = list(_events(trace, folder))
    source = random.Random(SEED)
    moments = sorted(source.randrange(1, len(events) + 1) for _ in range(count))
    drives = {"a.db": Drive(bytearray((folder / "before.db").read_bytes()))}
    said: list[str] = []
    for i, (call, name, what) in enumerate(events, 1):
        if call == "said":
            said += name.splitlines()
        elif call in ("fdatasync", "fsync"):
            drives.setdefault(name, Drive()).sync()
        elif call == "unlink":
            drives.pop(name, None)
        elif what is not None:
            drives.setdefault(name, Drive()).pending.append(what)
        while moments and moments[0] == i:
            moments.pop(0)
            held = Held(folder.parent / "after", "a")
            shutil.rmtree(held.folder, ignore_errors=True)
            held.folder.mkdir()
            for file, drive in drives.items():
                (held.folder / file).write_bytes(drive.after_a_cut(source))
            held.acknowledge(said)
            yield held, f"CRASH_SEED={SEED}, cut after event {i} of {len(events)}: {call} {name}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an empty file of an agent, as it was on the disk before the trace."""
    found = tmp_path / "traced"
    found.mkdir()
    open_author(found, "a").store.connection.close()
    shutil.copy(found / "a.db", found / "before.db")
    return found


@pytest.mark.slow
def test_S_G1_a_power_cut_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    """FULL: after no cut is an acknowledged write gone, half a forget there, or the file broken."""
    _trace(folder, folder.parent / "trace")
    forgotten = 0
    for number, (held, why) in enumerate(_cuts(folder, folder.parent / "trace", CUTS)):
        held.check(why, deep=number % DEEP_EVERY == 0)
        if number % DEEP_EVERY == 0:
            held.bytes_gone(why)
            forgotten += len(held.forgotten)
    assert number == CUTS - 1
    assert forgotten, "positive control"


@pytest.mark.slow
def test_S_G1_positive_control_with_synchronous_normal_writes_are_lost(folder: Path) -> None:
    """The same cuts find the commits that this setting loses, so they can find one."""
    _trace(folder, folder.parent / "trace", **{NORMAL: "1"})
    lost = 0
    for held, why in _cuts(folder, folder.parent / "trace", 30):
        try:
            held.check(why, deep=False)
        except AssertionError as exc:
            lost += "lost" in str(exc)
    assert lost
