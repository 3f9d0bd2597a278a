"""Merging: copies, clocks, equal keys, entries that can never apply; every order, one result."""

import ast
import contextlib
import re
import shutil
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from unittest import mock

import pytest

from crdt.chain import RawEntry, verify_run
from crdt.entry import PayloadKind, Via, actor_id, decode_header, derived_id, make_header
from crdt.payload import decode_ops, encode_ops, put
from keys.ids import RecordId
from keys.signing import ENTRY_DOMAIN
from memory.audit import verify_log
from memory.quarantine import set_aside
from tests.support.author import seeded
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import HOUR_US, Node, World

ROOT = Path(__file__).parents[2]


def clone(node: Node, name: str) -> Node:
    """A second device directory with the same key, file and incarnation: a copied machine."""
    node.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    twin = Node(node.world, name, node.key)
    twin.close()
    for path in twin.home.iterdir():
        path.unlink()
    shutil.copy(node.home / "agent.db", twin.home / "agent.db")
    twin.keys |= node.keys
    twin.reopen()
    return twin


@pytest.mark.parametrize("first", [True, False])
def test_S_A9_two_copies_of_one_device_write_apart(
    world: World, a: Node, b: Node, first: bool
) -> None:
    """At the same place of the same log the actors differ; the merge is one in every order."""
    record = a.remember("bees")
    twin = clone(a, "twin")
    a.move(record, "year")
    twin.move(record, "week")
    world.pull(b, a if first else twin)
    world.pull(b, twin if first else a)
    actors, places = set(), set()
    for data, payload in b.rows("SELECT header, payload FROM entry WHERE record = ?", record):
        header = decode_header(data)
        if header.deps:
            places.add((header.log, header.seq))
            salt = decode_ops(payload).salt
            actors.add(actor_id(world.agent, header.log, header.seq, salt))
    assert (len(actors), len(places)) == (2, 1)
    for node in (a, twin):
        world.pull(node, b)
    c = world.late("c")
    assert {n.seen(record).layer for n in (a, b, twin, c)} == {"day"}
    assert_equal_nodes(a, b, twin, c)
    for node in (a, b, twin, c):
        assert_sound(node)
    twin.close()


def test_S_B1_an_edit_after_a_fast_clock_wins_everywhere(world: World, a: Node, b: Node) -> None:
    """A an hour ahead writes, B with the right clock sees it and edits: B's edit is the newer."""
    record = a.remember("bees")
    world.settle()
    a.offset_us = HOUR_US
    a.move(record, "year")
    world.settle()
    a.offset_us = 0
    b.move(record, "week")
    for node in world.everywhere():
        assert node.seen(record).layer == "week"
    a.move(record, "month")
    world.settle()
    assert {n.seen(record).layer for n in world.nodes.values()} == {"month"}


@pytest.mark.parametrize("end", ["retire", "forget"])
@pytest.mark.parametrize("order", list(permutations("abc")))
def test_S_B4_a_fast_clock_brings_nothing_back(
    world: World, a: Node, b: Node, end: str, order: tuple[str, ...]
) -> None:
    """A two days ahead edits, B sees it and ends the record: ended, in every order of delivery."""
    c = world.late("c")
    record, control = a.remember("bees"), a.remember("wasps")
    world.settle()
    a.offset_us = 48 * HOUR_US
    a.move(record, "year")
    a.tag(record, "renamed")
    world.pull(b, a)
    getattr(b, end)(record)
    for dst in order:
        for src in reversed(order):
            if src != dst:
                world.pull(world.nodes[dst], world.nodes[src], commits=1)
    world.settle()
    for node in (a, b, c):
        assert node.state(record) == {"retire": "deprecated", "forget": "erased"}[end]
        assert node.search("bees wasps") == [control]


def layer(node: Node, weight: float) -> RecordId:
    """The layer ``week`` with the full set of keys, as any device may derive it."""
    record = derived_id(node.world.agent, "layer", b"week")
    with node.author.commit(Via.LOCAL, node.now_us) as commit:
        ops = [
            put("body.key", b"week"),
            put("body.text", f"written on {node.name}"),
            put("field.title", f"title of {node.name}"),
            put("field.weight", weight),
            put("kind", "layer"),
        ]
        commit.create_derived(record, ops)
    return record


def test_S_E8_M_H26_one_natural_key_created_twice_is_one_record_and_a_listed_clash(
    world: World, a: Node, b: Node
) -> None:
    """Both creations live, the smaller hash is canonical and whole, and nothing is retried."""
    record = layer(a, 1.0)
    assert layer(b, 2.0) == record
    nodes = world.everywhere()
    for node in nodes:
        seen = node.seen(record)
        creations = seen.detail["creations"]
        assert len(creations) == 2
        assert creations == sorted(creations)
        assert (seen.text, seen.title, seen.weight) in (
            ("written on a", "title of a", 1.0),
            ("written on b", "title of b", 2.0),
        )
        assert_sound(node)
    assert_equal_nodes(*nodes)
    before = [node.store.vector_digest() for node in nodes]
    assert world.settle() == 0
    assert [node.store.vector_digest() for node in nodes] == before


def raw_entry(node: Node, record: RecordId, kind: int, payload: bytes) -> RawEntry:
    """A whole commit of one entry at the tip of a device's log, as a modified node makes it."""
    (row,) = [r for r in node.store.logs.rows() if r.log.device == node.key.device]
    heads = [
        decode_header(data).hash
        for (data,) in node.rows("SELECT header FROM entry WHERE record = ?", record)
    ]
    header = make_header(
        node.world.agent,
        row.log,
        row.tip.seq + 1,
        row.tip.hash,
        record=record,
        payload_kind=kind,
        payload=payload,
        deps=heads[-1:],
        wall_ms=node.now_us // 1000,
        via=Via.LOCAL,
        commit_left=0,
    )
    return RawEntry(header.data, payload, node.key.sign(ENTRY_DOMAIN, header.hash))


SALT = seeded("salt", 16)
TITLE = [put("field.title", "x")]
NEVER = {
    "another change hash": (PayloadKind.OPS, encode_ops(SALT, TITLE, bytes(32)), "mismatch"),
    "no operations at all": (PayloadKind.OPS, b"\x90", "malformed"),
    "noise": (PayloadKind.OPS, b"\xff" * 40, "malformed"),
    "a body edited": (
        PayloadKind.OPS,
        encode_ops(SALT, [put("body.text", "x")], bytes(32)),
        "malformed",
    ),
    "a kind of a later version": (3, b"\x01", "needs_upgrade"),
}


@pytest.mark.parametrize(("kind", "payload", "reason"), NEVER.values(), ids=NEVER.keys())
def test_S_E9_what_can_never_apply_is_set_aside_and_the_rest_flows(
    world: World, a: Node, b: Node, kind: int, payload: bytes, reason: str
) -> None:
    """It has one reason, is passed on byte for byte, stops nobody and is not asked for again."""
    record = a.remember("bees")
    bad = raw_entry(a, record, kind, payload)
    a.store.append_runs([verify_run(world.agent, [bad])], a.now_us)
    a.move(record, "year")
    after = a.remember("wasps")
    other = b.remember("moths")
    for node in world.everywhere():
        assert [row["reason"] for row in set_aside(node.store)] == [reason]
        assert node.seen(record).layer == "year"
        assert sorted(node.search("bees wasps moths")) == sorted([record, after, other])
        held = node.rows("SELECT header, payload FROM entry WHERE reason IS NOT NULL")
        assert held == [(bad.header, bad.payload)]
        assert node.store.wants(9) == []
        assert verify_log(node.store).problems == []
        assert_sound(node)
    assert world.settle() == 0
    assert_equal_nodes(*world.nodes.values())


def test_S_E9_what_builds_on_it_waits_and_has_a_reason(world: World, a: Node, b: Node) -> None:
    """An entry whose dep never materialises is held, on every node, and harms no other record."""
    record = a.remember("bees")
    bad = raw_entry(a, record, 3, b"\x01")
    a.store.append_runs([verify_run(world.agent, [bad])], a.now_us)
    on_top = raw_entry(a, record, PayloadKind.OPS, encode_ops(SALT, TITLE, bytes(32)))
    assert decode_header(on_top.header).deps == (decode_header(bad.header).hash,)
    a.store.append_runs([verify_run(world.agent, [on_top])], a.now_us)
    b.remember("moths")
    for node in world.everywhere():
        reasons = [row["reason"] for row in set_aside(node.store)]
        assert reasons == ["needs_upgrade", "waiting"]
        assert node.state(record) == "new"
        assert_sound(node)


def test_S_E9_after_an_upgrade_it_is_driven_again(world: World, a: Node, b: Node) -> None:
    """A record of a later engine is not shown until this version knows it; then a rebuild does."""
    a.remember("bees")
    with _engine(2):
        later = a.remember("from the future")
    for node in world.everywhere():
        node.store.rebuild()
        assert [row["reason"] for row in set_aside(node.store)] == ["needs_upgrade"]
        assert node.search("future") == []
    for node in world.nodes.values():
        with _engine(2):
            node.store.rebuild()
            assert node.search("future") == [later]


@contextlib.contextmanager
def _engine(number: int) -> Iterator[None]:
    """This version as if it had another engine."""
    with mock.patch("crdt.payload.ENGINE", number), mock.patch("crdt.fold.ENGINE", number):
        yield


# Who besides the query layer reads a text, and why it may.
READS_TEXT = {
    ("tables.py", "unlike_their_hash"): "hashed again and compared; nobody is shown it",
    ("folding.py", "prints_of"): "the fingerprints that a tombstone lists",
    ("forgetting.py", "_text"): "whether a source holds the words that are forgotten",
    ("query.py", "history"): "a person's view",
    ("forgetting.py", "_holding"): "what holds the words that are forgotten",
    ("words.py", "place"): "what the word index must give back",
    ("near.py", "_candidates"): "compared; ids and states are shown",
    ("tables.py", "olds"): "whether a text changed",
}


def test_M_H22_texts_are_read_in_one_place() -> None:
    """Every statement that selects a text of a record is in the query layer, or listed here."""
    found = set()
    for path in sorted((ROOT / "memory").glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and _selects_text(function):
                found.add((path.name, function.name))
    assert found == READS_TEXT.keys()


def _selects_text(function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            chosen = re.search(r"SELECT (.*?) FROM .*\brecord\b", node.value, re.DOTALL)
            if chosen and re.search(r"\btext\b", chosen.group(1)):
                return True
    return False


def test_M_H22_every_read_for_readers_has_the_one_condition() -> None:
    """Each function that fills what readers are shown takes its condition from one place."""
    tree = ast.parse((ROOT / "memory" / "query.py").read_text())
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
            if "_SEEN" in names:
                assert names & {"conditions", "LIVE", "_ranking"}, function.name
