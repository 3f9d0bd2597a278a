"""A crash at system calls that write or sync, of the two nodes of a pairing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.watched import is_possible

ROOT = Path(__file__).parents[2]
STRIDE = os.environ.get("CRASH_STRIDE", "128")  # 1: a crash at every one


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not is_possible(), reason="the kernel does not tell of system calls (seccomp)")
def test_S_D5_a_crash_of_either_side_leaves_no_half_pairing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both homes are whole after it, and the two are paired or pair again from either side."""
    command = [sys.executable, "-m", "tests.crash.pairs", "--stride", STRIDE]
    if STRIDE != "1":
        command += ["--kind", "mine"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    report = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"\npairing: {report['calls']} system calls, {report['died']} crashes")
    assert report["failed"] == []
    assert done.returncode == 0
    assert report["calls"] > 100, "positive control: pairing does write"
    assert report["tried"] / 2 <= report["died"] > 0, "the calls vary a little; most are reached"
