"""Queries of words that most records hold: the newest are looked through, not all of them."""

import pytest

from crdt.entry import Via
from memory.notes import Note
from memory.query import Filters, search
from memory.writing import remember_batch
from tests.support.memory_world import Node, World

COMMON = 3
PART = 4
LOOKED_THROUGH = 8
BATCH = 50


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that a test has patience for."""
    monkeypatch.setattr("memory.ranking.COMMON_MATCHES", COMMON)
    monkeypatch.setattr("memory.newest.PART", PART)
    monkeypatch.setattr("memory.newest.LOOKED_THROUGH", LOOKED_THROUGH)


def test_the_newest_that_hold_most_of_the_words_come_first(a: Node) -> None:
    """Among those that hold equally many the newer one."""
    pond = [a.remember(f"a heron at the pond, seen {i}") for i in range(4)]
    boat = [a.remember(f"a boat on the pond, seen {i}") for i in range(4)]
    assert a.search("heron boat pond", limit=3) == boat[:0:-1]
    assert a.search("heron pond", limit=2) == pond[:1:-1]


def test_old_records_are_found_where_the_newest_do_not_hold_the_word(a: Node) -> None:
    """However many came after them: what is there is found."""
    herons = {a.remember(f"a heron, seen {i}") for i in range(COMMON + 1)}
    for i in range(2 * LOOKED_THROUGH):
        a.remember(f"a boat, seen {i}")
    assert set(a.search("heron", limit=20)) == herons
    assert len(a.search("heron", limit=2)) == 2


def test_what_rarer_words_find_comes_before_them(a: Node) -> None:
    """And none is returned twice."""
    rare = a.remember("the otter at the pond")
    ponds = [a.remember(f"the pond, seen {i}") for i in range(6)]
    assert a.search("otter pond", limit=4) == [rare, *ponds[:2:-1]]
    assert sorted(a.search("otter pond", limit=20)) == sorted([rare, *ponds])


def test_nothing_withheld_or_filtered_is_among_them(a: Node) -> None:
    """It takes no place either: as many are returned as there are places."""
    ponds = [a.remember(f"the pond, seen {i}", tags=(f"t{i % 2}",)) for i in range(8)]
    a.retire(ponds[7])
    assert a.search("pond seen", limit=3) == [ponds[6], ponds[5], ponds[4]]
    tagged = search(
        a.store, a.readers, "pond seen", Filters(tags=("t0",)), limit=3, now_us=a.now_us
    )
    assert [seen.record for seen in tagged] == [ponds[6], ponds[4], ponds[2]]


def test_every_node_finds_the_same(world: World, a: Node) -> None:
    """The order of arrival is another one at each."""
    b = world.join("b")
    for i in range(LOOKED_THROUGH):
        a.remember(f"the pond and the heron, a {i}")
        b.remember(f"the pond and the heron, b {i}")
    assert a.search("heron pond") != b.search("heron pond")
    world.settle("a", "b")
    for query in ("pond", "heron pond", "pond boat heron"):
        for limit in (1, 5, 30):
            assert a.search(query, limit=limit) == b.search(query, limit=limit) != []


def steps(node: Node, query: str) -> int:
    """How much SQLite does for a query, in tens of its instructions."""
    count: list[None] = []
    node.store.connection.set_progress_handler(lambda: count.append(None), 10)
    assert node.search(query, limit=4)
    node.store.connection.set_progress_handler(None, 0)
    return len(count)


def fill(node: Node, first: int, count: int) -> None:
    for start in range(first, first + count, BATCH):
        notes = [Note(f"the pond and the heron, seen {i}") for i in range(start, start + BATCH)]
        remember_batch(node.author, notes, Via.LOCAL, node.now_us)


def test_the_work_does_not_grow_with_the_records(a: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the records; the control weighs every one of them."""

    def both() -> tuple[int, int]:
        newest = steps(a, "heron pond")
        with monkeypatch.context() as patch:
            patch.setattr("memory.newest.LOOKED_THROUGH", 0)
            return newest, steps(a, "heron pond")

    monkeypatch.setattr("memory.newest.GAP", 1)  # no batch is so small that it is walked whole
    fill(a, 0, 100)
    newest, control = both()
    fill(a, 100, 300)
    newest_then, control_then = both()
    assert control_then > 3 * control
    assert newest_then < 2 * newest
