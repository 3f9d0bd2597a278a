"""A record that was changed so often that no node would take another change says so (R6)."""

import pytest

from keys.limits import PAST_ENTRIES_MAX
from memory import authoring
from memory.authoring import CHANGES_MAX, TooManyChangesError
from memory.writing import NotLiveError
from tests.support.memory_checks import assert_sound
from tests.support.memory_world import Node, World

LAYERS = ("week", "day")
FEW = 6


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """As many changes as a test has patience for."""
    monkeypatch.setattr(authoring, "CHANGES_MAX", FEW)
    return FEW


def test_there_is_room_for_what_withholds() -> None:
    """Below what every node takes, so that a record can still be retired, by many devices."""
    assert PAST_ENTRIES_MAX // 2 < CHANGES_MAX <= PAST_ENTRIES_MAX - 256


def test_a_change_too_many_is_refused_and_writes_nothing(world: World, a: Node, few: int) -> None:
    """Every change before it counts; it is not written to be ignored by everybody."""
    record = a.remember("the clock in the hall")
    for i in range(few):
        a.move(record, LAYERS[i % 2])
    before = a.digest, a.store.vector()
    with pytest.raises(TooManyChangesError) as refused:
        a.move(record, LAYERS[few % 2])
    assert refused.value.details["record"] == str(record)
    assert "hall" not in str(refused.value)
    assert (a.digest, a.store.vector()) == before
    assert a.seen(record).layer == LAYERS[(few - 1) % 2]
    other = a.remember("the clock in the kitchen")
    a.move(other, "week")
    assert a.seen(other).layer == "week"
    for node in world.everywhere():
        assert_sound(node)


def test_what_was_changed_too_often_can_be_revised(world: World, a: Node, few: int) -> None:
    """Its successor takes changes again."""
    record = a.remember("the clock in the hall")
    for i in range(few):
        a.move(record, LAYERS[i % 2])
    new = a.revise(record, "the clock in the attic")
    a.move(new, "week")
    for node in world.everywhere():
        assert node.seen(record).state == "superseded"
        assert (node.seen(new).state, node.seen(new).layer) == ("new", "week")


def test_what_was_changed_too_often_can_be_retired(world: World, a: Node, few: int) -> None:
    """The reader is rid of it everywhere."""
    record = a.remember("the clock in the hall")
    for i in range(few):
        a.move(record, LAYERS[i % 2])
    assert a.retire(record) == "deprecated"
    for node in world.everywhere():
        assert node.seen(record).state == "deprecated"
    with pytest.raises(NotLiveError):
        a.move(record, "week")


def test_changes_that_were_made_apart_count_together(
    world: World, a: Node, b: Node, few: int
) -> None:
    """What counts is what lies before the change, on whatever branch."""
    record = a.remember("the clock in the hall")
    world.settle()
    for i in range(few // 2):
        a.move(record, LAYERS[i % 2])
        b.tag(record, f"topic{i}")
    world.settle()
    with pytest.raises(TooManyChangesError):
        b.tag(record, "one too many")
