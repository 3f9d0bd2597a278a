"""Lifts: what was retired, replaced or forgotten may return, because a person says so."""

import pytest

from memory.writing import RetiredError, TombstonedError
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World


def test_a_retired_record_is_reinstated_everywhere(world: World, a: Node) -> None:
    """The lift names the facts that withhold; the record reads as before."""
    record, control = a.remember("bees"), a.remember("wasps")
    a.retire(record)
    a.retire(control)
    world.settle()
    assert a.lift(record) == 1
    for node in world.everywhere():
        assert node.search("bees wasps") == [record]
        assert [node.state(r) for r in (record, control)] == ["new", "deprecated"]
        assert_sound(node)


def test_a_lift_ends_the_facts_it_names_and_no_other(world: World, a: Node, b: Node) -> None:
    """A retirement that the lift had not seen stays in force (R11)."""
    record = a.remember("bees")
    world.settle()
    a.retire(record)
    b.retire(record)
    a.lift(record)
    assert (a.state(record), b.state(record)) == ("new", "deprecated")
    for node in world.everywhere():
        assert node.state(record) == "deprecated"
        assert len(node.seen(record).detail["facts"]) == 1
    assert a.lift(record) == 1
    world.settle()
    for node in world.nodes.values():
        assert node.state(record) == "new"
        assert_sound(node)


def test_an_old_wording_comes_back_beside_the_new_one(world: World, a: Node) -> None:
    """Lifting a replacement makes both records live; the value is no longer refused."""
    old = a.remember("bees")
    new = a.revise(old, "wasps")
    assert a.lift(old) == 1
    for node in world.everywhere():
        assert sorted(node.search("bees wasps")) == sorted([old, new])
        assert node.remember("BEES") == old


def test_versions_follow_a_successor_that_a_lift_ended(world: World, a: Node, b: Node) -> None:
    """Whether it existed still decides what was believed before the lift, on every device."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    old = a.remember("bees")
    world.pull(guest, a)
    new = guest.revise(old, "wasps")
    world.pull(a, guest)
    a.lift(old)
    world.settle()
    guest.forget(new)
    world.pull(b, guest)
    since = a.world.clock_us
    a.remember("moths")
    a.revoke(guest, "write", since_us=since, keep=False)
    world.settle("a", "b")
    for node in (a, b):
        assert node.state(new) == "new"
        assert_sound(node)
    assert_equal_nodes(a, b)


@pytest.mark.parametrize("spelling", ["bees", " BEES. "])
def test_a_forgotten_value_returns_as_a_new_record(world: World, a: Node, spelling: str) -> None:
    """R35: the erased id stays dead; after the lift the value may be written again anywhere."""
    record, control = a.remember("bees"), a.remember("wasps")
    a.forget(record)
    a.forget(control)
    world.settle()
    assert a.lift(record) == 1
    for i, node in enumerate(world.everywhere()):
        fresh = node.remember(spelling)
        assert fresh != record
        assert (node.state(record), node.state(fresh)) == ("erased", "new"), i
        with pytest.raises(TombstonedError):
            node.remember("wasps")
    world.settle()
    for node in world.nodes.values():
        assert len(node.search("bees")) == 1
        assert_sound(node)


def test_a_returning_record_shows_when_the_refusal_ends(world: World, a: Node, b: Node) -> None:
    """R27: what was written elsewhere before the retirement was known is withheld, not lost."""
    record = a.remember("bees")
    a.retire(record)
    other = b.remember("Bees")
    for node in world.everywhere():
        assert node.search("bees") == []
        assert node.state(other) == "returning"
        with pytest.raises(RetiredError):
            node.remember("bees")
    a.lift(other)
    world.settle()
    for node in world.nodes.values():
        assert node.search("bees") == [min(record, other)]
        assert_sound(node)
