"""Killed at any moment: what was acknowledged is there, whole, and no place is used twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.audit import verify_log
from tests.support.crashing_writer import open_author
from tests.support.memory_checks import intact

ROOT = Path(__file__).parents[2]
ROUNDS = 20
SEED = 7


class Killed:
    """A process that forks writers, each killed after some acknowledgements."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout

    def round(self, path: Path, seed: int, acks: int, delay_s: float) -> list[tuple[int, bytes]]:
        """(seq, hash) of each acknowledged tip of one writer."""
        self._in.write(f"{path} {seed}\n")
        self._in.flush()
        seen: list[tuple[int, bytes]] = []
        pid = 0
        while True:
            word, *rest = self._out.readline().split()
            if word == "dead":
                return seen
            if word == "pid":
                pid = int(rest[0])
            elif word == "ack":
                seen.append((int(rest[0]), bytes.fromhex(rest[1])))
            if pid and len(seen) >= acks:
                time.sleep(delay_s)
                os.kill(pid, signal.SIGKILL)
                acks = 10**9


@pytest.fixture
def killed() -> Iterator[Killed]:
    """The process, ended afterwards."""
    command = [sys.executable, "-m", "tests.support.crashing_writer"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Killed(process)
        assert process.stdin
        process.stdin.close()


@pytest.mark.slow
def test_S_A1_M_H3_kill_9_loses_and_doubles_nothing(tmp_path: Path, killed: Killed) -> None:
    """Twenty kills at random moments of writes, revisions, erasures and cleanings of one file."""
    source = random.Random(SEED)
    path = tmp_path / "agent.db"
    held: dict[int, bytes] = {}
    for number in range(ROUNDS):
        acks, delay_s = source.randrange(1, 12), source.random() * 0.01
        seen = killed.round(path, number, acks, delay_s)
        why = f"seed {SEED}, round {number}, {acks} acknowledged, then {delay_s:.4f} s"
        assert len(seen) >= acks, why
        author = open_author(path)
        store = author.store
        assert intact(store), why
        assert verify_log(store).problems == [], why
        before, after = store.rebuild()
        assert before == after, why
        rows = store.connection.execute("SELECT seq, hash FROM entry ORDER BY seq").fetchall()
        found = dict(rows)
        assert len(found) == len(rows) == rows[-1][0], why
        assert set(seen) <= set(rows), why
        assert held.items() <= found.items(), why
        held = found
        logs = store.connection.execute("SELECT count(*) FROM log").fetchone()
        assert logs == (1,), "R38: a kill makes no incarnation"
        store.clean()
        store.connection.close()
    assert len(held) > ROUNDS
