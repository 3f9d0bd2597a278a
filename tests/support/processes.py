"""Homes and real node processes for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.local_http import connect, post
from keys.vault import Cost
from node.paths import socket_candidates
from node.setup import init_home

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("node_program.py")
CHEAP = Cost(ops=1, memory_bytes=8_192)
PASSPHRASE = "correct horse"
READY_S = 90.0


def make_home(path: Path) -> Path:
    """A home after ``roost init``, with a vault that costs nothing to open."""
    init_home(path, name="desk", owner=None, recovery=False, passphrase=PASSPHRASE, cost=CHEAP)
    return path


def program(what: str, home: Path, *options: str) -> list[str]:
    """The command line of the test node."""
    return [sys.executable, "-P", str(PROGRAM), what, "--home", str(home), *options]


def environment() -> dict[str, str]:
    """This process's, with the source tree importable wherever the child runs."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


@dataclass
class Process:
    """One node process."""

    home: Path
    child: subprocess.Popen[str]
    ready: dict[str, Any] = field(default_factory=dict)

    def call(self, verb: str, **params: Any) -> dict[str, Any]:
        """The whole reply to one call."""
        return call(self.home, verb, **params)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.child.send_signal(number)
        return self.child.wait(READY_S)


def call(home: Path, verb: str, **params: Any) -> dict[str, Any]:
    """The reply of the node of ``home`` to one call; fails when nobody answers."""
    for path in socket_candidates(home):
        connection = connect(path)
        if connection is not None:
            body = json.dumps({"verb": verb, "params": params}).encode()
            reply = json.loads(post(connection, "/v1/call", body, READY_S).whole())
            assert isinstance(reply, dict)
            return reply
    raise AssertionError(f"no node of {home} answers")


def answers(home: Path) -> bool:
    """Whether a node of ``home`` answers."""
    try:
        return "result" in call(home, "node.ping")
    except (AssertionError, OSError):
        return False


def wait_until(what: Any, timeout_s: float = READY_S) -> float:
    """Wait for ``what()`` to be true; the seconds it took."""
    started = time.monotonic()
    while not what():
        assert time.monotonic() - started < timeout_s, "waited in vain"
        time.sleep(0.02)
    return time.monotonic() - started


@contextlib.contextmanager
def running(home: Path, *options: str) -> Iterator[Process]:
    """A node process of ``home``, ready; killed at the end if it still runs."""
    with start(home, *options) as process:
        assert process.child.stdout is not None
        line = process.child.stdout.readline()
        assert line, process.child.communicate()[1]
        process.ready = json.loads(line)
        yield process


@contextlib.contextmanager
def start(home: Path, *options: str, what: str = "up") -> Iterator[Process]:
    """A process of ``home``, ready or not."""
    child = subprocess.Popen(
        program(what, home, *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with child:
        try:
            yield Process(home, child)
        finally:
            if child.poll() is None:
                child.kill()
            child.communicate()


def journal_of(home: Path) -> list[dict[str, Any]]:
    """What a node in the background said."""
    path = home / "journal.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
