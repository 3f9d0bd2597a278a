"""A failure at any statement leaves all of an act or nothing, on disk and in memory (S-H8)."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from crdt.chain import VerifiedRun, verify_run, verify_single
from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from crdt.log import AheadTombstone
from keys.errors import StoreError
from keys.ids import RecordId
from memory.audit import Audit, file_steps, verify_log
from memory.forgetting import is_clean
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember_batch
from tests.support.author import certify, device_key, owner_key, seeded
from tests.support.byte_scan import found_in
from tests.support.damage import checkpoint, overwrite_page, pages_of
from tests.support.failing import FailingConnection
from tests.support.memory_checks import Model, assert_same_model, assert_sound, model_of
from tests.support.memory_world import Node, World

Act = Callable[[Node, "Scene"], object]


@dataclass
class Scene:
    """An agent on A and B with some history; each try starts from a copy of A's file."""

    world: World
    a: Node
    record: RecordId
    waiting: RecordId
    edit: VerifiedRun  # of B, an edit of the record
    erasure: VerifiedRun  # the same and a tombstone: A erases what it derived itself (R31)
    ahead: list[AheadTombstone]

    def copy(self, number: int) -> Node:
        """A's device as it was, over a connection that may fail."""
        self.a.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        node = Node(self.world, f"a{number}", self.a.key)
        node.close()
        for left in node.home.iterdir():
            left.unlink()
        shutil.copy(self.a.home / "agent.db", node.home / "agent.db")
        node.keys |= self.a.keys
        node.reopen()
        return failing(node)


def failing(node: Node) -> Node:
    """The node's store over a connection that may fail."""
    connection = FailingConnection(node.store.connection)
    node.store = AgentStore(connection, node.world.agent, node.keys, node.key.device)  # type: ignore[arg-type]
    node.author = type(node.author)(node.store, node.key)
    return node


def gate(node: Node) -> FailingConnection:
    """The connection that may fail."""
    connection: object = node.store.connection
    assert isinstance(connection, FailingConnection)
    return connection


@pytest.fixture
def scene(world: World, a: Node, b: Node) -> Scene:
    """A record, one derived from it on each device, one that waits, one that is retired."""
    record = a.remember("bees on the roof", tags=("home",))
    a.remember("insects", derived_from=(record,))
    waiting = a.remember("always be kind", category="rule")
    a.retire(a.remember("wasps"))
    world.settle()
    b.remember("b's own thing", derived_from=(record,))
    world.settle()
    b.move(record, "year")
    bare = _run(a, b)
    with b.author.commit(Via.LOCAL, b.now_us) as commit:
        commit.erase(record, "person")
    pairs = b.store.tombstones_beyond(a.store.vector(), 9)
    ahead = [
        AheadTombstone(verify_single(world.agent, t), verify_single(world.agent, o))
        for t, o in pairs
    ]
    return Scene(world, a, record, waiting, bare, _run(a, b), ahead)


def _run(a: Node, b: Node) -> VerifiedRun:
    """What B has and A lacks."""
    (stretch,) = b.store.plan(a.store.vector())
    run, _ = b.store.read_run(stretch, 10**9)
    return verify_run(a.world.agent, [e.raw for e in run.entries])


def with_statement(node: Node, scene: Scene) -> None:
    """A statement about a log's device: everything of it may have to be judged anew."""
    node.store.add_statements([certify(scene.world.owner, device_key("new"))], node.now_us)


def batch(node: Node, _: Scene) -> None:
    """New records, a reinforced one, and one that is refused."""
    notes = [Note("moths"), Note("BEES on the roof", tags=("x",)), Note("wasps"), Note("gnats")]
    remember_batch(node.author, notes, Via.LOCAL, node.now_us)


def new_key(node: Node, _: Scene) -> None:
    """One more fingerprint key: everything is folded anew."""
    node.store.set_keys(node.keys | {FingerprintKey(seeded("another"))})


ACTS: dict[str, Act] = {
    "remember": lambda node, _: node.remember("moths"),
    "batch": batch,
    "revise": lambda node, scene: node.revise(scene.record, "moths"),
    "retire": lambda node, scene: node.retire(scene.record),
    "forget": lambda node, scene: node.forget(scene.record),
    "approve": lambda node, scene: node.approve(scene.waiting),
    "grant": lambda node, _: node.grant(owner_key("bob"), "write"),
    "certificate": with_statement,
    "new key": new_key,
    "rebuild": lambda node, _: node.store.rebuild(),
    "pulled edit": lambda node, scene: node.store.append_runs([scene.edit], node.now_us),
    "pulled erasure": lambda node, scene: node.store.append_runs([scene.erasure], node.now_us),
    "tombstone ahead": lambda node, scene: node.store.add_ahead(scene.ahead),
}


# Statements between two looks at every row; in between counts and digest are compared.
LOOK_EVERY = 12
LOCAL = ("meta", "log", "entry", "statement", "tombstone", "reinforced", "cleaning")


def whole(node: Node) -> Model:
    """Everything that the file holds: the model, the log, statements and local tables."""
    found = model_of(node, local=True)
    for table in LOCAL:
        found[table] = sorted(node.rows(f"SELECT * FROM {table}"), key=repr)
    return found


def outline(node: Node) -> tuple[object, ...]:
    """What would differ if anything had been written."""
    counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in LOCAL)
    return (node.store.digest(), node.store.vector(), *node.rows(f"SELECT {counts}"))


@pytest.mark.parametrize("name", ACTS)
def test_S_H8_an_act_that_fails_at_any_statement_has_not_begun(scene: Scene, name: str) -> None:
    """Rows and memory are as before, whichever statement fails; then the act is done at once.

    A failure after the commit, while the answer is read, leaves all of it.
    """
    act = ACTS[name]
    node = scene.copy(0)
    rows, brief = whole(node), outline(node)
    number = 0
    while True:
        number += 1
        gate(node).fail_at(number)
        try:
            act(node, scene)
        except (StoreError, sqlite3.OperationalError):
            gate(node).fail_at(None)
            assert not gate(node).in_transaction
        else:
            break
        if outline(node) != brief:
            assert_sound(node)
            node = scene.copy(number)
        elif number % LOOK_EVERY == 0:
            assert_same_model(rows, whole(node), f"{name}, statement {number}")
            node = reopened(node)
        assert node.store.authority.known <= set(node.store.statement_ids())
    assert number > 3
    gate(node).fail_at(None)
    assert_sound(node)
    assert name in ("new key", "rebuild") or outline(node) != brief


def reopened(node: Node) -> Node:
    """The node after a restart."""
    node.reopen()
    return failing(node)


@pytest.mark.parametrize("step", range(1, 8))
def test_a_cleaning_that_fails_is_done_the_next_time(scene: Scene, step: int) -> None:
    """Whichever of its statements fails; until it is done the record is listed as not clean."""
    node = scene.copy(0)
    node.forget(scene.record)
    assert not is_clean(node.store, scene.record)
    gate(node).fail_at(step)
    try:
        done = node.clean()
    except sqlite3.OperationalError:
        done = False
    gate(node).fail_at(None)
    if not done:
        node = reopened(node)
        assert node.clean()
    assert is_clean(node.store, scene.record)
    assert found_in(node.home, "bees on the roof") == []
    assert found_in(node.home, "always be kind") != []


DAMAGES = {
    "a record gone": "DELETE FROM record WHERE n = 1",
    "all called erased": "UPDATE record SET state = 'erased', own = 'erased', live = 0",
    "another text": "UPDATE record SET text = 'wasps', live = 1",
    "no tags": "DELETE FROM tag",
    "no fingerprints": "DELETE FROM print",
    "no links": "DELETE FROM link",
    "no words": "INSERT INTO words (words) VALUES ('delete-all')",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_S_G6_a_damaged_read_model_is_made_anew_from_the_log(scene: Scene, damage: str) -> None:
    """Rows deleted, changed or invented behind the log's back; absence deletes nothing."""
    node = scene.copy(0)
    rows, brief = whole(node), outline(node)
    node.rows(damage)
    assert whole(node) != rows
    assert node.store.vector() == brief[1]
    node.store.rebuild()
    assert_same_model(rows, whole(node), damage)
    assert outline(node) == brief


def test_S_G6_a_record_that_no_entry_made_is_found(scene: Scene) -> None:
    """The audit compares the model with the log, and the log with its own signatures."""
    node = scene.copy(0)
    assert verify_log(node.store).problems == []
    node.rows("UPDATE record SET record = ? WHERE n = 1", b"\7" * 16)
    assert [p for p in verify_log(node.store).problems if "no entry" in p]
    node.store.rebuild()
    assert verify_log(node.store).problems == []
    node.rows("UPDATE entry SET payload = x'00' WHERE seq = 2")
    assert verify_log(node.store).problems != []


def test_S_G6_entries_gone_from_the_log_are_found_and_fetched_again(scene: Scene) -> None:
    """A log with a hole does not verify; a fresh file takes everything from a peer."""
    node = scene.copy(0)
    vector, digest = node.store.vector(), node.digest
    node.rows("DELETE FROM entry WHERE seq = 2")
    assert verify_log(node.store).problems != []
    node.close()
    for path in node.home.iterdir():
        path.unlink()
    node.reopen()
    node.store.add_statements(scene.a.store.statements(), node.now_us)
    scene.world.pull(node, scene.a)
    assert (node.store.vector(), node.digest) == (vector, digest)


def test_S_G1_damage_to_an_index_is_found_in_the_file_where_the_log_verifies(scene: Scene) -> None:
    """The signed log says nothing of the indexes beside it; SQLite's own check does."""
    node = scene.copy(0)
    assert _file_damage(node) == [], "positive control"
    node.close()
    (path,) = node.home.glob("*.db")
    checkpoint(path)
    for number in pages_of(path, "print_record"):
        overwrite_page(path, number, random.Random(number))
    node.reopen()
    assert verify_log(node.store).problems == []
    (found,) = _file_damage(node)
    assert found.startswith("print: ")


def _file_damage(node: Node) -> list[str]:
    audit = Audit()
    assert sum(1 for _ in file_steps(node.store, audit)) > 10, "a step for each table"
    return audit.damage
