"""Every act on A reads the same on B after one pull, and on C joining late (M-A8)."""

import threading
from collections.abc import Callable

import pytest

from keys.errors import RefusedError, StoreError
from keys.ids import RecordId
from memory.door import open_connection
from memory.store import AgentStore
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World

WRITERS, WRITES = 2, 40


def _lifted(node: Node, record: RecordId) -> object:
    node.retire(record)
    return node.lift(record)


VERBS: dict[str, tuple[str, Callable[[Node, RecordId], object]]] = {
    "remember": ("new", lambda node, _: node.remember("wasps")),
    "reinforce with a tag": ("new", lambda node, _: node.remember("BEES", tags=("more",))),
    "derive": ("new", lambda node, r: node.remember("insects", derived_from=(r,))),
    "tag": ("new", lambda node, r: node.tag(r, "more")),
    "untag": ("new", lambda node, r: node.untag(r, "home")),
    "move": ("new", lambda node, r: node.move(r, "year")),
    "keep": ("current", lambda node, r: node.keep(r)),
    "revise": ("superseded", lambda node, r: node.revise(r, "wasps")),
    "retire": ("deprecated", lambda node, r: node.retire(r)),
    "lift": ("new", _lifted),
    "approve": ("current", lambda node, r: node.approve(r)),
    "reject": ("deprecated", lambda node, r: node.reject(r)),
    "forget": ("erased", lambda node, r: node.forget(r)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_M_A8_one_pull_carries_every_act(world: World, a: Node, b: Node, verb: str) -> None:
    """The state, the digest and every row; and the same is true of a device that joins later."""
    record, control = a.remember("bees", tags=("home",)), a.remember("moths")
    world.settle()
    digest = a.digest
    state, act = VERBS[verb]
    act(a, record)
    assert a.digest != digest
    world.pull(b, a)
    assert (a.state(record), b.state(record)) == (state, state)
    assert_equal_nodes(a, b)
    for node in world.everywhere():
        assert (node.state(record), node.state(control)) == (state, "new")
        assert_sound(node)
    assert_equal_nodes(*world.nodes.values())


@pytest.mark.parametrize("verb", [v for v in VERBS if v not in ("lift", "approve", "reject")])
def test_S_I10_who_may_only_read_writes_nothing(world: World, a: Node, verb: str) -> None:
    """The verb is refused before anything enters the log; reading goes on."""
    guest = world.stranger("guest")
    a.grant(guest, "read")
    record = a.remember("bees", tags=("home",))
    world.pull(guest, a)
    before = guest.store.vector(), guest.digest
    with pytest.raises(RefusedError):
        VERBS[verb][1](guest, record)
    assert (guest.store.vector(), guest.digest) == before
    assert guest.search("bees") == [record]


def test_M_H2_two_writers_of_one_file_lose_nothing(world: World, a: Node) -> None:
    """Each in its own thread over its own connection: all rows, every place once."""
    errors: list[BaseException] = []

    def work(name: str) -> None:
        twin = Node(world, "a", a.key)
        twin.keys = set(a.keys)
        twin.store = AgentStore(twin.store.connection, world.agent, a.keys, a.key.device)
        twin.author = type(a.author)(twin.store, a.key)
        try:
            for i in range(WRITES):
                twin.remember(f"{name} {i}")
        except BaseException as exc:  # noqa: BLE001 - told below
            errors.append(exc)
        finally:
            twin.close()

    a.remember("the first")
    threads = [threading.Thread(target=work, args=(f"writer {i}",)) for i in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    total = WRITERS * WRITES + 1
    assert a.rows("SELECT count(*) FROM record WHERE live = 1") == [(total,)]
    assert a.rows("SELECT count(*), count(DISTINCT seq), max(seq) FROM entry") == [
        (total + 1, total + 1, total + 1)
    ]
    assert_sound(a)


def test_M_H4_a_locked_file_is_an_error_and_never_a_success(a: Node) -> None:
    """While another connection writes, the write fails and says so; afterwards it is made."""
    a.remember("bees")
    other = open_connection(a.home / "agent.db")
    other.execute("BEGIN IMMEDIATE")
    a.store.connection.execute("PRAGMA busy_timeout=1")
    with pytest.raises(StoreError):
        a.remember("wasps")
    assert a.search("bees wasps") == a.search("bees")
    other.execute("ROLLBACK")
    other.close()
    assert a.search("wasps") == []
    assert a.remember("wasps") in a.search("wasps")
