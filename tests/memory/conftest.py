"""Fixtures of the tests of ``memory/``: an agent on two devices of one owner."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.memory_world import Node, World, seeded_randomness

SEED = 20_240_311


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An agent on A and B, empty; a failure shows the seed."""
    sys.stdout.write(f"seed {SEED}\n")
    with seeded_randomness(SEED):
        world = World(tmp_path, "a", "b")
        yield world
        world.close()


@pytest.fixture
def a(world: World) -> Node:
    return world.nodes["a"]


@pytest.fixture
def b(world: World) -> Node:
    return world.nodes["b"]
