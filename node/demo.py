"""The demo: two real nodes, on one machine, with homes of their own.

Everything goes through the commands that a person would type, against two running processes; what
it says it found, it looked for.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

from keys.errors import RoostError

Say = Callable[[str], None]
Result = dict[str, Any]

AGENT: Final = "muse"
PASSPHRASE: Final = "a passphrase for the demo only"  # noqa: S105 - of two homes that are removed
WAIT_S: Final = 30.0
START_S: Final = 30.0
REFUSED_EXIT: Final = 3
FORGOTTEN: Final = "The spare key hangs behind the blue bicycle in the shed"
FROM_B: Final = "The dentist called: the appointment moved to the third of May"
REVISED: Final = "Mara waters the tomatoes at six now, since the days are shorter"


class DemoError(RoostError):
    """The demo did not see what it should have seen."""

    code = "demo"


class DemoNode:
    """One home, and the commands on it."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self.home = name, root / name
        secret = root / "passphrase"
        secret.write_text(PASSPHRASE, encoding="utf-8")
        secret.chmod(0o600)
        self._environ = dict(os.environ, ROOST_PASSPHRASE_FILE=str(secret))

    def argv(self, *words: str) -> list[str]:
        """The command line of one command on this home."""
        return [sys.executable, "-m", "cli.main", "--home", str(self.home), "--json", *words]

    def __call__(self, *words: str, refused: bool = False) -> Result:
        """Run a command; its result, or with ``refused`` the error that it must give."""
        done = subprocess.run(  # noqa: S603 - our own program
            self.argv(*words), capture_output=True, text=True, env=self._environ, check=False
        )
        if refused:
            if done.returncode != REFUSED_EXIT:
                raise DemoError(f"{words[0]} was not refused on {self.name}")
            return dict(json.loads(done.stderr)["error"])
        if done.returncode:
            raise DemoError(f"{' '.join(words[:2])} failed on {self.name}: {done.stderr.strip()}")
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))

    @contextmanager
    def running(self) -> Iterator[str]:
        """A node on this home, on a free port of this machine; its address."""
        words = ("up", "--listen", "127.0.0.1:0", "--no-discovery")
        with (self.home.parent / f"{self.name}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own program
                self.argv(*words),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environ,
            )
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise DemoError(f"the node {self.name} did not start")
                yield str(json.loads(line)["listen"])
            finally:
                process.terminate()
                process.wait(START_S)

    def open_pairing(self) -> subprocess.Popen[str]:
        """A waiting ``pair open``."""
        return subprocess.Popen(  # noqa: S603 - our own program
            self.argv("pair", "open", "--mine"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environ,
        )

    def finds(self, query: str, record: str) -> bool:
        """Whether a search on this node shows a record."""
        found = self("search", AGENT, query)["results"]
        return any(result["record"] == record for result in found)


def run_demo(say: Say) -> Result:
    """Run the demo and say what happens; what it measured. Raises ``DemoError``."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="roost-demo-") as folder:
        root = Path(folder)
        a, b = DemoNode(root, "server"), DemoNode(root, "laptop")
        say("Two homes on this machine, as if they were two machines:")
        for node in (a, b):
            node("init", "--name", node.name, "--no-recovery")
            say(f"  {node.name}: {node.home}")
        with ExitStack() as stack:
            address = stack.enter_context(a.running())
            stack.enter_context(b.running())
            _pair(a, b, address, say)
            facts = _share(a, b, say)
            _revise(a, b, say)
            _forget(a, b, facts[FORGOTTEN], say)
            result = _prove(a, b, say)
    seconds = round(time.monotonic() - started, 1)
    say("")
    say(f"Done in {seconds} s. On your own machines:")
    say("  roost init --name NAME && roost up    # on each machine")
    say("  roost pair open --mine                # on one; it prints the line for the other")
    say("  roost agent create muse               # then: roost remember muse TEXT")
    return result | {"seconds": seconds}


def _pair(a: DemoNode, b: DemoNode, address: str, say: Say) -> None:
    waiting = a.open_pairing()
    assert waiting.stdout is not None
    offer = json.loads(waiting.stdout.readline())
    say(f"\n1. Pairing: {a.name} shows the code {offer['code']}, {b.name} types it.")
    b("pair", "join", "--address", address, "--code", offer["code"], "--mine")
    if waiting.wait(START_S):
        raise DemoError("pairing failed")
    say("   Both proved that they know it; the laptop is one of the owner's devices now.")


def _share(a: DemoNode, b: DemoNode, say: Say) -> dict[str, str]:
    a("agent", "create", AGENT)
    lines = resources.files("node").joinpath("data", "demo.jsonl").read_text(encoding="utf-8")
    facts = {}
    for line in lines.splitlines():
        row = json.loads(line)
        words = ["remember", AGENT, row["text"], "--category", row["category"]]
        facts[row["text"]] = str(a(*words, "--tag", row["tags"][0])["record"])
    say(f"\n2. {a.name} remembers {len(facts)} things for the agent {AGENT!r}.")
    _wait(lambda: _knows(b) and b.finds("tomatoes", next(iter(facts.values()))), "B reads A")
    say(f"   {b.name} finds them: search 'tomatoes' gives the same record.")
    told = str(b("remember", AGENT, FROM_B)["record"])
    _wait(lambda: a.finds("dentist appointment", told), "A reads B")
    say(f"   {b.name} adds one, and {a.name} finds it.")
    return facts


def _knows(node: DemoNode) -> bool:
    return any(agent["name"] == AGENT for agent in node("agent", "list")["agents"])


def _revise(a: DemoNode, b: DemoNode, say: Say) -> None:
    old = str(b("search", AGENT, "tomatoes balcony")["results"][0]["record"])
    new = str(b("revise", AGENT, old, REVISED, "--reason", "autumn")["record"])
    _wait(lambda: a.finds("tomatoes", new) and not a.finds("tomatoes", old), "the revision")
    say(f"\n3. {b.name} corrects a memory; on {a.name} the old wording is no longer found,")
    say(f"   and stays in its history: {len(a('history', AGENT, old)['versions'])} versions.")


def _forget(a: DemoNode, b: DemoNode, record: str, say: Say) -> None:
    before = {node.name: scan(node.home, FORGOTTEN) for node in (a, b)}
    if not all(before.values()):
        raise DemoError("the text to forget never reached both disks")
    a("forget", AGENT, record, "--reason", "the lock was changed")
    _wait(lambda: not any(scan(node.home, FORGOTTEN) for node in (a, b)), "the erasure")
    files = sum(len(list(node.home.rglob("*"))) for node in (a, b))
    say(
        f"\n4. {a.name} forgets where the spare key is. Before, the sentence was in"
        f" {sum(map(len, before.values()))} files;"
    )
    say(
        f"   now none of the {files} files of both homes holds it"
        " (plain, UTF-16, base64, lower case)."
    )
    for node in (a, b):
        error = node("remember", AGENT, FORGOTTEN.upper() + " ", refused=True)
        say(f"   Writing it again on {node.name} is refused: {error['message']}.")


def _prove(a: DemoNode, b: DemoNode, say: Say) -> Result:
    digests: list[str] = []

    def equal() -> bool:
        digests[:] = [str(node("digest", AGENT)["digest"]) for node in (a, b)]
        return digests[0] == digests[1]

    _wait(equal, "equal digests")
    audits = [node("audit", "verify", AGENT) for node in (a, b)]
    if not all(audit["ok"] for audit in audits):
        raise DemoError("a log does not verify")
    say(f"\n5. Both nodes hold the same memory: {digests[0][:24]}…")
    say(
        f"   and both logs verify: {audits[0]['entries']} signed entries,"
        f" {audits[0]['erased']} of them erased."
    )
    return {"digest": digests[0], "entries": audits[0]["entries"], "equal": True}


def _wait(seen: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + WAIT_S
    while not seen():
        if time.monotonic() > until:
            raise DemoError(f"waited {WAIT_S:.0f} s for {what} in vain")
        time.sleep(0.1)


def scan(home: Path, text: str) -> list[Path]:
    """The files of a home that hold ``text``: as UTF-8, UTF-16, base64 or in lower case."""
    raw = text.encode()
    needles = [raw, text.lower().encode(), text.encode("utf-16-le"), text.encode("utf-16-be")]
    for shift in range(3):  # whatever stands before it in what was encoded
        coded = base64.b64encode(b"\0" * shift + raw)
        needles.append(coded[4 if shift else 0 : -4])
    found = []
    for path in sorted(p for p in home.rglob("*") if p.is_file() and not p.is_symlink()):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        lowered = data.lower()
        if any(needle in data for needle in needles) or raw.lower() in lowered:
            found.append(path)
    return found
