"""A forgotten agent in the fold: what was written apart goes too, and nothing is written then."""

import pytest

from crdt.entry import Via, decode_header
from keys.errors import RefusedError
from memory.ending import forget_agent
from memory.erasing import end_of
from memory.notes import Note
from memory.writing import remember_batch
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World


def ended(node: Node) -> bool:
    return node.store.tombstones.ended(node.store.authority)


def end(node: Node) -> int:
    erased, left = forget_agent(node.author, via=Via.LOCAL, now_us=node.now_us)
    assert left == []
    return len(erased)


def test_M_A14_what_was_written_apart_is_erased_by_who_wrote_it(
    world: World, a: Node, b: Node
) -> None:
    a.remember("bees")
    world.settle()
    late = b.remember("wasps")
    assert end(a) == 1
    world.settle()
    for node in world.everywhere():
        assert ended(node)
        assert node.state(late) == "erased"
        assert node.rows("SELECT 1 FROM record WHERE own <> 'erased'") == []
        assert node.rows("SELECT 1 FROM tombstone_print") == []
        assert_sound(node)
        with pytest.raises(RefusedError, match="forgotten"):
            node.remember("moths")
    assert_equal_nodes(*world.nodes.values())


def test_only_who_holds_admin_ends_an_agent(world: World, a: Node) -> None:
    """Neither by the verb nor by the tombstone itself; the same device ends it once it may."""
    c = world.stranger("c")
    a.grant(c, "read", "write")
    world.tell(c, a)
    c.learn(world.keys)
    a.remember("bees")
    world.pull(c, a)
    with pytest.raises(RefusedError, match="admin"):
        end(c)
    with c.author.commit(Via.LOCAL, c.now_us) as commit:
        commit.erase(end_of(world.agent), "agent_forgotten")
    world.pull(a, c)
    assert not ended(a)
    a.grant(c, "admin")
    assert ended(a)


def test_r3_more_than_a_commit_holds_goes_in_several(a: Node) -> None:
    remember_batch(a.author, [Note(f"bees {i}") for i in range(520)], Via.LOCAL, a.now_us)
    before = a.rows("SELECT count(*) FROM entry")[0][0]
    assert end(a) == 520
    headers = a.rows("SELECT header FROM entry ORDER BY seq")
    left = [decode_header(header).commit_left for (header,) in headers]
    assert [n for n in left[before:] if n >= 511] == [511]
    assert left[before:].count(0) == 2
