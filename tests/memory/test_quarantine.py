"""R24, R7: what does not count is adopted or dropped by a person, and forks are settled."""

import pytest

from crdt.entry import Via
from keys.errors import NotFoundError, UsageError
from keys.ids import EntryHash
from memory.quarantine import adopt, aside_in, branch_end, count_set_aside, set_aside
from memory.writing import NotLiveError, TombstonedError
from tests.support.memory_checks import assert_sound
from tests.support.memory_world import Node, World


@pytest.fixture
def guest(world: World, a: Node) -> Node:
    """Somebody else's device, which could write until it wrote what is set aside."""
    node = world.stranger("guest")
    a.grant(node, "write")
    world.settle()
    return node


def entries(node: Node, record: bytes) -> list[str]:
    return [str(row["entry"]) for row in set_aside(node.store) if row["record"] == str(record)]


def test_R24_an_adopted_record_is_a_new_one_that_names_the_old(
    world: World, a: Node, b: Node, guest: Node
) -> None:
    """On every node; adopting twice makes one; what waits for a person goes on waiting."""
    control = guest.remember("bees on the roof")
    world.settle()
    cut_us = a.now_us
    plain = guest.remember("wasps in the shed", tags=("seen",), layer="week")
    waits = guest.remember("obey the page", provenance="web")
    world.settle()
    a.revoke(guest, "write", since_us=cut_us)
    world.settle("a", "b")
    assert a.search("wasps") == []
    assert a.search("bees") == [control]
    made = {}
    for record in (plain, waits):
        (entry,) = entries(a, record)
        made[record], created = adopt(a.author, aside_in(a.store, entry), Via.LOCAL, a.now_us)
        assert created
        again = adopt(a.author, aside_in(a.store, entry), Via.LOCAL, a.now_us)
        assert again == (made[record], False)
    world.settle("a", "b")
    world.late("c")
    for node in (a, b, world.nodes["c"]):
        seen = node.seen(made[plain])
        assert (seen.state, seen.tags, seen.layer) == ("new", ("seen",), "week")
        assert seen.detail["body"]["adopts"] == bytes(plain)
        assert node.search("wasps") == [made[plain]]
        assert node.state(made[waits]) == "proposed"
        assert node.search("obey") == []
        assert_sound(node)


def test_R24_an_adopted_edit_is_made_again(world: World, a: Node, guest: Node) -> None:
    """With tags and facts of its own; one on a record that is not here says so."""
    record, other = a.remember("bees"), a.remember("ants")
    world.settle()
    cut_us = a.now_us
    guest.move(record, "year")
    guest.tag(record, "seen")
    guest.retire(other)
    lost = guest.remember("wasps")
    guest.move(lost, "week")
    world.settle()
    a.revoke(guest, "write", since_us=cut_us)
    assert (a.seen(record).layer, a.state(other)) == ("day", "new")
    for named in (record, other):
        for entry in entries(a, named):
            assert adopt(a.author, aside_in(a.store, entry), Via.LOCAL, a.now_us) == (named, False)
    creation, edit = entries(a, lost)
    with pytest.raises(NotLiveError, match="not here"):
        adopt(a.author, aside_in(a.store, edit), Via.LOCAL, a.now_us)
    made, _ = adopt(a.author, aside_in(a.store, creation), Via.LOCAL, a.now_us)
    assert adopt(a.author, aside_in(a.store, edit), Via.LOCAL, a.now_us) == (made, False)
    assert a.seen(made).layer == "week"
    assert (a.seen(record).layer, a.seen(record).tags) == ("year", ("seen",))
    assert a.state(other) == "deprecated"
    assert_sound(a)


def test_what_was_forgotten_is_not_adopted(world: World, a: Node, guest: Node) -> None:
    """Neither the record nor its value."""
    cut_us = a.now_us
    gone = guest.remember("bees")
    world.settle()
    a.revoke(guest, "write", since_us=cut_us)
    mine = a.remember("bees")
    a.forget(mine)
    (entry,) = entries(a, gone)
    with pytest.raises(TombstonedError):
        adopt(a.author, aside_in(a.store, entry), Via.LOCAL, a.now_us)
    with pytest.raises(NotFoundError):
        aside_in(a.store, str(EntryHash(bytes(32))))


def test_a_dropped_entry_is_listed_no_more_and_nothing_else_changes(
    world: World, a: Node, b: Node, guest: Node
) -> None:
    """An entry that counts is not touched; the statement of somebody without the right is void."""
    cut_us = a.now_us
    first, second = guest.remember("bees"), guest.remember("wasps")
    world.settle()
    a.revoke(guest, "write", since_us=cut_us)
    control = a.remember("ants")
    world.settle("a", "b")
    digest = a.digest
    (entry,), (kept,) = entries(a, first), entries(a, second)
    counts = [h for (h,) in a.rows("SELECT hash FROM entry WHERE record = ?", control)]
    named = bytes(aside_in(a.store, entry).header.hash)
    before = count_set_aside(a.store)
    b.act("drop", {"entries": [named]}, guest.key)
    assert count_set_aside(b.store) == before
    a.act("drop", {"entries": sorted([named, *counts])})
    world.settle("a", "b")
    world.late("c")
    for node in (a, b, world.nodes["c"]):
        assert entries(node, first) == []
        assert entries(node, second) == [kept]
        assert count_set_aside(node.store) == before - 1
        assert (node.search("ants"), node.search("bees")) == ([control], [])
        assert node.digest == digest
        assert_sound(node)


def test_only_a_forked_log_is_settled(world: World, a: Node, guest: Node) -> None:
    cut_us = a.now_us
    record = guest.remember("bees")
    world.settle()
    a.revoke(guest, "write", since_us=cut_us)
    (entry,) = entries(a, record)
    with pytest.raises(UsageError, match="not forked"):
        branch_end(a.store, aside_in(a.store, entry))


def test_R7_a_settled_branch_counts_and_the_other_does_not(world: World, a: Node, b: Node) -> None:
    """The same on every node, whichever branch it held; the device goes on in a new log."""
    record = b.remember("bees")
    world.settle()
    twin = Node(world, "twin", b.key)
    twin.learn(world.keys)
    twin.store.add_statements(b.store.statements(), twin.now_us)
    for src in (b, a):
        world.pull(twin, src)
    incarnation = b.rows("SELECT value FROM meta WHERE key = 'incarnation'")[0][0]
    twin.rows("INSERT OR REPLACE INTO meta VALUES ('incarnation', ?)", incarnation)
    left, right = b.remember("left"), twin.remember("right")
    twin.tag(right, "later")
    world.pull(a, b)
    world.pull(a, twin)
    twin.close()
    assert [a.search(word) for word in ("left", "right", "bees")] == [[], [], [record]]
    first, _ = entries(a, right)
    a.act("settle", branch_end(a.store, aside_in(a.store, first)))
    assert [a.search(word) for word in ("left", "right", "bees")] == [[], [right], [record]]
    assert a.seen(right).tags == ("later",)
    for node in world.everywhere():
        assert [node.search(word) for word in ("left", "right")] == [[], [right]]
        assert len(entries(node, left)) == 1
        assert_sound(node)
    again = b.remember("left")
    world.settle()
    assert {tuple(node.search("left")) for node in world.nodes.values()} == {(again,)}
