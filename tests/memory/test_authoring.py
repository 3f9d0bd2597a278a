"""Writing under one incarnation: when a log goes on, when a new one is opened, and what is lost."""

import pytest

from crdt.entry import Via
from crdt.payload import put
from keys.errors import RefusedError, RoostError, StoreError
from memory.notes import Note
from memory.writing import RetiredError
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import HOUR_US, Node, World


def incarnations(node: Node) -> set[bytes]:
    """The incarnations under which a node's device has written."""
    found = node.rows("SELECT incarnation FROM log WHERE device = ?", node.key.device)
    return {row[0] for row in found}


def test_S_A1_seq_comes_from_the_log_in_the_transaction_that_inserts(a: Node) -> None:
    """Two writers of one device over one file take turns and never share a place."""
    twin = Node(a.world, "a", a.key)
    twin.learn(a.world.keys)
    for i in range(6):
        (a, twin)[i % 2].remember(f"number {i}")
    twin.close()
    assert a.rows("SELECT count(*), count(DISTINCT seq) FROM entry") == [(7, 7)]
    assert len(incarnations(a)) == 1


def test_edits_of_one_record_in_a_commit_become_one_entry_with_all_of_them(a: Node) -> None:
    """The second edit takes nothing away from the first; of one key the later value stands."""
    record = a.remember("bees")
    with a.author.commit(Via.LOCAL, a.now_us) as commit:
        commit.edit(record, [put("field.layer", "week"), put("field.title", "hive")])
        commit.edit(record, [put("field.layer", "year"), put("field.weight", 2.0)])
    found = a.rows("SELECT layer, title, weight FROM record WHERE record = ?", record)
    assert found == [("year", "hive", 2.0)]
    assert a.rows("SELECT count(*) FROM entry WHERE record = ?", record) == [(2,)]


def test_a_doubt_opens_a_new_incarnation_with_the_next_write(a: Node) -> None:
    """R38: the first write after a doubt opens it, and the write after that goes on in it."""
    opened: list[bytes] = []
    a.author.on_opening = opened.append
    a.remember("before")
    a.author.renew = True
    a.remember("after")
    a.remember("later")
    assert incarnations(a) == set(opened)
    assert len(opened) == 2
    assert a.author.own_tip() == (opened[1], 3)


def test_a_doubt_outlives_a_write_that_failed(a: Node) -> None:
    """A refused or failed write takes its new incarnation with it; the doubt stays."""
    record = a.remember("bees")
    other = a.remember("wasps")
    a.retire(record)
    before = incarnations(a)
    a.author.renew = True
    with pytest.raises(RetiredError):
        a.revise(other, "BEES")
    assert (a.author.renew, incarnations(a)) == (True, before)
    with pytest.raises(ZeroDivisionError), a.author.commit(Via.LOCAL, a.now_us):
        raise ZeroDivisionError
    a.remember("moths")
    assert (a.author.renew, len(incarnations(a))) == (False, 2)


def test_a_write_that_changes_nothing_opens_nothing(a: Node) -> None:
    """R38: a thousand starts and empty writes make no incarnation."""
    record = a.remember("bees", tags=("home",))
    for _ in range(3):
        a.author.renew = True
        a.remember("bees", tags=("home",))
        a.untag(record, "work")
        a.move(record, "day")
    assert len(incarnations(a)) == 1


@pytest.mark.parametrize("later", [0, 1])
def test_R18_who_was_removed_comes_back_with_a_new_log(
    world: World, a: Node, b: Node, later: int
) -> None:
    """Also when the cut lies at the very end of the old log, where nothing seems to be past it."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    world.pull(guest, a)
    kept = guest.remember("bees")
    world.settle()
    beyond = [guest.remember(f"too late {i}") for i in range(later)]
    a.revoke(guest, "write")
    a.grant(guest, "write")
    world.pull(guest, a)
    fresh = guest.remember("wasps")
    guest.forget(kept)
    assert len(incarnations(guest)) == 2
    world.settle()
    for node in (a, b, guest):
        assert (node.state(kept), node.state(fresh)) == ("erased", "new")
        assert node.search("late") == []
        assert [r for r in beyond if node.rows("SELECT 1 FROM record WHERE record = ?", r)] == []
        assert_sound(node)
    assert_equal_nodes(a, b, guest)


def test_a_right_gained_later_is_used_by_a_new_log(world: World, a: Node, b: Node) -> None:
    """R11: ``current`` counts only from a log whose opening had seen the right to review."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    world.pull(guest, a)
    record = guest.remember("bees")
    with pytest.raises(RefusedError):
        guest.keep(record)
    a.grant(guest, "review")
    world.pull(guest, a)
    guest.keep(record)
    world.settle()
    assert {n.state(record) for n in (a, b, guest)} == {"current"}
    assert len(incarnations(guest)) == 2


def test_without_the_key_nothing_is_written_and_what_was_read_stays(world: World, a: Node) -> None:
    """R25: a store that waits for a key refuses to write and to rebuild; the key sets it right."""
    guest, other = world.stranger("guest"), world.stranger("other")
    a.grant(guest, "write")
    a.grant(other, "write")
    record = a.remember("bees")
    world.pull(guest, a)
    a.revoke(other, "read")
    later = a.remember("wasps")
    world.pull(guest, a, keys=False)
    assert guest.digest == "waiting-for-key"
    with pytest.raises(StoreError):
        guest.write(Note("moths"))
    with pytest.raises(StoreError):
        guest.store.rebuild()
    assert guest.search("bees") == [record]
    world.pull(guest, a)
    assert sorted(guest.search("bees wasps")) == sorted([record, later])
    assert_equal_nodes(a, guest)


@pytest.mark.parametrize("ahead", [True, False])
def test_R34_what_is_forgotten_goes_also_while_a_key_is_waited_for(
    world: World, a: Node, ahead: bool
) -> None:
    """Nothing is folded without the key, but a tombstone withholds at once and erases."""
    guest, other = world.stranger("guest"), world.stranger("other")
    a.grant(guest, "write")
    a.grant(other, "write")
    record, control = a.remember("a forgotten swordfish"), a.remember("a kept swordfish")
    derived = a.remember("a fish", derived_from=(record,))
    world.pull(guest, a)
    a.revoke(other, "read")
    a.forget(record)
    world.pull(guest, a, keys=False, commits=0 if ahead else None)
    assert guest.store.waiting_for_key
    states = {guest.state(r) for r in (record, derived)}
    assert states == {"withheld" if ahead else "erased"}
    assert guest.search("swordfish fish") == [control]
    assert guest.clean()
    assert bool(found_in(guest.home, "forgotten swordfish")) == ahead
    assert found_in(guest.home, "kept swordfish")
    world.pull(guest, a)
    assert_equal_nodes(a, guest)
    assert_sound(guest)
    assert guest.clean()
    assert found_in(guest.home, "forgotten swordfish") == []


def test_a_failed_write_leaves_nothing_behind(a: Node, b: Node, world: World) -> None:
    """An error inside a commit undoes rows, index, counters and the log together."""
    record = a.remember("bees")
    digest, vector = a.digest, a.store.vector()

    def fail() -> None:
        with a.author.commit(Via.LOCAL, a.now_us) as commit:
            commit.edit(record, [put("field.layer", "year")])
            a.rows("INSERT INTO reinforced VALUES (?, 1, 1)", record)
            raise RoostError("stop")

    with pytest.raises(RoostError):
        fail()
    assert (a.digest, a.store.vector()) == (digest, vector)
    assert a.rows("SELECT * FROM reinforced") == []
    a.remember("wasps")
    world.settle()
    assert a.digest == b.digest


def test_clocks_hours_apart_give_one_result(world: World, a: Node, b: Node) -> None:
    """No clock decides: what was seen before is older, whatever the stamps say."""
    b.offset_us = -5 * HOUR_US
    record = a.remember("bees", layer="day")
    world.settle()
    b.move(record, "year")
    for node in world.everywhere():
        assert node.seen(record).layer == "year"
