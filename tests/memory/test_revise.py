"""Revising, retiring and keeping: what replaces what, and that withholding wins."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from memory.writing import NotLiveError, RetiredError, TombstonedError
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World


def test_a_revision_keeps_what_it_does_not_change(world: World, a: Node) -> None:
    """Layer, tags, weight, source and times go over; the text and the reason are new."""
    old = a.remember(
        "bees on the roof",
        layer="year",
        tags=("home", "work"),
        category="preference",
        source="chat 7",
        speaker="Ada",
        session="s-1",
        title="Bees",
        valid_from=1,
        valid_to=2**50,
        weight=3.0,
    )
    new = a.revise(old, "bees in the garden", "they moved")
    for node in world.everywhere():
        was, now = node.seen(old), node.seen(new)
        assert (was.state, now.state) == ("superseded", "new")
        assert now.text == "bees in the garden"
        for field in (
            "layer",
            "tags",
            "category",
            "provenance",
            "source",
            "speaker",
            "session",
            "title",
            "valid_from",
            "valid_to",
            "weight",
        ):
            assert getattr(now, field) == getattr(was, field), field
        assert [value for _, key, value in was.detail["facts"]] == ["they moved"]


def test_a_derived_record_stays_derived_when_it_is_revised(world: World, a: Node) -> None:
    """M-B1: so that erasing the source reaches the new wording too."""
    source = a.remember("the door code is 4711")
    derived = a.remember("a code of four digits", derived_from=(source,))
    revised = a.revise(derived, "a code of several digits")
    a.forget(source)
    for node in world.everywhere():
        assert [node.state(r) for r in (source, derived, revised)] == ["erased"] * 3


def test_only_a_live_record_is_revised_and_the_error_names_its_successor(
    world: World, a: Node
) -> None:
    """The end of the chain is named, as far as it is live."""
    first = a.remember("monday")
    second = a.revise(first, "tuesday")
    third = a.revise(second, "wednesday")
    for node in world.everywhere():
        for record in (first, second):
            with pytest.raises(NotLiveError) as refused:
                node.revise(record, "thursday")
            assert refused.value.details["successor"] == str(third)
    a.retire(third)
    world.settle()
    for node in world.nodes.values():
        with pytest.raises(NotLiveError) as refused:
            node.revise(first, "thursday")
        assert "successor" not in refused.value.details


@pytest.mark.parametrize("text", ["Bees.", " BEES ", "bees"])
def test_the_same_value_is_no_revision(a: Node, text: str) -> None:
    """Another spelling of the same value is refused and nothing is written."""
    record = a.remember("bees")
    before = a.store.vector()
    with pytest.raises(UsageError):
        a.revise(record, text)
    assert a.store.vector() == before


def test_a_revision_needs_a_text_and_a_reason(a: Node) -> None:
    """Neither may be empty."""
    record = a.remember("bees")
    for text, reason in (("", "why"), ("wasps", ""), ("wasps", " ")):
        with pytest.raises(UsageError):
            a.revise(record, text, reason)
    assert a.state(record) == "new"


def test_a_revision_into_a_value_that_may_not_return_is_refused(a: Node) -> None:
    """Forgotten and retired values are refused as in remembering; the record stays live."""
    record, retired, erased = (a.remember(t) for t in ("bees", "wasps", "moths"))
    a.retire(retired)
    a.forget(erased)
    with pytest.raises(RetiredError):
        a.revise(record, "Wasps")
    with pytest.raises(TombstonedError):
        a.revise(record, "Moths")
    assert a.state(record) == "new"


def test_a_revision_into_a_live_value_names_that_record(world: World, a: Node) -> None:
    """Nothing is doubled: the record that says so already is the successor."""
    old, other = a.remember("bees"), a.remember("wasps")
    assert a.revise(old, "WASPS") == other
    for node in world.everywhere():
        assert [node.state(r) for r in (old, other)] == ["superseded", "new"]


def test_a_chain_that_comes_back_to_its_start_loses_nothing(world: World, a: Node) -> None:
    """A value that was replaced does not return by a revision; what is live stays live."""
    first = a.remember("bees")
    second = a.revise(first, "wasps")
    with pytest.raises(RetiredError):
        a.revise(second, "bees")
    for node in world.everywhere():
        assert node.search("wasps bees") == [second]


def test_two_revisions_at_once_give_two_successors_and_a_conflict(
    world: World, a: Node, b: Node
) -> None:
    """Both texts stay live on every device; the old record names both."""
    old = a.remember("the meeting is on monday")
    world.settle()
    left = a.revise(old, "the meeting is on tuesday")
    right = b.revise(old, "the meeting is on friday")
    for node in world.everywhere():
        assert sorted(node.search("meeting")) == sorted([left, right])
        facts = node.seen(old).detail["facts"]
        named = sorted(bytes.fromhex(key.removeprefix("next.")) for _, key, _ in facts)
        assert named == sorted([left, right])
        assert_sound(node)
    assert_equal_nodes(*world.nodes.values())


def test_M_B14_what_was_replaced_does_not_return_when_its_successor_goes(
    world: World, a: Node
) -> None:
    """Forgetting or retiring the new wording does not make the old one live."""
    ends: tuple[Callable[[Node, RecordId], object], ...] = (Node.forget, Node.retire)
    for i, end in enumerate(ends):
        old = a.remember(f"bees {i}")
        control = a.remember(f"moths {i}")
        new = a.revise(old, f"wasps {i}")
        end(a, new)
        assert a.state(old) == "superseded"
        assert a.state(control) == "new"
    for node in world.everywhere(late="c"):
        assert node.search("bees wasps") == []
        assert len(node.search("moths")) == 2


def test_retiring_needs_a_reason_and_says_the_state(world: World, a: Node) -> None:
    """It is idempotent: a second retirement writes nothing."""
    record = a.remember("bees")
    with pytest.raises(UsageError):
        a.retire(record, "")
    assert a.retire(record) == "deprecated"
    before = a.store.vector()
    assert a.retire(record) == "deprecated"
    assert a.store.vector() == before
    for node in world.everywhere():
        assert node.state(record) == "deprecated"


def test_keeping_writes_once(world: World, a: Node) -> None:
    """R41: a verdict that changes nothing writes nothing."""
    record = a.remember("bees")
    assert a.keep(record) == "current"
    before = a.store.vector()
    assert a.keep(record) == "current"
    assert a.store.vector() == before
    for node in world.everywhere():
        assert node.state(record) == "current"
        assert node.search("bees") == [record]


ORDERS = list(permutations([("a", "b"), ("b", "a"), ("c", "a"), ("c", "b")], 3))


@pytest.mark.parametrize("part", range(4))
def test_a_retirement_wins_over_a_keep_in_every_order_of_sync(tmp_path: Path, part: int) -> None:
    """Retired on A and kept on B while they were apart: retired on all, whoever pulls first."""
    for i, order in enumerate(ORDERS[part::4]):
        folder = tmp_path / str(i)
        folder.mkdir()
        world = World(folder, "a", "b", "c")
        a, b, c = world.nodes.values()
        record, control = a.remember("bees"), a.remember("wasps")
        if i % 3 == 0:
            a.keep(record)
        world.settle()
        b.keep(control)
        if i % 2:
            b.keep(record)
        a.retire(record)
        if not i % 2:
            b.keep(record)
        for dst, src in order:
            world.pull(world.nodes[dst], world.nodes[src])
        world.settle()
        for node in (a, b, c):
            states = [node.state(r) for r in (record, control)]
            assert states == ["deprecated", "current"], (order, node.name)
            assert node.search("bees wasps") == [control]
        assert_equal_nodes(a, b, c)
        world.close()


def test_what_a_person_decides_is_not_marked(a: Node) -> None:
    """R21: a gated record is neither retired nor kept by an entry."""
    waiting = a.remember("bees", provenance="web")
    for act in (a.retire, a.keep):
        with pytest.raises(RefusedError, match="person"):
            act(waiting)
    assert a.state(waiting) == "proposed"


def test_what_is_erased_takes_no_mark_and_no_edit(a: Node) -> None:
    """Every verb says that the record is gone."""
    record = a.remember("bees")
    a.forget(record)
    acts: list[Callable[[], object]] = [
        lambda: a.retire(record),
        lambda: a.keep(record),
        lambda: a.tag(record, "x"),
        lambda: a.move(record, "year"),
        lambda: a.revise(record, "wasps"),
    ]
    for act in acts:
        with pytest.raises(NotLiveError):
            act()


def test_R12_an_added_tag_wins_over_a_removal_at_once(world: World, a: Node, b: Node) -> None:
    """A tag that somebody adds again while another takes it away stays; others go."""
    record = a.remember("bees", tags=("home", "work"))
    world.settle()
    a.untag(record, "home", "work")
    b.untag(record, "home")
    b.tag(record, "home")
    for node in world.everywhere():
        assert node.seen(record).tags == ("home",)


def test_concurrent_moves_and_tags_give_one_result(world: World, a: Node, b: Node) -> None:
    """One layer wins, the same everywhere; both new tags stay."""
    record = a.remember("bees")
    world.settle()
    a.move(record, "year")
    b.move(record, "week")
    a.tag(record, "home")
    b.tag(record, "work")
    nodes = world.everywhere()
    assert {node.seen(record).layer for node in nodes} <= {"year", "week"}
    assert len({node.seen(record).layer for node in nodes}) == 1
    assert {node.seen(record).tags for node in nodes} == {("home", "work")}
    assert_equal_nodes(*nodes)
