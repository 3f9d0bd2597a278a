"""Real nodes with TLS between them are killed: while they pair, while they write and pull."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.watched import is_possible

ROOT = Path(__file__).parents[2]
STRIDE = os.environ.get("CRASH_STRIDE", "128")  # 1: a crash at every system call
ROUNDS = os.environ.get("CRASH_ROUNDS", "8")


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not is_possible(), reason="the kernel does not tell of system calls (seccomp)")
def test_S_D5_M_H3_S_G1_real_nodes_are_killed_at_system_calls_of_pairing_and_at_any_moment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No pairing is half, no acknowledged write lost, no place signed twice; in the end equal."""
    command = [sys.executable, "-m", "tests.crash.nodes", "--stride", STRIDE, "--rounds", ROUNDS]
    if STRIDE != "1":
        command += ["--kind", "mine"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    report = json.loads(done.stdout.splitlines()[-1])
    pairs, recovery, kills = report["pairs"], report["recovery"], report["kills"]
    with capsys.disabled():
        print(f"\npairing: {pairs['calls']} system calls, {pairs['died']} crashes; nodes: {kills}")
        print(f"recovery of an owner: {recovery['calls']} calls, {recovery['died']} crashes")
    assert pairs["failed"] == []
    assert done.returncode == 0
    assert pairs["calls"] > 100, "positive control: pairing does write"
    assert pairs["tried"] / 2 <= pairs["died"] > 0, "the calls vary a little; most are reached"
    assert recovery["failed"] == []
    assert recovery["died"] > 0
    assert kills["rounds"] == int(ROUNDS)
    assert kills["pulling"] >= kills["rounds"] // 2 > 0
    assert kills["acknowledged"] > 0, "positive control: there was something to lose"
