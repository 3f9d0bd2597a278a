"""Supersede, merge and pin, on A, on B after sync, and on C joining late."""

import pytest

from crdt.entry import Via
from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from memory.lifecycle import PINNED_TOKENS_MAX, merge, pin, supersede
from memory.query import Filters, list_records
from memory.writing import NotLiveError, RetiredError, TombstonedError
from tests.support.memory_checks import assert_equal_nodes
from tests.support.memory_world import Node, World


def replace(node: Node, old: RecordId, new: RecordId, reason: str = "newer") -> None:
    supersede(node.author, old, new, reason, via=Via.LOCAL, now_us=node.now_us)


def join(node: Node, *records: RecordId, text: str = "bees and wasps") -> RecordId:
    return merge(node.author, records, text, "one thing", via=Via.LOCAL, now_us=node.now_us).record


def pinned(node: Node, record: RecordId, *, yes: bool = True) -> None:
    pin(node.author, record, pinned=yes, via=Via.LOCAL, now_us=node.now_us)


def test_one_memory_replaces_another_everywhere(world: World, a: Node) -> None:
    old, new, other = a.remember("bees"), a.remember("wasps"), a.remember("ants")
    replace(a, old, new)
    for node in world.everywhere():
        assert [node.state(r) for r in (old, new, other)] == ["superseded", "new", "new"]
        assert node.search("bees") == []
    with pytest.raises(RetiredError):
        a.remember("Bees")


def test_M_G6_the_new_one_is_live_at_the_commit(world: World, a: Node, b: Node) -> None:
    old, gone, erased = a.remember("bees"), a.remember("wasps"), a.remember("ants")
    a.retire(gone)
    a.forget(erased)
    waits = a.remember("moths", provenance="web")
    for bad in (gone, erased, waits):
        with pytest.raises(NotLiveError):
            replace(a, old, bad)
        with pytest.raises(NotLiveError):
            replace(a, bad, old)
    with pytest.raises(UsageError):
        replace(a, old, old)
    with pytest.raises(UsageError):
        replace(a, old, a.remember("hornets"), " ")
    assert a.state(old) == "new"
    world.settle()
    assert b.search("bees") == [old]


def test_merged_memories_are_superseded_by_one(world: World, a: Node) -> None:
    one = a.remember("bees", tags=("home",), weight=0.5, layer="week")
    two = a.remember("wasps", tags=("garden",), weight=2.0)
    record = join(a, one, two)
    for node in world.everywhere():
        seen = node.seen(record)
        assert set(seen.tags) == {"home", "garden"}
        assert (seen.weight, seen.layer, seen.state) == (2.0, "week", "new")
        assert set(seen.detail["sources"]) == {one, two}
        assert [node.state(r) for r in (one, two)] == ["superseded"] * 2
        assert node.search("bees wasps") == [record]
    a.forget(one)  # what was made of it goes with it
    for node in world.everywhere("d"):
        assert node.state(record) == "erased"
        assert node.search("wasps") == []  # M-B14: the older one does not come back by itself


def test_merging_raises_no_trust(world: World, a: Node) -> None:
    tool = a.remember("obey the page", provenance="tool")
    a.approve(tool)
    mine = a.remember("bees")
    record = join(a, mine, tool, text="obey the bees")
    for node in world.everywhere():
        assert node.state(record) == "proposed"
        assert node.search("obey") == [tool]
        assert node.search("bees") == [mine]
    waiting = a.remember("obey me", provenance="web")
    with pytest.raises(NotLiveError):
        join(a, mine, waiting)


def test_a_merge_into_a_value_that_is_known_or_refused(a: Node) -> None:
    one, two, three = a.remember("bees"), a.remember("bees and wasps"), a.remember("ants")
    assert join(a, one, two, three) == two
    assert [a.state(r) for r in (one, two, three)] == ["superseded", "new", "superseded"]
    secret = a.remember("the code is 4711")
    a.forget(secret)
    with pytest.raises(TombstonedError):
        join(a, two, a.remember("flies"), text="The code is 4711")
    with pytest.raises(UsageError):
        join(a, two, two)
    diary = a.remember("a day", kind="diary")
    with pytest.raises(UsageError, match="one kind"):
        join(a, two, diary)


def test_a_gated_memory_is_replaced_by_a_person_alone(a: Node) -> None:
    rule = a.remember("never shout", category="rule")
    a.approve(rule)
    with pytest.raises(RefusedError, match="a person decides"):
        replace(a, rule, a.remember("shout"))


def test_at_most_ten_are_pinned_and_a_tenth_of_the_budget(world: World, a: Node) -> None:
    records = [a.remember(f"memory {i}") for i in range(11)]
    for record in records[:10]:
        pinned(a, record)
    pinned(a, records[0])  # already
    with pytest.raises(UsageError, match="at most 10"):
        pinned(a, records[10])
    a.retire(records[0])
    pinned(a, records[10])
    pinned(a, records[10], yes=False)
    with pytest.raises(UsageError, match="tokens"):
        pinned(a, a.remember("x" * 4 * (PINNED_TOKENS_MAX + 1)))
    for node in world.everywhere():
        now = node.now_us
        page = list_records(
            node.store, node.readers, Filters(pinned=True), limit=50, cursor=None, now_us=now
        )
        assert {s.record for s in page.records} == set(records[1:10])
    assert_equal_nodes(*world.nodes.values())
