"""A node dies at each call that writes or syncs while two pair.

Two homes, each served by a node; ``b`` joins ``a`` and gets its agent. The calls of both nodes are
counted from the code to equal digests; then the same is played again, and one node dies at one of
its calls. It is started again, and the two must be paired, or pair, and then hold the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from node.client import call
from tests.awaits.processes import PASSPHRASE, WAIT_S, Node
from tests.crash.watched import Watch

AGENT = "muse"
KINDS = ("mine", "peer")
PAUSE_S = 0.05
WORST = 40  # lines of a journal to show
KEYS = {"device.key", "owner.vault"}
BEFORE = "owner.vault.before"


@dataclass
class Watched(Node):
    """A node whose calls are counted."""

    watch: Watch | None = None
    joins: Any = None
    watched: bool = True

    def up(self, *options: str) -> bool:
        """Serve the home, watched."""
        if not self.watched:
            return super().up(*options)
        self.watch = Watch(self.home)
        self.joins = self.watch.begin()
        try:
            return super().up(*options)
        finally:
            self.watch.handed()

    def serve(self, words: Sequence[str]) -> int:
        """Ask for the supervisor first."""
        if self.watched:
            self.joins()
        return super().serve(words)

    def down(self, number: int = signal.SIGTERM) -> int:
        """Stop serving."""
        code = super().down(number)
        if self.watch is not None:
            self.watch.end()
        return code

    @property
    def watching(self) -> Watch:
        """Of the process that serves now."""
        assert self.watch is not None
        return self.watch

    def do(self, verb: str, **params: Any) -> dict[str, Any]:
        """What the node that serves the home answers; raises ``RoostError`` of its own."""
        found = asyncio.run(call(self.home, verb, params, WAIT_S))
        assert found is not None, f"{self.name} does not answer {verb}"
        return found


@dataclass
class Pair:
    """The two homes of one round."""

    root: Path
    a: Watched = field(init=False)
    b: Watched = field(init=False)
    notes: int = 0
    said: str = ""

    def __post_init__(self) -> None:
        self.a, self.b = Watched(self.root, "a"), Watched(self.root, "b")

    def begin(self) -> None:
        """Two homes; ``a`` has an agent with memories."""
        for node in (self.a, self.b):
            assert node.run("init", "--name", node.name).code == 0
            assert node.up()
        self.a.do("agent.create", name=AGENT, passphrase=PASSPHRASE)
        self.write(self.a)

    def write(self, node: Watched) -> str:
        """A memory of its own."""
        self.notes += 1
        return str(node.do("remember", agent=AGENT, text=f"note {self.notes}")["record"])

    def is_doomed(self) -> bool:
        """Whether one was killed, so that who waits for it waits in vain."""
        return any(n.watched and n.watching.dead for n in (self.a, self.b))

    def pair(self, opener: Watched, joiner: Watched, *, mine: bool) -> bool:
        """Whether both sides say that they paired."""
        flags = ["--mine"] if mine else []
        waiting = opener.begin("pair", "open", *flags, *(["--yes"] if mine else []))
        first = waiting.line()
        if first is None or "code" not in first:
            opener.finish(waiting)
            return False
        code = ["--address", opener.listen, "--code", str(first["code"])]
        joined = joiner.run("pair", "join", *code, *flags, doomed=self.is_doomed)
        opened = opener.finish(waiting, self.is_doomed)
        self.said = f"{opener.name}: {opened.error}, {joiner.name}: {joined.error}"
        return joined.code == 0 and opened.code == 0

    def knows(self, node: Watched, other: Watched) -> bool:
        """Whether a node has the other as a peer, and then where it is."""
        found = [p for p in node.do("peers")["peers"] if p["device"] == other.device]
        assert all(p["addresses"] for p in found), found
        return bool(found)

    def until_equal(self) -> bool:
        """Wait for equal digests; False when one was killed before."""
        end_s = time.monotonic() + WAIT_S
        while not self.is_doomed():
            with suppress(RoostError, AssertionError):  # no such agent yet, or just killed
                said = {node.do("digest", agent=AGENT)["digest"] for node in (self.a, self.b)}
                if len(said) == 1:
                    return True
            assert time.monotonic() < end_s, "the digests stay different"
            time.sleep(PAUSE_S)
        return False

    def until_connected(self) -> bool:
        """Wait until both are connected; False when one was killed before."""
        end_s = time.monotonic() + WAIT_S
        while not self.is_doomed():
            with suppress(RoostError, AssertionError):  # just killed
                said = [p["state"] for n in (self.a, self.b) for p in n.do("status")["peers"]]
                if said == ["connected"] * 2:
                    return True
            assert time.monotonic() < end_s, "the two do not connect"
            time.sleep(PAUSE_S)
        return False

    def owner(self, node: Watched) -> tuple[str, str]:
        """Whose home it is: by its database, and by the key that its vault holds."""
        from keys.keyfile import read_secret
        from keys.limits import VAULT_BYTES_MAX
        from keys.vault import open_owner
        from memory.nodedb import open_node_db

        key = open_owner(
            read_secret(node.home / "keys" / "owner.vault", VAULT_BYTES_MAX), PASSPHRASE
        )
        with open_node_db(node.home / "node.db") as db:
            return str(db.setting("owner")), str(key.owner)

    def is_well(self, node: Watched, *, settled: bool) -> None:
        """Doctor finds nothing; until it is ``settled`` an agent may wait for its key."""
        said = node.do("doctor")
        bad = [c for c in said["checks"] if not c["ok"]]
        waits = [c for c in bad if c["name"].startswith("values key")]
        assert bad == ([] if settled else waits), f"{node.name}: {bad}"
        assert said["ok"] is (not bad)

    def check_whole(self, *, mine: bool, settled: bool = True) -> None:
        """Nothing is half: doctor and audit are content, the keys are those of the database."""
        owners = {}
        for node in (self.a, self.b):
            self.is_well(node, settled=settled)
            audit = node.do("audit.verify")
            assert audit["ok"], audit
            said, held = self.owner(node)
            assert said == held, f"{node.name} is of {said}, and its vault of {held}"
            owners[node.name] = said
            found = {f for f in os.listdir(node.home / "keys") if not f.endswith(".values")}
            kept = {BEFORE} if node is self.b and owners["b"] == owners["a"] else set()
            assert found == KEYS | kept, f"{node.name} holds {found}"
        assert mine or owners["a"] != owners["b"]
        if self.knows(self.b, self.a):
            assert self.knows(self.a, self.b), "the opener stores first"
            assert (owners["a"] == owners["b"]) is mine

    def pair_again(self, *, mine: bool, turned: bool) -> None:
        """From either side, as it was meant; the joiner of before opens when ``turned``."""
        one, two = (self.b, self.a) if turned else (self.a, self.b)
        same = self.owner(self.a)[0] == self.owner(self.b)[0]
        # A home with an agent does not move in: with a stranger it pairs as a peer.
        as_mine = mine and (same or not turned)
        assert self.pair(one, two, mine=as_mine), self.said
        if mine and not as_mine:
            assert self.knows(self.a, self.b)
            assert self.knows(self.b, self.a)
            assert self.pair(self.a, self.b, mine=True), f"as was meant: {self.said}"

    def check_in_use(self, *, mine: bool) -> None:
        """The pairing works: what one writes the other gets, both ways."""
        assert self.knows(self.a, self.b)
        assert self.knows(self.b, self.a)
        if not mine:
            return
        for node in (self.a, self.b):
            assert self.until_equal()
            self.write(node)
        assert self.until_equal()

    def end(self) -> None:
        """End both."""
        for node in (self.a, self.b):
            node.down(signal.SIGKILL)
            node.end_background()


class Run:
    """Rounds of one run, and what came of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.number = self.again = 0

    def play(self, *, mine: bool, victim: str = "", at: int = 0, turned: bool = False) -> Any:
        """One pairing; the calls of both when nobody dies, else where the victim died."""
        self.number += 1
        root = self.root / str(self.number)
        root.mkdir()
        pair = Pair(root)
        with ended(pair):
            pair.begin()
            for node in (pair.a, pair.b):
                node.watching.arm(at if node.name == victim else 0)
            done = pair.pair(pair.a, pair.b, mine=mine)
            if done:
                done = pair.until_equal() if mine else pair.until_connected()
            if not victim:
                assert done
                calls = {n.name: n.watching.disarm() for n in (pair.a, pair.b)}
                pair.check_whole(mine=mine)
                pair.check_in_use(mine=mine)
                return calls
            return self._after(pair, mine=mine, turned=turned)

    def _after(self, pair: Pair, *, mine: bool, turned: bool) -> str:
        died = ""
        for node in (pair.a, pair.b):
            node.watching.disarm()
            if dead := node.watching.dead:
                died = dead
                node.down()
                assert node.up(), node.journal.read_text()[-2000:]
        pair.check_whole(mine=mine, settled=False)
        if not (pair.knows(pair.a, pair.b) and pair.knows(pair.b, pair.a)):
            self.again += 1
            pair.pair_again(mine=mine, turned=turned)
        pair.check_in_use(mine=mine)
        pair.check_whole(mine=mine)
        return died


@contextmanager
def ended(pair: Pair) -> Iterator[None]:
    """Ends both in any case, and shows their journals when something did not hold."""
    try:
        yield
    except BaseException:
        for log in sorted(pair.root.glob("*.log")):
            print(f"--- {log.name}", *log.read_text().splitlines()[-WORST:], sep="\n")
        raise
    finally:
        pair.end()


def play(root: Path, stride: int, only: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Count, then die at every how many-th call; what came of it."""
    run = Run(root)
    total, points = 0, []
    for kind in kinds:
        started_s = time.monotonic()
        calls = run.play(mine=kind == "mine")
        print(f"{kind}: {calls} calls, {time.monotonic() - started_s:.2f} s", flush=True)
        total += sum(calls.values())
        points += [(kind, who, n) for who, most in calls.items() for n in range(1, most + 1)]
    chosen = points[len(points) % stride :: stride]
    if only:
        chosen = [p for p in points if ",".join(map(str, p)) == only]
    died, failed = 0, []
    for kind, who, at in chosen:
        name = f"{kind},{who},{at}"
        try:
            where = run.play(mine=kind == "mine", victim=who, at=at, turned=at % 2 == 1)
        except Exception as exc:  # noqa: BLE001 - the others are tried all the same
            failed.append(f"{name}: {type(exc).__name__}: {exc}")
            print(f"FAILED {failed[-1]}", flush=True)
            continue
        died += bool(where)
        print(f"{name}: {where or 'missed'}", flush=True)
    report = {"calls": total, "tried": len(chosen), "died": died, "again": run.again}
    return report | {"failed": failed}
