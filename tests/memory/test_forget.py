"""Forgetting: what it reaches, what it refuses, and what comes back when it is sent again."""

import random
from pathlib import Path

import pytest

from crdt.chain import RawEntry, verify_run
from crdt.entry import Via, derived_id, tombstone_id
from crdt.payload import put
from keys.errors import NotFoundError, UsageError
from keys.ids import RecordId
from memory.forgetting import check_erasable, forget, reach_of
from memory.kinds import add_entity, set_property
from memory.moving import ImportRow, import_rows
from memory.notes import Note
from memory.writing import TombstonedError
from tests.support.memory_checks import assert_equal_nodes, assert_sound, erased_records
from tests.support.memory_world import HOUR_US, Node, World


def made(node: Node, kind: str, text: str, *sources: RecordId) -> RecordId:
    """A record of a kind that jobs write."""
    with node.author.commit(Via.CONSOLIDATOR, node.now_us) as commit:
        ops = [put("kind", kind), put("body.text", text), put("field.layer", "day")]
        if sources:
            ops.append(put("body.derived_from", b"".join(sources)))
        return commit.create(ops)


@pytest.mark.parametrize("kind", ["summary", "perspective", "property", "skill", "observation"])
def test_M_B1_everything_derived_goes_with_its_source(world: World, a: Node, kind: str) -> None:
    """At any distance and in every kind; what was derived from other sources stays."""
    source, other = a.remember("the code is 4711"), a.remember("bees are kind")
    first = made(a, kind, "there is a code", source, other)
    second = made(a, kind, "there is something", first)
    control = made(a, "summary", "bees", other)
    reach = reach_of(a.store, [source])
    assert (reach.named, set(reach.derived)) == ((source,), {first, second})
    assert a.forget(source) == []
    for node in world.everywhere():
        assert sorted(erased_records(node)) == sorted([source, first, second])
        assert [node.state(r) for r in (other, control)] == ["new", "new"]
        assert_sound(node)


def test_a_dry_run_tells_the_reach_and_writes_nothing(a: Node) -> None:
    """Named with its equals, derived, and the sources that hold the words."""
    turn = a.remember("I said: the code is 4711, yes", kind="turn")
    calm = a.remember("nothing of that kind", kind="turn")
    record = a.remember("The code is 4711.", derived_from=(turn, calm))
    derived = a.remember("a code", derived_from=(record,))
    before = a.store.vector(), a.digest
    reach = reach_of(a.store, [record])
    assert (reach.named, reach.derived) == ((record,), (derived,))
    assert (reach.holders, reach.sources) == ((turn,), (calm,))
    assert (a.store.vector(), a.digest) == before


@pytest.mark.parametrize("with_sources", [False, True])
def test_what_holds_the_words_goes_and_other_sources_when_asked(
    world: World, a: Node, with_sources: bool
) -> None:
    """A source in other words that stays is marked, so that nobody takes it in again."""
    turn = a.remember("I said: the code is 4711, yes", kind="turn")
    calm = a.remember("nothing of that kind", kind="turn")
    record = a.remember("The code is 4711.", derived_from=(turn, calm))
    unlinked = a.remember("Once more,   THE CODE IS 4711!", kind="diary")
    other = a.remember("the code is 4712", kind="turn")
    a.forget(record, with_sources=with_sources)
    for node in world.everywhere():
        states = [node.state(r) for r in (record, turn, unlinked, calm, other)]
        last = "erased" if with_sources else "new"
        assert states == ["erased", "erased", "erased", last, "new"]
        if not with_sources:
            assert node.seen(calm).detail["fields"] == {"no_intake": True}


@pytest.mark.parametrize("text", ["bees", "the bees", "a b c", "蜜蜂"])
def test_a_short_text_erases_no_turn_that_only_mentions_it(a: Node, text: str) -> None:
    turn = a.remember(f"we saw {text} today", kind="turn")
    a.forget(a.remember(text))
    assert a.state(turn) == "new"


@pytest.mark.parametrize("text", ["我昨天搬到了里斯本住在海边的房子", "Zoë wohnt in Köln-Süd 5"])
def test_words_of_any_script_are_found_in_what_holds_them(a: Node, text: str) -> None:
    turn = a.remember(f"Sie sagte: {text.upper()}!", kind="turn")
    kept = a.remember("Sie sagte nichts", kind="turn")
    assert reach_of(a.store, [a.remember(text)]).holders == (turn,)
    assert a.state(kept) == "new"


def test_forgetting_a_part_leaves_what_it_is_a_part_of(world: World, a: Node) -> None:
    ada = add_entity(a.author, Note("Ada"), "persons", None, Via.LOCAL, a.now_us).record
    phone = set_property(
        a.author, ada, "phone", Note("555 1234"), "said", via=Via.LOCAL, now_us=a.now_us
    ).record
    assert reach_of(a.store, [phone]).sources == ()
    a.forget(phone, with_sources=True)
    for node in world.everywhere():
        assert [node.state(r) for r in (ada, phone)] == ["new", "erased"]


def test_records_of_the_same_value_go_together(world: World, a: Node, b: Node) -> None:
    """Duplicates and what waits as returning are named by the same forget."""
    records = [a.remember("bees"), b.remember("Bees"), a.remember("wasps")]
    world.settle()
    assert set(reach_of(a.store, records[:1]).named) == set(records[:2])
    a.forget(records[0])
    for node in world.everywhere():
        assert [node.state(r) for r in records] == ["erased", "erased", "new"]


def test_R31_what_was_derived_elsewhere_follows(world: World, a: Node, b: Node) -> None:
    """B derives while A forgets: it reads withheld where it comes first, and B erases it."""
    source, control = a.remember("the code is 4711"), a.remember("bees")
    world.settle()
    derived = b.remember("a code of four digits", derived_from=(source,))
    innocent = b.remember("buzzing", derived_from=(control,))
    a.forget(source)
    world.pull(a, b)
    assert (a.state(derived), a.state(innocent)) == ("withheld", "new")
    assert a.search("digits buzzing") == [innocent]
    world.pull(b, a)
    assert b.state(derived) == "erased"
    for node in world.everywhere():
        assert [node.state(r) for r in (derived, innocent)] == ["erased", "new"]
        assert_sound(node)
        with pytest.raises(TombstonedError):
            node.remember("A CODE of four digits")


def test_R31_the_same_value_written_elsewhere_is_erased_by_its_writer(
    world: World, a: Node, b: Node
) -> None:
    """B writes the value while A forgets it: returning on A, erased by B when it learns."""
    record = a.remember("bees")
    a.forget(record)
    other, control = b.remember("Bees"), b.remember("wasps")
    world.pull(a, b)
    assert (a.state(other), a.state(control)) == ("returning", "new")
    for node in world.everywhere():
        assert [node.state(r) for r in (other, control)] == ["erased", "new"]
        assert_sound(node)


def test_R35_an_edit_while_it_was_forgotten_is_erased_with_it(
    world: World, a: Node, b: Node
) -> None:
    """M-A9: no edit brings a forgotten record back, in whatever order it arrives."""
    record = a.remember("bees")
    world.settle()
    a.forget(record)
    b.move(record, "year")
    b.tag(record, "home")
    revised = b.revise(record, "bumblebees")
    for node in world.everywhere():
        assert (node.state(record), node.state(revised)) == ("erased", "new")
        assert node.rows(
            "SELECT DISTINCT payload IS NULL, reason FROM entry WHERE record = ?", record
        ) == [(1, "erased")]
        assert_sound(node)


def test_a_layer_cannot_be_forgotten(world: World, a: Node, b: Node) -> None:
    """R35: neither by the verb nor by a tombstone that a modified node writes."""
    layer = derived_id(world.agent, "layer", b"day")
    with a.author.commit(Via.LOCAL, a.now_us) as commit:
        commit.create_derived(layer, [put("body.key", b"day"), put("kind", "layer")])
    record = a.remember("bees")
    with pytest.raises(UsageError):
        check_erasable(a.store, layer, a.now_us)
    check_erasable(a.store, record, a.now_us)
    with pytest.raises(NotFoundError):
        check_erasable(a.store, RecordId(bytes(16)), a.now_us)
    world.settle()
    erased = b.remember("wasps")
    with b.author.commit(Via.LOCAL, b.now_us) as commit:
        for named in (layer, RecordId(bytes(16)), tombstone_id(world.agent, erased), erased):
            commit.erase(named, "person")
    for node in world.everywhere():
        assert erased_records(node) == [erased]
        assert node.state(layer) == "new"
        assert_sound(node)


def test_a_tombstone_s_tombstone_erases_nothing_in_either_order(
    world: World, a: Node, b: Node
) -> None:
    """R35: also where the tombstone that it names comes later."""
    record = a.remember("bees")
    world.settle()
    with b.author.commit(Via.LOCAL, b.now_us) as commit:
        commit.erase(tombstone_id(world.agent, record), "person")
    world.pull(a, b)
    a.forget(record)
    for node in world.everywhere():
        assert erased_records(node) == [record]
        assert_sound(node)
    assert_equal_nodes(*world.nodes.values())


def test_what_is_named_ahead_of_its_chain_is_forgotten_at_once_by_hand(
    world: World, a: Node, b: Node
) -> None:
    """A tombstone without its chain withholds; a person who asks here does not wait for it."""
    record = a.remember("bees")
    world.settle()
    b.forget(record)
    world.pull(a, b, commits=0)
    assert (a.state(record), a.search("bees")) == ("withheld", [])
    assert a.forget(record) == []
    assert a.state(record) == "erased"
    for node in world.everywhere():
        assert node.state(record) == "erased"
        assert_sound(node)


@pytest.mark.parametrize("keep", [True, False])
def test_R30_a_tombstone_that_a_revocation_keeps_needs_no_chain(
    world: World, a: Node, b: Node, keep: bool
) -> None:
    """Its chain will never come from who was removed; named by the revocation it erases."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    record, control = a.remember("bees"), a.remember("wasps")
    world.pull(guest, a)
    guest.forget(record)
    world.pull(a, guest, commits=0)
    assert a.state(record) == "withheld"
    a.revoke(guest, "read", keep=keep)
    world.settle("a", "b")
    late = world.late("c")
    for node in (a, b, late):
        states = [node.state(r) for r in (record, control)]
        assert states == ["erased" if keep else "new", "new"]
        assert_sound(node)
    assert_equal_nodes(a, b, late)


def test_forgetting_again_writes_nothing(a: Node) -> None:
    """M-A12: what is asked for is gone afterwards, and nothing is left."""
    records = [a.remember("bees"), a.remember("wasps")]
    assert a.forget(*records) == []
    before = a.store.vector()
    assert a.forget(*records) == []
    assert a.store.vector() == before
    assert sorted(erased_records(a)) == sorted(records)


def test_a_reason_is_needed_to_forget(a: Node) -> None:
    """An empty one is refused before anything happens."""
    record = a.remember("bees")
    reach = reach_of(a.store, [record])
    with pytest.raises(UsageError):
        forget(a.author, reach, with_sources=False, reason=" ", via=Via.LOCAL, now_us=a.now_us)
    assert a.state(record) == "new"


def test_M_A2_a_peer_that_was_away_for_45_days_brings_nothing_back(
    world: World, a: Node, b: Node
) -> None:
    """It held the record all the time; when it returns it erases, whoever pulls first."""
    for first in (True, False):
        record = a.remember(f"bees {first}")
        control = a.remember(f"wasps {first}")
        world.settle()
        a.forget(record)
        world.clock_us += 45 * 24 * HOUR_US
        pair = (a, b) if first else (b, a)
        world.pull(*pair)
        assert a.state(record) == "erased"
        for node in world.everywhere(late=f"late {first}"):
            assert (node.state(record), node.state(control)) == ("erased", "new")
            assert node.search(f"bees {first}".split()[0]) == []


def test_M_A5_a_ring_of_peers_comes_to_rest(tmp_path: Path) -> None:
    """Deleted on one of three in a ring: the log grows by one entry and then never again."""
    world = World(tmp_path, "a", "b", "c")
    a, b, c = world.nodes.values()
    record = a.remember("bees")
    world.settle()
    entries = a.rows("SELECT count(*) FROM entry")[0][0]
    a.forget(record)
    moved = [sum(world.pull(n, o) for n, o in ((b, a), (c, b), (a, c))) for _ in range(5)]
    assert moved == [2, 0, 0, 0, 0]
    for node in (a, b, c):
        assert node.rows("SELECT count(*) FROM entry") == [(entries + 1,)]
        assert node.state(record) == "erased"
    world.close()


@pytest.mark.parametrize("seed", range(3))
def test_M_A20_five_devices_in_random_partitions_all_forget(tmp_path: Path, seed: int) -> None:
    """Records written, edited and forgotten anywhere, pulls at random: in the end gone on all."""
    source = random.Random(seed)
    world = World(tmp_path, *"abcde")
    nodes = list(world.nodes.values())
    alive: set[RecordId] = set()
    gone: set[RecordId] = set()
    for step in range(60):
        node = source.choice(nodes)
        known = [r for r in alive if node.rows("SELECT 1 FROM record WHERE record = ?", r)]
        what = source.random()
        if what < 0.3:
            alive.add(node.remember(f"value {step}"))
        elif what < 0.4 and known:
            chosen = source.choice(sorted(known))
            alive.discard(chosen)
            gone.add(chosen)
            node.forget(chosen)
        else:
            other = source.choice(nodes)
            world.pull(node, other, commits=source.choice([None, 1, 2]))
    world.settle()
    assert gone, f"seed {seed}"
    for node in nodes:
        assert set(erased_records(node)) == gone
        assert set(node.search("value", limit=100)) == alive
    assert_equal_nodes(*nodes)
    world.close()


def test_X_73_a_forgotten_value_does_not_come_back_by_any_way_in(
    world: World, a: Node, b: Node
) -> None:
    """In the old entry, a new entry, an import, another spelling; the control comes in."""
    record, control = a.remember("the code is 4711"), a.remember("bees")
    old = [RawEntry(*row) for row in a.rows("SELECT header, payload, signature FROM entry")]
    world.settle()
    a.forget(record)
    world.settle()
    for node in world.everywhere():
        node.store.append_runs([verify_run(world.agent, old)], node.now_us)
        assert node.rows("SELECT payload FROM entry WHERE record = ?", record) == [(None,)]
        for spelling in ("the code is 4711", " The CODE is\t4711. ", "the code is \uff14711"):
            with pytest.raises(TombstonedError):
                node.remember(spelling)
            rows = [ImportRow(1, Note(spelling)), ImportRow(2, Note(f"other {node.name}"))]
            found = import_rows(node.author, rows, node.now_us)
            assert [line for line, _ in found.problems] == [1]
        with node.author.commit(Via.PERSON, node.now_us) as commit:
            sneaked = commit.create(
                [put("kind", "observation"), put("body.text", f"THE code is 4711{'!' * 3}")]
            )
        assert node.state(sneaked) == "erased"
        assert node.state(control) == "new"
    world.settle()
    assert_equal_nodes(*world.nodes.values())


def test_X_73_what_the_fingerprint_does_not_catch(a: Node) -> None:
    """It knows the whole text of one record; other words, parts, names and turns pass."""
    a.forget(a.remember("the code is 4711"))
    passes = [
        Note("the code was 4711"),
        Note("the code is 4 7 1 1"),
        Note("remember that the code is 4711"),
        Note("4711"),
        Note("a note", title="the code is 4711", tags=("the code is 4711",)),
        Note("the code is 4711", kind="turn"),
    ]
    for note in passes:
        assert a.write(note).created, note


def test_one_remaining_writer_erases_what_a_device_that_is_gone_derived(world: World) -> None:
    """R31: its author may write no more; of those who may, the same one on every node does."""
    a, b, c = world.join("a"), world.join("b"), world.stranger("gone")
    a.grant(c, "write")
    source = a.remember("the code is 4711")
    control = a.remember("bees are kind")
    world.settle("a", "b", "gone")
    derived = made(c, "summary", "there is a code", source)
    kept = made(c, "summary", "bees", control)
    world.pull(b, c)
    a.forget(source)
    world.pull(b, a)
    assert b.state(derived) == "withheld", "positive control: its author is to erase it"
    b.revoke(c, "read")
    world.settle("a", "b")
    for node in (a, b):
        assert node.state(derived) == "erased"
        assert node.state(kept) == "new"
        assert_sound(node)
    assert_equal_nodes(a, b)
    tombstones = a.rows("SELECT device FROM tombstone WHERE record = ?", derived)
    assert len(tombstones) == 1, "one writer, not every writer"
