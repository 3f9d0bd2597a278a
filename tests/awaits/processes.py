"""Nodes and commands as forked processes: real homes, sockets and TLS, without the time to import.

The program is imported once. Each node and each command is a fork of that process, so it runs what
``roost`` runs, in a process of its own that can be killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSPHRASE = "correct horse battery staple"
WAIT_S = 60.0
LOOK_S = 3.0
CHEAP_VAULT = (1, 8_192)
CODES = 1_000


class StuckError(AssertionError):
    """A process did not end, or did not say what it should have said, in time."""


@dataclass(slots=True)
class Child:
    """A forked process, what it says on its standard output, and how it ended."""

    pid: int
    output: int
    name: str
    said: bytes = b""
    status: int | None = None

    def line(self) -> dict[str, Any] | None:
        """The next line that it says; None when it ends before."""
        while b"\n" not in self.said:
            if not self._read():
                return None
        line, _, self.said = self.said.partition(b"\n")
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def wait(self, doomed: Callable[[], bool] = bool) -> int:
        """Read to the end; the exit code, or minus the signal that it died of.

        It is asked to end when ``doomed`` says that whom it waits for may be dead.
        """
        while self.status is None and self._read(doomed):
            pass
        return self.reap()

    def reap(self) -> int:
        """Wait for the end of a process that says nothing more."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.output)
        return self.status

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                os.close(self.output)
        return self.status is not None

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait."""
        if not self.over:
            os.kill(self.pid, number)
        return self.wait() if self.status is None else self.status

    def _read(self, doomed: Callable[[], bool] = bool) -> bool:
        end_s = time.monotonic() + WAIT_S
        while not select.select([self.output], [], [], LOOK_S)[0]:
            if doomed():
                os.kill(self.pid, signal.SIGTERM)
            if time.monotonic() > end_s:
                os.kill(self.pid, signal.SIGABRT)  # its stack goes to its standard error
                raise StuckError(f"{self.name} says nothing and does not end")
        data = os.read(self.output, 65_536)
        self.said += data
        return bool(data)


def fork(name: str, errors: Path, work: Callable[[], int]) -> Child:
    """``work`` in a process of its own; its standard error is appended to ``errors``."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading, name)
    code = 99
    try:
        os.close(reading)
        os.dup2(writing, 1)
        os.close(writing)  # or a background node would hold it open after its command
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = os.fdopen(1, "w", closefd=False)  # of what it is now: no file, a pipe
        sys.stderr = os.fdopen(2, "w", closefd=False)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the last frame of a process
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def load() -> None:
    """Import all that nodes and commands run.

    Three things are not the product's: what a vault costs, how many codes a node may make in ten
    minutes, and that a background node is a fork too.
    """
    import faulthandler

    import cli.main  # noqa: F401
    import keys.vault
    import memory.nodedb
    import node.app
    import node.assembly
    import node.background
    import node.network
    import node.offline
    import node.setup
    from cli.catalog import Commands

    commands = Commands()
    for name in commands:
        _ = commands[name]
    cheap = keys.vault.Cost(*CHEAP_VAULT)
    for sealing in (keys.vault.seal_owner, node.setup.init_home):
        defaults = sealing.__kwdefaults__
        assert defaults is not None
        assert defaults["cost"] == keys.vault.DEFAULT_COST
        defaults["cost"] = cheap
    vars(memory.nodedb)["PAIR_CODES_PER_WINDOW"] = CODES
    vars(node.background)["_start"] = _forked
    faulthandler.enable()


class _Started:
    """What a command sees of the background node that it started; init reaps that, not we."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        """0 once it has ended, whatever it said."""
        return self.poll()

    def poll(self) -> int | None:
        """None while it lives."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        return os.waitstatus_to_exitcode(status) if pid else None


def _forked(home: Any, command: Sequence[str]) -> _Started:
    """In the place of a new process that would import everything again, and count nothing."""
    from cli.main import main

    words = command[command.index("--home") :]
    pid = os.fork()
    if pid:
        return _Started(pid)
    code = 99
    try:
        os.setsid()
        os.environ.pop("ROOST_PASSPHRASE_FILE", None)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.dup2(os.open(home.journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        code = main(list(words))
    finally:
        os._exit(code)


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended: its exit code (below 0: killed), its results, its error."""

    code: int
    lines: list[dict[str, Any]]
    error: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        """The last thing that it said."""
        return self.lines[-1] if self.lines else {}


@dataclass
class Node:
    """A home, and the process that serves it while one does."""

    root: Path
    name: str
    listen: str = "127.0.0.1:0"
    options: tuple[str, ...] = ("--no-discovery",)
    child: Child | None = None
    device: str = ""
    recovery: str = ""

    @property
    def home(self) -> Path:
        """Its data directory."""
        return self.root / self.name

    @property
    def journal(self) -> Path:
        """What its node and its commands said on their standard error."""
        return self.root / f"{self.name}.log"

    def begin(self, *words: str) -> Child:
        """Start a command."""
        from cli.main import main

        def work() -> int:
            code = main(["--home", str(self.home), "--json", *words])
            assert isinstance(code, int)
            return code

        return fork(f"{self.name} {' '.join(words)[:60]}", self._errors(), work)

    def finish(self, child: Child, doomed: Callable[[], bool] = bool) -> Said:
        """Wait for a command."""
        code = child.wait(doomed)
        lines = [json.loads(line) for line in child.said.splitlines() if line.strip()]
        path = self.root / f"{self.name}.errors"
        said = path.read_text().strip().splitlines() if path.exists() else []
        error = json.loads(said[-1])["error"] if code > 0 and said and said[-1][:1] == "{" else {}
        with self.journal.open("a") as file:
            file.write(f"$ {child.name} -> {code}\n" + "".join(f"{line}\n" for line in said))
        path.unlink(missing_ok=True)
        return Said(code, lines, error)

    def run(self, *words: str, doomed: Callable[[], bool] = bool) -> Said:
        """Run a command, however it ends."""
        return self.finish(self.begin(*words), doomed)

    def up(self, *options: str) -> bool:
        """Serve the home, at the port of the last time; False when it dies before it is ready."""
        words = ["up", "--listen", self.listen, *(options or self.options)]
        self.child = fork(f"{self.name} up", self.journal, lambda: self.serve(words))
        ready = self.child.line()
        if ready is None:
            self.child.reap()
            return False
        self.listen, self.device = ready["listen"], ready["device"]
        return True

    def serve(self, words: Sequence[str]) -> int:
        """What the process does that serves the home; its exit code."""
        from cli.main import main

        code = main(["--home", str(self.home), "--json", *words])
        assert isinstance(code, int)
        return code

    def down(self, number: int = signal.SIGTERM) -> int:
        """Stop serving; the exit code."""
        if self.child is None:
            return 0
        child, self.child = self.child, None
        return child.end(number)

    def end_background(self) -> None:
        """Kill the background node of this home, if there is one."""
        with contextlib.suppress(OSError, ValueError):
            holder = json.loads((self.home / "lock").read_text())
            if holder["role"] == "background":
                os.kill(holder["pid"], signal.SIGKILL)

    @property
    def is_up(self) -> bool:
        """Whether its process lives."""
        return self.child is not None and not self.child.over

    def _errors(self) -> Path:
        return self.root / f"{self.name}.errors"
