"""Valid time and record time: what is so at a time, and what was believed at a time."""

import pytest

from keys.errors import UsageError
from memory.notes import Note
from tests.support.memory_world import HOUR_US, Node, World

DAY_US = 24 * HOUR_US
YEAR_US = 365 * DAY_US


def test_M_E4_what_has_ended_since_is_found_at_its_time(world: World, a: Node) -> None:
    """Valid from January to June: found for March, asked in September; not for July, nor now."""
    start = world.clock_us
    record = a.remember("the owner lives in Lyon", valid_from=start, valid_to=start + 150 * DAY_US)
    always = a.remember("the owner lives in a house")
    world.clock_us += 250 * DAY_US
    for node in world.everywhere():
        assert node.search("owner") == [always]
        found = {
            days: sorted(node.search("owner", at_us=start + days * DAY_US))
            for days in (-1, 0, 60, 149, 150, 180)
        }
        both, one = sorted([record, always]), [always]
        assert found == {-1: one, 0: both, 60: both, 149: both, 150: one, 180: one}


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 4), (0, -1), (-4, -5)])
def test_M_E5_a_range_that_ends_before_it_starts_is_refused(a: Node, start: int, end: int) -> None:
    """At the write, so that nothing is stored that no question can find."""
    with pytest.raises(UsageError, match="valid-to"):
        a.remember("bees", valid_from=start, valid_to=end)
    assert a.remember("bees", valid_from=-5, valid_to=-4)


@pytest.mark.parametrize("field", ["valid_from", "valid_to", "expires"])
@pytest.mark.parametrize("time", [2**62, -(2**62), 2**63, 2**70])
def test_a_time_out_of_range_is_refused(a: Node, field: str, time: int) -> None:
    """A time that no row could hold is an error at the write and not a silent nothing."""
    with pytest.raises(UsageError):
        a.remember("bees", **{field: time})
    assert a.store.vector() == {}
    record = a.remember("bees", **{field: 2**62 - 1})
    assert getattr(a.seen(record), field) == 2**62 - 1


def test_what_expires_is_withheld_by_the_clock_alone(world: World, a: Node) -> None:
    """At the moment itself it is gone, on each node by its own clock; nothing is written."""
    expires = world.clock_us + DAY_US
    record, control = a.remember("bees", expires=expires), a.remember("bees too")
    nodes = world.everywhere()
    vectors = [node.store.vector_digest() for node in nodes]
    for node in nodes:
        assert sorted(node.search("bees")) == sorted([record, control])
    world.clock_us += DAY_US
    for node in nodes:
        assert node.search("bees") == [control]
        assert node.state(record) == "expired"
    assert [node.store.vector_digest() for node in nodes] == vectors
    assert len({node.digest for node in nodes}) == 1


def test_what_has_expired_may_be_written_again(world: World, a: Node) -> None:
    """The value of an expired record is a new record; its duplicate stands in for it."""
    old = a.remember("bees", expires=world.clock_us + DAY_US)
    world.clock_us += 2 * DAY_US
    new = a.remember("Bees")
    assert new != old
    for node in world.everywhere():
        assert node.search("bees") == [new]


def test_as_of_a_time_is_what_was_believed_then(world: World, a: Node) -> None:
    """Written, replaced, retired: each question gets the answer that was right when it was so."""
    times = [world.clock_us]

    def later() -> None:
        world.clock_us += DAY_US
        times.append(world.clock_us)
        world.clock_us += DAY_US

    first = a.remember("the meeting is on tuesday")
    later()
    second = a.revise(first, "the meeting is on friday")
    later()
    a.retire(second)
    later()
    for node in world.everywhere():
        believed = [node.search("meeting", as_of_us=time) for time in times]
        assert believed == [[], [first], [second], []]
        assert node.search("tuesday", as_of_us=times[1]) == [first]
        assert node.search("meeting") == []


def test_as_of_knows_nothing_that_waits_and_nothing_that_is_erased(world: World, a: Node) -> None:
    """A proposal is not believed before its approval; what is forgotten never was."""
    control = a.remember("the bees are fine")
    waiting = a.remember("the bees are from the web", provenance="web")
    erased = a.remember("the bees are a secret")
    world.clock_us += DAY_US
    before = world.clock_us
    a.approve(waiting)
    a.forget(erased)
    world.clock_us += DAY_US
    for node in world.everywhere():
        assert node.search("bees", as_of_us=before) == [control]
        assert sorted(node.search("bees", as_of_us=world.clock_us)) == sorted([control, waiting])
        assert node.search("secret", as_of_us=before) == []


def test_as_of_a_time_what_had_expired_is_not_shown(world: World, a: Node) -> None:
    """Expiry counts at the time that is asked about."""
    record = a.remember("bees", expires=world.clock_us + DAY_US)
    world.clock_us += DAY_US // 2
    before = world.clock_us
    world.clock_us += DAY_US
    after = world.clock_us
    world.clock_us += DAY_US
    for node in world.everywhere():
        assert node.search("bees", as_of_us=before) == [record]
        assert node.search("bees", as_of_us=after) == []


def test_both_times_at_once(world: World, a: Node) -> None:
    """What was believed in spring about winter: valid time inside record time."""
    start = world.clock_us
    old = a.remember("the owner lives in Lyon", valid_from=start - YEAR_US)
    world.clock_us += 30 * DAY_US
    middle = world.clock_us
    world.clock_us += 30 * DAY_US
    a.retire(old)
    new = a.remember("the owner lives in Metz", valid_from=start - 10 * DAY_US)
    world.clock_us += DAY_US
    for node in world.everywhere():
        assert node.search("lives", at_us=start, as_of_us=middle) == [old]
        assert node.search("lives", at_us=start) == [new]
        assert node.search("lives", at_us=start - 20 * DAY_US, as_of_us=middle) == [old]
        assert node.search("lives", at_us=start - 20 * DAY_US) == []
        assert node.search("lives", at_us=start - 2 * YEAR_US, as_of_us=middle) == []


def test_R14_record_time_is_never_before_what_an_entry_builds_on(
    world: World, a: Node, b: Node
) -> None:
    """A clock a day behind: the edit is not earlier than the record that it edits."""
    b.offset_us = -DAY_US
    record = a.remember("bees")
    world.settle()
    b.move(record, "year")
    for node in world.everywhere():
        times = [
            row[0]
            for row in node.rows(
                "SELECT time_ms FROM version JOIN record USING (n) WHERE record = ?"
                " ORDER BY version",
                record,
            )
        ]
        assert times == sorted(times)
        seen = node.seen(record)
        assert seen.created_ms <= seen.changed_ms
        assert seen.layer == "year"


def test_S_B3_one_stamp_from_the_future_moves_no_clock(world: World, a: Node, b: Node) -> None:
    """A device stamps 2040 once; what others write afterwards has their own time."""
    b.offset_us = 16 * YEAR_US
    ahead = b.remember("from 2040")
    b.offset_us = 0
    world.settle()
    mine = a.remember("from now")
    for node in world.everywhere():
        assert node.seen(mine).created_ms * 1000 <= world.clock_us
        assert node.seen(ahead).created_ms * 1000 > world.clock_us + 15 * YEAR_US
        assert sorted(node.search("from")) == sorted([ahead, mine])
        assert node.write(Note("from now")).record == mine


def test_S_B5_a_clock_that_jumps_back_hides_nothing(world: World, a: Node) -> None:
    """Twenty years back: seq rises, record time does not fall, both records are found."""
    first = a.remember("before the battery died")
    a.offset_us = -20 * YEAR_US
    second = a.remember("after it woke in the past")
    a.tag(first, "seen")
    a.offset_us = 0
    for node in world.everywhere():
        assert sorted(node.search("battery past")) == sorted([first, second])
        created = [node.seen(r).created_ms for r in (first, second)]
        assert created[0] <= created[1]
        seqs = [row[0] for row in node.rows("SELECT seq FROM entry ORDER BY seq")]
        assert seqs == list(range(1, len(seqs) + 1))
