"""Random worlds: real stores agree in every order of arrival, and with the rules written out."""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache

import pytest

from crdt.entry import decode_header
from keys.statements import parse_stored
from tests.reference.compare import differences
from tests.reference.coverage import WANTED, covered
from tests.reference.ledger import Ledger
from tests.reference.nodes import node
from tests.reference.shrinking import shrink
from tests.reference.worlds import World

CHUNKS = 4
WORLDS = 450  # of each chunk
NODES = 2
TRIES = 6  # orders in which a smaller world is tried

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def decode_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes of a world share what they decode: it is most of the time, and pure."""
    monkeypatch.setattr("memory.store.parse_stored", lru_cache(256)(parse_stored))
    header = lru_cache(256)(decode_header)
    monkeypatch.setattr("memory.folding.decode_header", header)
    monkeypatch.setattr("memory.logs.decode_header", header)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_worlds_are_believed_alike_by_all_nodes_and_by_the_rules(chunk: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(chunk * WORLDS, (chunk + 1) * WORLDS):
        world = World(seed)
        found, fold, believed = differences(world, [node(world, seed + i) for i in range(NODES)])
        if found:
            pytest.fail(f"seed {seed}\n" + _told(world))
        counts += covered(world, fold, believed)
    sys.stdout.write("".join(f"{count:7} {name}\n" for name, count in sorted(counts.items())))
    assert [name for name in WANTED if not counts[name]] == []


def _found(ledger: Ledger) -> list[str]:
    return differences(ledger, [node(ledger, order) for order in range(TRIES)])[0]


def _told(world: World) -> str:
    """The least that still fails, and how."""
    if not _found(world):
        return "\n".join([*world.story, "only in these orders"])
    small = shrink(world, lambda ledger: bool(_found(ledger)))
    return "\n".join([*small.story, *_found(small)])
