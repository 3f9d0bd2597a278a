"""Power cuts: what was not synced, of a file or a directory, may be on the disk, or not, or torn.

One real run is traced with all it writes; then the disk is made up as it may stand after a cut at
any moment of the trace, and the file must open as if nothing but time had been lost.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.checks import Held
from tests.crash.disk import STRACE, Disk, calls
from tests.crash.program import NORMAL, open_author, write

ROOT = Path(__file__).parents[2]
CUTS = int(os.environ.get("CRASH_CUTS", "40"))
SEED = int(os.environ.get("CRASH_SEED", "5"))
ACTS = 40
DEEP_EVERY = 10  # cuts: rebuild, audit and scan after these
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")


def _trace(folder: Path, out: Path, **environ: str) -> None:
    """Trace a process that writes and forgets in a file of ``folder``."""
    strace = [*STRACE, "-o", str(out)]
    program = [sys.executable, "-m", "tests.crash.program", "acts", str(folder), str(ACTS)]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environ
    subprocess.run([*strace, *program], cwd=ROOT, env=env, check=True, capture_output=True)


def _cuts(folder: Path, trace: Path, count: int) -> Iterator[tuple[Held, str]]:
    """The disk after cuts at ``count`` moments of a trace, one after the other, in one place."""
    source, disk = random.Random(SEED), Disk(folder)
    events = [c for c in calls(trace) if c.fd == 1 or folder in (*c.paths[0].parents, c.paths[0])]
    moments = sorted(source.randrange(1, len(events) + 1) for _ in range(count))
    said: list[str] = []
    for i, call in enumerate(events, 1):
        if call.fd == 1:
            said += call.data.decode().splitlines()
        else:
            disk.do(call)
        while moments and moments[0] == i:
            moments.pop(0)
            held = Held(folder.parent / "after", "a")
            shutil.rmtree(held.folder, ignore_errors=True)
            disk.put(held.folder, source)
            held.acknowledge(said)
            where = f"{call.name} {call.paths[0].name}"
            yield held, f"CRASH_SEED={SEED}, cut after event {i} of {len(events)}: {where}"


def _write_on(held: Held, number: int, why: str) -> None:
    """A note is written to what was found, and it is there when the file is opened again."""
    author = open_author(held.folder, held.name)
    record = write(author, number)
    tip = author.own_tip()
    assert tip is not None
    (entry,) = author.store.connection.execute(
        "SELECT hash FROM entry ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    author.store.connection.close()
    held.acknowledge([f"ack {tip[1]} {entry.hex()} wrote {number} {record.hex()}"])
    held.check(f"{why}, then a write", deep=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, which is on the disk; the file is made while we look."""
    found = tmp_path / "traced"
    found.mkdir()
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
            _write_on(held, 1_000 + number, why)
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
