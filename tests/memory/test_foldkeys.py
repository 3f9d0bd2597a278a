"""R25: a read model is that of the keys that are here, whenever the process was killed."""

from pathlib import Path

from crdt.fingerprint import FingerprintKey
from tests.support.author import seeded
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import World


def test_a_key_that_lay_there_before_it_was_folded_with_is_folded_with_at_the_next_start(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    a.remember("bees")
    c = world.stranger("c")
    a.grant(c, "read")
    world.pull(c, a, keys=False)
    assert c.store.waiting_for_key
    c.keys = set(a.keys)  # in its file; killed before anything was folded
    c.reopen()
    world.pull(b, a)
    assert_equal_nodes(a, b, c)
    assert_sound(c)
    world.close()


def test_a_further_key_is_folded_with_at_the_next_start(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    a.remember("bees")
    world.pull(b, a)
    c = world.stranger("c")
    a.grant(c, "read")
    a.revoke(c, "read")
    world.pull(b, a, keys=False)
    assert b.store.waiting_for_key
    b.keys = set(a.keys)
    b.reopen()
    assert_equal_nodes(a, b)
    world.close()


def test_a_key_that_no_statement_names_changes_nothing(tmp_path: Path) -> None:
    """As when the process was killed before the statement that would have named it."""
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    a.keys |= {FingerprintKey(seeded("nobody knows it"))}
    a.reopen()
    record = a.remember("bees")
    world.pull(b, a)
    b.retire(record)
    world.pull(a, b)
    assert_equal_nodes(a, b)
    world.close()
