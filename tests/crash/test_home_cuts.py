"""Power cuts over a whole home: keys, databases, marker, and files that were set aside."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from keys.errors import DamageError
from node import offline
from node.aside import all_aside
from tests.crash.disk import STRACE, Disk, calls
from tests.crash.homes import AGENT, create, remember, setup
from tests.support.byte_scan import found_in

ROOT = Path(__file__).parents[2]
CUTS = int(os.environ.get("CRASH_CUTS", "8"))
SEED = int(os.environ.get("CRASH_SEED", "5"))
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")


@dataclass
class Said:
    """What was acknowledged before a cut."""

    done: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)
    forgotten: dict[str, str] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """One line of the program."""
        _, what, *rest = line.split(" ", 3)
        self.done.add(what)
        if what == "wrote":
            self.notes[rest[0]] = rest[1]
        elif what == "forgot":
            self.forgotten[rest[0]] = self.notes.pop(rest[0])


def run_verb(home: Path, verb: str, params: dict[str, Any]) -> dict[str, Any]:
    """A verb; where a file turns out damaged it is mended, and we try again."""
    try:
        return offline.run_verb(home, verb, params)
    except DamageError:
        return offline.run_verb(home, verb, params)


def _check(home: Path, said: Said, why: str) -> None:
    """The home opens, holds what was acknowledged, nothing of what was forgotten, and is used."""
    if not (home / "node.db").exists():
        assert "init" not in said.done, f"{why}: the home is not set up"
        setup(home)
    agents = run_verb(home, "agent.list", {})["agents"]
    if all(a["name"] != AGENT for a in agents):
        assert "agent" not in said.done, f"{why}: the agent is gone"
        create(home)
    for text in said.forgotten.values():
        assert found_in(home, text) == [], f"{why}: forgotten, and still there"
    new = remember(home, f"written after the cut {os.urandom(8).hex()}")
    listed = run_verb(home, "list", {"agent": AGENT, "limit": 100})["records"]
    found = {r["record"]: r for r in listed}
    assert new in found, why
    for record, text in said.notes.items():
        assert record in found, f"{why}: an acknowledged note is lost"
        if found[record]["state"] == "erased":  # a forget that was not yet acknowledged
            assert found_in(home, text) == [], f"{why}: half a forget"
        else:
            assert found[record]["text"] == text, why
    for record in said.forgotten:
        assert found[record]["state"] == "erased", why
    assert run_verb(home, "audit.verify", {})["ok"], why
    doctor = run_verb(home, "doctor", {})
    assert doctor["ok"], f"{why}: {doctor}"


@pytest.mark.slow
def test_S_G1_a_power_cut_while_a_home_is_made_used_and_mended(tmp_path: Path) -> None:
    """What a directory does not say for certain may be lost, and no acknowledged note is."""
    folder, trace = tmp_path / "traced", tmp_path / "trace"
    folder.mkdir()
    program = [sys.executable, "-m", "tests.crash.homes", str(folder / "home")]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [*STRACE, "-o", str(trace), *program]
    subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True)
    source, disk, said = random.Random(SEED), Disk(folder), Said()
    events = [c for c in calls(trace) if c.fd == 1 or folder in (*c.paths[0].parents, c.paths[0])]
    moments = sorted(source.randrange(1, len(events) + 1) for _ in range(CUTS))
    tried = mended = 0
    for i, call in enumerate(events, 1):
        if call.fd == 1:
            for line in call.data.decode().splitlines():
                if line.startswith("ack "):  # and not what a child of it says
                    said.take(line)
        else:
            disk.do(call)
        while moments and moments[0] == i:
            moments.pop(0)
            after = tmp_path / "after"
            shutil.rmtree(after, ignore_errors=True)
            disk.put(after, source)
            (after / "home").mkdir(0o700, exist_ok=True)
            where = f"{call.name} {call.paths[-1].name}"
            mended += bool(all_aside(after / "home" / "agents"))
            _check(after / "home", said, f"CRASH_SEED={SEED}, cut after {i}/{len(events)}: {where}")
            tried += 1
    assert tried == CUTS
    assert said.forgotten, "positive control: there was something to forget, and notes to lose"
    assert said.notes
    assert mended, "positive control: a cut fell where a file was aside"
