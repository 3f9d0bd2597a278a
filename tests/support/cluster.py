"""Real ``roost`` processes on homes of their own, driven through the command line alone."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASSPHRASE = "correct horse battery staple"
READY_S = 120.0
WAIT_S = 120.0
ROOT = Path(__file__).parents[2]


@dataclass
class Said:
    """How one command ended."""

    code: int
    result: dict[str, Any]
    error: dict[str, Any]


@dataclass
class Node:
    """One home and the node on it."""

    root: Path
    name: str
    process: subprocess.Popen[str] | None = None
    listen: str = ""
    api: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()  # what runs its commands, as in another network namespace
    options: tuple[str, ...] = ("--listen", "127.0.0.1:0", "--no-discovery")

    @property
    def home(self) -> Path:
        """The data directory."""
        return self.root / self.name

    @property
    def environ(self) -> dict[str, str]:
        """The environment of its commands."""
        secret = self.root / "passphrase"
        if not secret.exists():
            secret.write_text(PASSPHRASE)
            secret.chmod(0o600)
        found = os.environ | {"ROOST_PASSPHRASE_FILE": str(secret), "PYTHONPATH": str(ROOT)}
        return found | self.extra

    def argv(self, *words: str) -> list[str]:
        """The command line of one command."""
        start = [*self.prefix, sys.executable, "-m", "cli.main"]
        return [*start, "--home", str(self.home), "--json", *words]

    def run(self, *words: str) -> Said:
        """Run a command, however it ends."""
        done = subprocess.run(
            self.argv(*words), capture_output=True, text=True, env=self.environ, timeout=120
        )
        result = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
        lines = done.stderr.strip().splitlines()
        error = json.loads(lines[-1])["error"] if done.returncode and lines else {}
        return Said(done.returncode, result, error)

    def __call__(self, *words: str) -> dict[str, Any]:
        """The result of a command that must succeed."""
        said = self.run(*words)
        assert said.code == 0, f"{self.name}: {words[:3]} -> {said.code}: {said.error}"
        return said.result

    def up(self) -> None:
        """Start the node on a free port of this machine."""
        with (self.root / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.argv("up", *self.options),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environ,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.name} did not start: {(self.root / (self.name + '.log')).read_text()}"
        ready = json.loads(line)
        self.listen, self.api = ready["listen"], ready["api"] or ""

    def down(self, number: int = signal.SIGTERM) -> int | None:
        """Stop the node; its exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def finds(self, query: str, agent: str = "muse") -> list[str]:
        """The records that a search shows."""
        return [r["record"] for r in self("search", agent, query)["results"]]

    def state(self, record: str, agent: str = "muse") -> str:
        """The state of a record, or ``missing``."""
        said = self.run("show", agent, record)
        return str(said.result["state"]) if said.code == 0 else "missing"


class Cluster:
    """Nodes that are stopped when a test ends."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.nodes: list[Node] = []

    def node(self, name: str, *words: str, up: bool = True) -> Node:
        """A new home, served unless ``up`` is false."""
        node = Node(self.root, name)
        node("init", "--name", name, *(words or ("--no-recovery",)))
        self.nodes.append(node)
        if up:
            node.up()
        return node

    def stop(self) -> None:
        """Stop everything."""
        for node in self.nodes:
            node.down()

    @staticmethod
    def pair(opener: Node, joiner: Node, *, mine: bool = True) -> None:
        """Pair two running nodes by typed address."""
        flags = ["--mine"] if mine else []
        waiting = subprocess.Popen(
            opener.argv("pair", "open", *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=opener.environ,
        )
        assert waiting.stdout is not None
        code = json.loads(waiting.stdout.readline())["code"]
        joiner("pair", "join", "--address", opener.listen, "--code", code, *flags)
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0, out + err


def until(seen: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    give_up = time.monotonic() + WAIT_S
    while not seen():
        assert time.monotonic() < give_up, f"waited in vain for {what}"
        time.sleep(0.1)


def equal(*nodes: Node, agent: str = "muse") -> None:
    """Wait until all nodes report one digest of an agent."""

    def same() -> bool:
        said = [node.run("digest", agent) for node in nodes]
        return all(s.code == 0 for s in said) and len({s.result["digest"] for s in said}) == 1

    until(same, "equal digests")


def files_with(home: Path, text: str) -> list[Path]:
    """Files of a home that hold a text as UTF-8, UTF-16, base64 or in lower case."""
    raw = text.encode()
    needles = [raw, text.encode("utf-16-le"), text.encode("utf-16-be"), raw.lower()]
    coded = [base64.b64encode(b"\0" * shift + raw) for shift in range(3)]
    needles += [code[4 if shift else 0 : -4] for shift, code in enumerate(coded)]
    found = []
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if any(n in data for n in needles) or raw.lower() in data.lower():
                found.append(path)
    return found
