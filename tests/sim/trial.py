"""One run of one seed: a world lives, comes to rest and is looked at."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from tests.sim import invariants
from tests.sim.themes import theme_of
from tests.sim.world import TRACE_LINES, World
from tests.support.memory_world import seeded_randomness

STEPS = 120
MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a seed. ``fingerprint`` is the same for every run of it."""

    seed: int
    counts: Counter[str]
    rounds: int
    fingerprint: str


class FoundError(AssertionError):
    """An invariant does not hold; the message tells the seed and what happened before."""


def live(seed: int, steps: int = STEPS) -> Report:
    """Run one world. Raises ``FoundError``."""
    with _folder() as root, seeded_randomness(seed) as source:
        world = World(root, random.Random(source.random()), theme_of(seed))
        try:
            world.run(steps)
            rounds = world.come_to_rest()
            invariants.check(world)
            return _report(seed, world, rounds)
        except Exception as exc:
            told = "\n".join(world.lines[-TRACE_LINES:])
            raise FoundError(f"{told}\nseed {seed}: {type(exc).__name__}: {exc}") from exc
        finally:
            world.close()


def _report(seed: int, world: World, rounds: int) -> Report:
    first = world.first
    said = "\n".join([*world.lines, first.digest, first.store.vector_digest().hex()])
    return Report(seed, world.counts, rounds, blake2b(said.encode(), digest_size=8).hexdigest())


@contextmanager
def _folder() -> Iterator[Path]:
    parent = MEMORY if MEMORY.is_dir() else None
    path = Path(tempfile.mkdtemp(prefix="roost-sim-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path)
