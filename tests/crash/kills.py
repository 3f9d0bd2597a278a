"""kill -9 of two nodes that write, and pull from each other.

Two homes of one owner, each served by ``roost up``, with TLS between them. Round by round somebody
writes to one of them, one of the two is killed at a random moment, that is while it writes or while
it pulls what the other writes, and is started again. The other one lives on.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from keys.ids import RecordId
from node.client import call
from tests.awaits.processes import WAIT_S, Child, fork
from tests.crash.pairs import AGENT, Pair, Watched, ended

ACKS_MAX = 4
DELAY_S = 0.03
PAUSE_S = 0.01
FORGETS = 0.2
CHECKED_EVERY = 25  # rounds; what was acknowledged, and each place, is compared after each

Place = tuple[bytes, bytes, int]  # device, incarnation, sequence number


@dataclass
class Kills:
    """Two nodes, what they acknowledged, and each place of a log that was ever seen."""

    pair: Pair
    source: random.Random
    kept: dict[str, str] = field(default_factory=dict)  # record: text, of what was acknowledged
    gone: dict[str, str] = field(default_factory=dict)
    going: dict[str, str] = field(default_factory=dict)  # begun, and not acknowledged
    seen: dict[Place, bytes] = field(default_factory=dict)
    held: dict[str, set[Place]] = field(default_factory=dict)
    acked: dict[str, list[str]] = field(default_factory=dict)
    number: int = 0
    pulling: int = 0  # rounds in which who pulled was killed

    def begin(self) -> None:
        """Two paired nodes that share an agent."""
        for node in (self.pair.a, self.pair.b):
            node.watched = False
        self.pair.begin()
        assert self.pair.pair(self.pair.a, self.pair.b, mine=True), self.pair.said
        assert self.pair.until_equal()
        self.acked = {"a": [], "b": []}

    def round(self) -> str:
        """Write, kill, start again, look; what was done."""
        self.number += 1
        a, b = self.pair.a, self.pair.b
        writes = self.source.choice((a, b))
        victim = writes if self.number % 2 else (b if writes is a else a)
        acks, delay_s = self.source.randrange(ACKS_MAX), self.source.random() * DELAY_S
        before = self.places(victim)
        writer = fork("writer", self.pair.root / "writer.log", lambda: self.write(writes))
        for _ in range(acks):
            self.acknowledge(writes, writer.line())
        if victim is not writes:
            self.until_pulled(victim, len(before))
        time.sleep(delay_s)  # chance: when in the next act it is killed
        victim.down(signal.SIGKILL)
        if victim is not writes:
            os.kill(writer.pid, signal.SIGTERM)
        self.read_to_the_end(writes, writer)
        self.pulling += victim is not writes
        assert victim.up(), victim.journal.read_text()[-2000:]
        self.check(victim)
        return f"{victim.name} after {acks} acks of {writes.name} and {delay_s * 1e3:.1f} ms"

    def until_pulled(self, victim: Watched, before: int) -> None:
        """Wait until it has taken something of what is written to the other."""
        end_s = time.monotonic() + WAIT_S
        while count(victim) <= before:
            assert time.monotonic() < end_s, f"{victim.name} pulls nothing"
            time.sleep(PAUSE_S)

    # -- the process that writes -----------------------------------------------------------------

    def write(self, node: Watched) -> int:
        """Write and forget until the node is gone; say what is begun and what is acknowledged."""
        source = random.Random(self.source.random())
        return asyncio.run(self._write(node, source))

    async def _write(self, node: Watched, source: random.Random) -> int:
        forgettable = [(r, self.kept[r]) for r in self.acked[node.name] if r in self.kept]
        number = 0
        while True:
            number += 1
            params: dict[str, Any] = {"agent": AGENT}
            if forgettable and source.random() < FORGETS:
                record, text = forgettable.pop(source.randrange(len(forgettable)))
                verb, params = "forget", params | {"record": record, "reason": "private"}
                say({"begun": record, "text": text})
            else:
                verb, text = "remember", f"note {self.number} {number} {os.urandom(6).hex()}"
                params["text"] = text
            try:
                result = await call(node.home, verb, params, WAIT_S)
            except RoostError as exc:
                say({"refused": exc.code, "verb": verb})
                return 0
            if result is None:
                return 0
            say(
                {"verb": verb, "text": text}
                | {"record": params.get("record", result.get("record"))}
            )

    def acknowledge(self, node: Watched, said: dict[str, Any] | None) -> None:
        """Take one line of the writer."""
        if said is None:
            return
        assert "refused" not in said, said
        if "begun" in said:
            self.going[said["begun"]] = self.kept.pop(said["begun"])
        elif said["verb"] == "forget":
            self.gone[said["record"]] = self.going.pop(said["record"])
        else:
            self.kept[said["record"]] = said["text"]
            self.acked[node.name].append(said["record"])

    def read_to_the_end(self, node: Watched, writer: Child) -> None:
        """Take what else the writer said."""
        while (said := writer.line()) is not None:
            self.acknowledge(node, said)
        writer.reap()

    # -- what must hold --------------------------------------------------------------------------

    def places(self, node: Watched) -> set[Place]:
        """The places of the logs that a node holds; none was ever signed twice."""
        found = set()
        for path in (node.home / "agents").glob("*.db"):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                rows = db.execute(
                    "SELECT device, incarnation, seq, hash FROM entry"
                    " JOIN log ON log.id = entry.log"
                )
                for device, incarnation, seq, entry in rows:
                    place = (device, incarnation, seq)
                    first = self.seen.setdefault(place, entry)
                    assert first == entry, f"{node.name}: a place signed twice at {seq}"
                    found.add(place)
        made = {(device, incarnation) for device, incarnation, _ in found}
        assert len(made) == len({device for device, _ in made}), "R38: a kill makes no incarnation"
        return found

    def check(self, node: Watched) -> None:
        """Nothing that it held or acknowledged is lost."""
        now = self.places(node)
        assert self.held.get(node.name, set()) <= now, f"{node.name} lost what it had held"
        self.held[node.name] = now
        states = self.states(node)
        for record in self.acked[node.name]:
            assert record in states, f"{node.name} lost an acknowledged write"
        if self.number % CHECKED_EVERY == 0:
            self.check_deep(node)

    def check_deep(self, node: Watched) -> None:
        """Audit, and what was acknowledged to be forgotten is nowhere here."""
        audit = node.do("audit.verify")
        assert audit["ok"], audit

    def states(self, node: Watched) -> dict[str, tuple[str, str]]:
        """State and text by record."""
        (path,) = (node.home / "agents").glob("*.db")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT record, state, text FROM record")
            return {str(RecordId(record)): (state, text) for record, state, text in rows}

    def check_end(self) -> None:
        """Both hold the same: all that was acknowledged, and nothing of what was forgotten."""
        assert self.pair.until_equal()
        for node in (self.pair.a, self.pair.b):
            self.check(node)
            self.check_deep(node)
            states = self.states(node)
            for record, text in self.kept.items():
                assert states[record][1] == text, record
            for record in self.gone:
                assert states[record][0] == "erased", record
            # Our own reading may have been in the way of cleaning the last of them.
            self.pair.is_well(node, settled=True)
            left = with_any(node.home, [t.rsplit(" ", 1)[1] for t in self.gone.values()])
            assert left == [], f"{node.name} holds forgotten words in {left}"
        assert self.places(self.pair.a) == self.places(self.pair.b)


def count(node: Watched) -> int:
    """How many entries a node holds."""
    (path,) = (node.home / "agents").glob("*.db")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM entry").fetchone()[0])


def with_any(home: Path, words: list[str]) -> list[str]:
    """The files of a home that hold one of the words."""
    found = []
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        data = path.read_bytes()
        found += [path.name for word in words if word.encode() in data]
    return found


def say(what: dict[str, Any]) -> None:
    """A line for who started us, at once."""
    os.write(1, json.dumps(what).encode() + b"\n")


def play(root: Path, rounds: int, seed: int) -> dict[str, int]:
    """Kill so often; what came of it. Raises where something did not hold."""
    kills = Kills(Pair(root), random.Random(seed))
    with ended(kills.pair):
        kills.begin()
        for _ in range(rounds):
            print(f"round {kills.number}: {kills.round()}", flush=True)
        kills.check_end()
    return {
        "rounds": kills.number,
        "pulling": kills.pulling,
        "acknowledged": sum(map(len, kills.acked.values())),
        "forgotten": len(kills.gone),
    }
