"""S-J1, S-J2: what two devices did at once is listed, flagged where it is read, and resolved."""

import pytest

from crdt.entry import Via, derived_id
from crdt.payload import put
from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from memory.conflicts import Conflict, conflicts, resolve
from node.present import record_of
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World


def flagged(node: Node, query: str) -> list[bool]:
    """Per record that a search finds: whether it carries the flag of a conflict."""
    return [bool(record_of(node.seen(r), 1).get("conflict")) for r in node.search(query)]


def settle(node: Node, record: RecordId, keep: RecordId | None) -> list[RecordId]:
    return resolve(node.author, record, keep, "seen by a person", Via.LOCAL, node.now_us)


def test_S_J2_two_successors_are_listed_flagged_and_resolved(
    world: World, a: Node, b: Node
) -> None:
    old, control = a.remember("monday"), a.remember("bees hum")
    world.settle()
    first, second = a.revise(old, "tuesday"), b.revise(old, "wednesday")
    for node in world.everywhere():
        ids = tuple(sorted((first, second)))
        assert conflicts(node.store) == [Conflict(old, "successors", ids)]
        assert flagged(node, "tuesday") + flagged(node, "wednesday") == [True, True]
        assert flagged(node, "bees") == [False]
    with pytest.raises(UsageError):
        settle(b, old, control)
    assert settle(b, old, first) == [second]
    world.settle()
    nodes = list(world.nodes.values())
    for node in nodes:
        assert conflicts(node.store) == []
        assert node.search("tuesday wednesday") == [first]
        assert flagged(node, "tuesday bees") == [False, False]
        assert_sound(node)
    assert_equal_nodes(*nodes)


def test_S_J2_concurrent_values_of_a_field_are_flagged_until_somebody_decides(
    world: World, a: Node, b: Node
) -> None:
    """Equal values and concurrent tags are none."""
    record, same, tagged = (a.remember(t) for t in ("bees", "wasps", "ants"))
    world.settle()
    a.move(record, "year")
    b.move(record, "week")
    for node in (a, b):
        node.move(same, "month")
        node.tag(tagged, node.name)
    for node in world.everywhere():
        assert conflicts(node.store) == [Conflict(record, "values", keys=("field.layer",))]
        assert record_of(node.seen(record), 1)["disputed"] == ["field.layer"]
        assert flagged(node, "bees") == [True]
        assert flagged(node, "wasps ants") == [False, False]
        assert_sound(node)
    shown = a.seen(record).layer
    assert settle(a, record, None) == []
    with pytest.raises(UsageError):
        settle(a, record, None)
    world.settle()
    for node in world.nodes.values():
        assert conflicts(node.store) == []
        assert (node.seen(record).layer, node.state(record)) == (shown, "new")


def test_duplicates_of_one_value_are_listed_and_resolved(world: World, a: Node, b: Node) -> None:
    """Readers see one in any case."""
    one, two = a.remember("bees"), b.remember("Bees")
    first, other = sorted((one, two))
    for node in world.everywhere():
        assert conflicts(node.store) == [Conflict(first, "duplicates", (other,))]
        assert node.search("bees") == [first]
    assert settle(a, first, other) == [first]
    world.settle()
    for node in world.nodes.values():
        assert conflicts(node.store) == []
        assert node.search("bees") == [other]
        assert_sound(node)


def test_creations_of_one_id_that_differ_are_listed(world: World, a: Node, b: Node) -> None:
    """R10: the smaller hash counts; that there is another is told. Equal ones are none."""
    clash, same = (derived_id(world.agent, "perspective", key) for key in (b"x", b"y"))
    for node in (a, b):
        with node.author.commit(Via.CONSOLIDATOR, node.now_us) as commit:
            for record, key, text in ((clash, b"x", f"by {node.name}"), (same, b"y", "bees")):
                ops = [put("body.key", key), put("body.text", text), put("kind", "perspective")]
                commit.create_derived(record, [*ops, put("body.run", node.name.encode())])
    for node in world.everywhere():
        found = [c for c in conflicts(node.store) if c.what == "values"]
        assert found == [Conflict(clash, "values", keys=("body.text",))]
        assert_sound(node)


def test_S_J1_conflicts_of_one_record_are_one(world: World, a: Node, b: Node) -> None:
    """However often two devices write against one another."""
    record = a.remember("bees")
    world.settle()
    for layers in (("year", "week"), ("month", "day"), ("decade", "century")):
        a.move(record, layers[0])
        b.move(record, layers[1])
        world.settle()
        assert len(conflicts(a.store)) == 1
        assert len(a.seen(record).detail["heads"]) == 2


def test_what_a_person_approved_gives_way_by_review_alone(world: World, a: Node, b: Node) -> None:
    old = a.remember("monday")
    world.settle()
    first, second = a.revise(old, "tuesday"), b.revise(old, "wednesday")
    world.settle()
    a.approve(second)
    with pytest.raises(RefusedError):
        settle(a, old, first)
    assert settle(a, old, second) == [first]
