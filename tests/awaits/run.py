"""``python -m tests.awaits.run``: plays the workload, counts the await lines it reaches, kills.

First every scene is played once and nobody is killed. Then, per round, one await that a scene
reaches is drawn, the scene is played again, and whoever reaches that await for the n-th time is
killed there with SIGKILL. Who died is started again, and what was promised is looked at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.awaits import lines, netspace, processes
from tests.awaits.lines import PHASES, Line, Shared
from tests.awaits.scenes import SCENES, Scene
from tests.awaits.world import KilledError, World

ROUNDS_PER_WORLD = 25
TRIES = 3  # scenes
JOURNALS = 5
WORST = 40  # lines of a journal to show
POLLED = " digest "  # and nothing of what is asked again and again
MEMORY = Path("/dev/shm")  # where a sync costs nothing; the processes alone are killed


class FailedError(Exception):
    """Something did not hold after a kill."""


@dataclass
class Report:
    """What came of a run."""

    lines: int
    reached: int = 0
    unreached: list[str] = field(default_factory=list)
    multicast: bool = False
    kills: int = 0
    lines_killed_at: int = 0
    missed: int = 0
    failed: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Run:
    """One run: the table of lines, and per scene how often it reaches each point."""

    def __init__(self, seed: int) -> None:
        self.multicast = netspace.enter()
        self.table = lines.all_lines()
        self.at = {number: line for line, number in self.table.items()}
        self.shared = Shared(len(self.table))
        lines.install(self.shared, self.table)
        processes.load()
        self.random = random.Random(seed)
        self.reaches: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        self.report = Report(len(self.table), multicast=self.multicast)

    def cover(self) -> None:
        """Play every scene once, and nobody dies."""
        with self.world() as world:
            self._note(-1, 0.0, [0] * (PHASES * len(self.table)))
            for number, scene in enumerate(SCENES):
                before, started_s = self.shared.counts(), time.monotonic()
                self._play(world, scene)
                self._note(number, time.monotonic() - started_s, before)
            world.check()
            self.report.counts += world.counts
        counts = self.shared.counts()
        met = {line for line, n in self.table.items() if any(counts[PHASES * n : PHASES * (n + 1)])}
        self.report.reached = len(met)
        self.report.unreached = [str(line) for line in sorted(set(self.table) - met)]

    def kill(self, rounds: int | None, where: str = "") -> None:
        """Kill at so many points, drawn without repetition (None: at all of them).

        Every line has its turn before any has a second one.
        """
        points = self._drawn(where)[:rounds]
        killed: set[Line] = set()
        while points:
            try:
                with self.world() as world:
                    for _ in range(min(ROUNDS_PER_WORLD, len(points))):
                        point = points.pop(0)
                        if self._round(world, point):
                            killed.add(self.at[point // PHASES])
                    self.report.counts += world.counts
            except FailedError:
                continue  # told already; the next ones want a world of their own
        self.report.lines_killed_at = len(killed)

    def _drawn(self, where: str) -> list[int]:
        points = sorted(p for p in self.reaches if where in str(self.at[p // PHASES]))
        self.random.shuffle(points)
        turns: Counter[int] = Counter()
        drawn: list[tuple[int, int, int]] = []
        for place, point in enumerate(points):
            drawn.append((turns[point // PHASES], place, point))
            turns[point // PHASES] += 1
        return [point for _, _, point in sorted(drawn)]

    @contextmanager
    def world(self) -> Iterator[World]:
        """Two nodes in a folder that goes."""
        parent = MEMORY if MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="roost-awaits-", dir=parent) as folder:
            self.shared.forget_dead()
            world = World(Path(folder), self.shared, multicast=self.multicast)
            try:
                world.begin()
                yield world
            except BaseException:
                logs = Path(folder).glob("*.log")
                for journal in sorted(logs, key=lambda p: p.stat().st_mtime)[-JOURNALS:]:
                    told = [x for x in journal.read_text().splitlines() if POLLED not in x]
                    print(f"--- {journal.name}", *told[-WORST:], sep="\n", file=sys.stderr)
                raise
            finally:
                self.shared.disarm()
                world.close()

    def _play(self, world: World, scene: Scene) -> None:
        try:
            scene(world)
        finally:
            world.heal()

    def _note(self, scene: int, seconds: float, before: list[int]) -> None:
        for point, (old, new) in enumerate(zip(before, self.shared.counts(), strict=True)):
            if scene >= 0 and new > old:
                self.reaches[point].append((seconds, scene, new - old))

    def _round(self, world: World, point: int) -> bool:
        """Die at a point, in the quickest scene that comes there; whether somebody did.

        What the loops of a node do is not the same each time: where nobody came, other scenes are
        tried.
        """
        for _, number, times in sorted(self.reaches[point])[:TRIES]:
            hit = self.random.randint(1, times)
            name = f"{'after' if point % PHASES else 'before'} {self.at[point // PHASES]}"
            name += f", time {hit} of {times}, in {SCENES[number].__name__}"
            try:
                died = self._die(world, SCENES[number], point, hit)
            except Exception as exc:
                self.report.failed.append(f"{name}: {type(exc).__name__}: {exc}")
                print(f"FAILED {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
                raise FailedError(name) from exc
            print(f"{'killed' if died else 'missed'} {name}", flush=True)
            if died:
                self.report.kills += 1
                return True
        self.report.missed += 1
        return False

    def _die(self, world: World, scene: Scene, point: int, hit: int) -> bool:
        self.shared.arm(point, hit)
        with suppress(KilledError):
            scene(world)
        self.shared.disarm()
        died = bool(self.shared.dead)
        world.heal()
        world.check()
        return died


def main() -> int:
    """1 when something that must hold did not."""
    parser = argparse.ArgumentParser(prog="tests.awaits.run")
    parser.add_argument("--kills", type=int, help="how many points to die at (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="which points, and at which time")
    parser.add_argument("--at", default="", help="only at lines whose file:number has this")
    options = parser.parse_args()
    run = Run(options.seed)
    run.cover()
    run.kill(options.kills, options.at)
    report = run.report
    print(f"await lines reached: {report.reached} of {report.lines}; not reached:")
    for name in report.unreached:
        print(f"  {name}")
    print(json.dumps(report.__dict__))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
