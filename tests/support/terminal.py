"""A terminal where a person answers."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest


class Screen(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no file")


@dataclass
class Terminal:
    """Both streams of a terminal, and what a person types at each question."""

    answer: Callable[[str], str]
    out: Screen = field(default_factory=Screen)
    err: Screen = field(default_factory=Screen)

    def isatty(self) -> bool:
        """A person is there."""
        return True

    def readline(self) -> str:
        """The answer to the question that was asked last."""
        question = self.err.getvalue().splitlines()[-1].strip()
        answer = self.answer(question)
        self.err.write("\n")
        return answer + "\n"


def attach(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], str]) -> Terminal:
    """Let standard input, output and error be a terminal."""
    terminal = Terminal(answer)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "stdout", terminal.out)
    monkeypatch.setattr(sys, "stderr", terminal.err)
    return terminal


def run_on_terminal(arguments: list[str], *, columns: int, **variables: str) -> tuple[int, str]:
    """Exit code and output of ``roost`` on a terminal of its own."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "CI"}}
    child = subprocess.Popen(
        [sys.executable, "-m", "cli.main", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environ | {"TERM": "xterm", "COLUMNS": str(columns)} | variables,
    )
    os.close(follower)
    said = b""
    try:
        while part := os.read(leader, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(leader)
    return child.wait(20), said.decode()
