"""kill -9 at random moments of a writer and of a puller, two processes with a socket between."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.crash.checks import Held
from tests.crash.program import open_author

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "200"))
SEED = int(os.environ.get("CRASH_SEED", "11"))
CHECKED_EVERY = 25  # rounds; the acknowledgements are compared after each
FOR_EVER = 10**9


def _program(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.crash.program", *words]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def forks() -> Iterator[subprocess.Popen[str]]:
    """Forks what is to be killed."""
    with _program("forks") as process:
        yield process
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: the death of a process leaves the page cache as it is."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="roost-test-", dir="/dev/shm") as found:
        yield Path(found)


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    """The port of a process that serves what the writer wrote."""
    with _program("serve", str(folder)) as process:
        assert process.stdout
        yield int(process.stdout.readline().split()[1])
        process.kill()


def _kill_one(forks: subprocess.Popen[str], order: str, acks: int, delay_s: float) -> list[str]:
    """Start a process, kill it some time after it has acknowledged enough; what it said."""
    stdin, stdout = _pipes(forks)
    stdin.write(order + "\n")
    stdin.flush()
    said: list[str] = []
    pid = 0
    while (line := stdout.readline().strip()) != "dead":
        assert line, "the process that forks has ended"
        if line.startswith("pid "):
            pid = int(line.split()[1])
        else:
            said.append(line)
        if pid and len(said) >= acks:
            time.sleep(delay_s)  # chance: when in the next act it is killed
            os.kill(pid, signal.SIGKILL)
            acks = FOR_EVER
    return said


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout


@pytest.mark.slow
def test_M_H3_S_G1_kill_9_of_a_writer_and_of_a_puller(
    folder: Path, forks: subprocess.Popen[str], port: int
) -> None:
    """Nothing acknowledged is lost, no place is signed twice; at the end both are equal."""
    source = random.Random(SEED)
    a, b = Held(folder, "a"), Held(folder, "b")
    open_author(folder, "b").store.connection.close()
    before: set[tuple[int, bytes]] = set()
    for number in range(ROUNDS):
        writes = number % 2 == 0
        acks, delay_s = source.randrange(1 if writes else 0, 4), source.random() * 0.02
        order = f"acts {folder} {FOR_EVER} {number}" if writes else f"pulls {folder} {port} 0"
        why = f"CRASH_SEED={SEED}, round {number}: {order.split()[0]}, {acks} acks, {delay_s:.4f} s"
        held = a if writes else b
        held.acknowledge(_kill_one(forks, order, acks, delay_s))
        deep = number % CHECKED_EVERY < 2 or number >= ROUNDS - 2
        now = held.check(why, deep=deep)
        if writes:
            assert before <= now, f"{why}: what was held is held"
            before = now
    b.places, b.written, b.forgotten = before, a.written, a.forgotten
    b.acknowledge(_kill_one(forks, f"pulls {folder} {port} 0", 1, 0.0))
    assert b.check("after the last pull") == before
    digests = [open_author(folder, name).store.digest() for name in "ab"]
    assert digests[0] == digests[1]
    assert len(a.forgotten) > ROUNDS // 20, "positive control: something was forgotten"
    a.bytes_gone(f"CRASH_SEED={SEED}")
