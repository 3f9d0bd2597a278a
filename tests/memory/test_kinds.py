"""Kinds beyond observations, on A, on B after sync, and on C joining late."""

from pathlib import Path

import pytest

from crdt.entry import Via
from keys.errors import NotFoundError, RoostError, UsageError
from keys.ids import RecordId
from memory import kinds, layers
from memory.notes import Note
from memory.query import Filters, get, list_records, search
from memory.scope import Scope
from memory.tree import Tree
from memory.writing import RetiredError, TombstonedError
from tests.support.author import seeded
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes
from tests.support.memory_world import Node, World

ROOT = Path(__file__).parents[2]


def entity(
    node: Node, name: str, parent: RecordId | None = None, root: str = "persons"
) -> RecordId:
    note = Note(name)
    return kinds.add_entity(node.author, note, root, parent, Via.LOCAL, node.now_us).record


def prop(node: Node, record: RecordId, name: str, value: str) -> RecordId:
    return kinds.set_property(
        node.author, record, name, Note(value), "said so", via=Via.LOCAL, now_us=node.now_us
    ).record


def relate(node: Node, start: RecordId, name: str, end: RecordId) -> RecordId:
    ends = (start, end)
    return kinds.add_relation(node.author, ends, Note(name), Via.LOCAL, node.now_us).record


def move(node: Node, record: RecordId, parent: RecordId | None) -> None:
    kinds.move_entity(node.author, record, parent, Via.LOCAL, node.now_us)


def tree(node: Node) -> Tree:
    return Tree.of(node.store, node.readers, node.now_us)


# -- entities, properties, relations -------------------------------------------------------------


def test_a_property_is_corrected_and_its_history_stays(world: World, a: Node) -> None:
    ada, bob = entity(a, "Ada"), entity(a, "Bob")
    first = prop(a, ada, "city", "London")
    second = prop(a, ada, "City", "Paris")
    other = prop(a, bob, "city", "Paris")  # the same word of another entity is no duplicate
    for node in world.everywhere():
        assert node.state(first) == "superseded", node.name
        assert node.state(second) == node.state(other) == "new", node.name
        held = kinds.properties(node.store, node.readers, ada, node.now_us, "CITY")
        assert [s.text for s in held] == ["Paris"]
        assert node.search("London") == []
        assert set(node.search("Paris")) == {second, other}


def test_a_retired_value_of_a_property_returns_only_there(world: World, a: Node) -> None:
    ada, bob = entity(a, "Ada"), entity(a, "Bob")
    first = prop(a, ada, "city", "London")
    a.retire(first)
    with pytest.raises(RetiredError):
        prop(a, ada, "city", "  london ")
    assert a.state(prop(a, bob, "city", "London")) == "new"
    a.forget(prop(a, ada, "phone", "555 1234"))
    with pytest.raises(TombstonedError):
        prop(a, ada, "phone", "555 1234")


def test_an_erased_end_erases_and_a_withheld_end_withholds(world: World, a: Node, b: Node) -> None:
    secret = seeded("an entity").hex()
    ada, bob, eve = entity(a, "Ada"), entity(a, "Bob"), entity(a, f"Eve {secret}")
    knows, fears = relate(a, ada, "knows", bob), relate(a, ada, f"fears {secret}", eve)
    city = prop(a, bob, "city", "Rome")
    phone = prop(a, eve, "phone", secret)
    world.settle()
    late = prop(b, eve, "street", secret)  # B writes while A forgets
    assert a.forget(eve) == []
    a.retire(bob)
    for node in world.everywhere():
        assert [node.state(r) for r in (eve, fears, phone, late)] == ["erased"] * 4, node.name
        assert [node.state(r) for r in (knows, city)] == ["withheld"] * 2, node.name
        assert node.state(ada) == "new"
        assert node.search("Rome") == node.search("knows") == []
        assert node.search("Ada") == [ada]  # the control
        assert node.clean()
        assert found_in(node.home, secret) == [], node.name
    a.lift(bob)
    for node in world.everywhere("d"):
        assert [node.state(r) for r in (bob, knows, city)] == ["new"] * 3, node.name
    assert_equal_nodes(*world.nodes.values())


def test_r15_concurrent_moves_make_no_cycle(world: World, a: Node, b: Node) -> None:
    one, two, three = entity(a, "one"), entity(a, "two"), entity(a, "three")
    world.settle()
    move(a, one, two)
    move(b, two, three)
    world.settle()
    with pytest.raises(UsageError, match="itself"):
        move(a, three, one)
    move(a, three, None)
    move(b, three, None)
    world.settle()
    move(a, two, None)
    world.settle()
    move(a, three, one)  # one hangs on two
    move(b, two, three)
    for node in world.everywhere():
        found = tree(node)
        assert found.broken == (min(one, two, three),), node.name
        assert sum(parent is None for parent in found.parents.values()) == 1
        for record in (one, two, three):
            assert len(found.line(record)) <= 3
    assert_equal_nodes(*world.nodes.values())


def test_an_entity_with_children_stays_and_a_child_elsewhere_keeps_it_in_sight(
    world: World, a: Node, b: Node
) -> None:
    top, mid = entity(a, "top"), entity(a, "other")
    child = entity(a, "child", mid)
    with pytest.raises(kinds.ChildrenError) as refused:
        kinds.refuse_with_children(a.store, mid, a.now_us)
    assert refused.value.details["children"] == [str(child)]
    world.settle()
    kinds.refuse_with_children(a.store, top, a.now_us)
    a.retire(top)
    orphan = entity(b, "orphan", top)
    for node in world.everywhere():
        found = tree(node)
        assert found.lost == (top,), node.name
        assert found.parents[orphan] is None
        assert found.parents[child] == mid


def test_S_E8_one_name_on_two_devices_stays_two_records(world: World, a: Node, b: Node) -> None:
    records = {entity(a, "Ada"), entity(b, "ADA")}
    world.settle()
    assert entity(a, "ada") == min(records) == entity(b, " Ada ")
    for node in world.everywhere():
        assert set(node.search("ada")) == records


def test_a_rename_is_found_by_its_new_name(world: World, a: Node) -> None:
    ada = entity(a, "Ada")
    kinds.rename_entity(a.author, ada, "Countess", Via.LOCAL, a.now_us)
    for node in world.everywhere():
        assert node.search("Countess") == [ada]
        assert node.search("Ada") == []


# -- sessions, layers, perspectives, skills ------------------------------------------------------


def append(node: Node, session: str, text: str, **more: str | None) -> RecordId:
    note = Note(text, session=session, speaker="Bob")
    channel, message = more.get("channel"), more.get("message")
    return kinds.append_turn(node.author, note, channel, message, Via.LOCAL, node.now_us).record


def test_turns_make_their_session_and_take_its_channel(world: World, a: Node) -> None:
    first = append(a, "standup", "we ship on Friday", channel="work")
    second = append(a, "Standup", "agreed", message="m-2")
    for node in world.everywhere():
        for record in (first, second):
            assert node.seen(record).detail["body"]["channel"] == "work"
        assert node.search("ship", channel="work") == [first]
        assert node.search("ship", channel="home") == []
        assert len(kinds.live_named(node.store, "session", "standup", node.now_us)) == 1


def test_a_summary_cites_its_turns_and_falls_with_one(world: World, a: Node) -> None:
    turn = append(a, "s", "the code is 1234")
    append(a, "s", "thanks")

    def summary(text: str) -> RecordId:
        note = Note(text, session="s")
        return kinds.summarise(a.author, note, "newer", via=Via.LOCAL, now_us=a.now_us).record

    old, new = summary("they spoke"), summary("they spoke of a code")
    assert [a.state(old), a.state(new)] == ["superseded", "new"]
    a.forget(turn)
    for node in world.everywhere():
        assert node.state(new) == node.state(old) == "erased", node.name
        assert node.search("thanks") != []


def test_layers_are_defaults_until_one_is_changed_on_two_devices_at_once(
    world: World, a: Node, b: Node
) -> None:
    for node, changes in ((a, {"budget": 2_000}), (b, {"review_cron": "0 5 * * *"})):
        layers.set_layer(node.author, "day", changes, Via.LOCAL, node.now_us)
    for node in world.everywhere():
        day, week, *_ = layers.layers(node.store, node.readers, node.now_us)
        assert (day.budget, day.review_cron, day.changed) == (2_000, "0 5 * * *", True)
        assert (week.budget, week.changed) == (4_096, False)
        assert node.search("day") == []  # how a layer is set is no memory
    for bad in ({"budget": -1}, {"review_cron": "soon"}, {}):
        with pytest.raises(UsageError):
            layers.set_layer(a.author, "day", bad, Via.LOCAL, a.now_us)


def test_a_newer_perspective_supersedes_the_one_before(world: World, a: Node) -> None:
    def write(name: str, text: str) -> RecordId:
        return kinds.set_perspective(
            a.author, name, Note(text), "newer", via=Via.LOCAL, now_us=a.now_us
        ).record

    old, other, new = write("current", "well"), write("future", "well"), write("current", "better")
    for node in world.everywhere():
        assert [node.state(r) for r in (old, other, new)] == ["superseded", "new", "new"]


def test_skills_and_identity_wait_for_a_person(world: World, a: Node) -> None:
    skill = kinds.add_skill(a.author, "greet", Note("echo hi"), Via.LOCAL, a.now_us).record
    core = kinds.add_identity(a.author, Note("I am muse"), Via.LOCAL, a.now_us).record
    more = kinds.add_identity(a.author, Note("I like bees"), Via.LOCAL, a.now_us).record
    assert a.seen(more).detail["body"]["name"] == "amendment"
    for node in world.everywhere():
        assert [node.state(r) for r in (skill, core, more)] == ["proposed"] * 3
        assert node.search("echo") == node.search("muse") == []
    a.approve(skill, core)
    for node in world.everywhere("d"):
        assert [node.state(r) for r in (skill, core, more)] == ["current", "current", "proposed"]
        assert node.search("echo") == [skill]
        assert node.search("bees") == []


def test_a_command_for_one_kind_refuses_another(world: World, a: Node) -> None:
    note = a.remember("just a note")
    for act in (lambda: relate(a, note, "x", note), lambda: move(a, note, None)):
        with pytest.raises(kinds.WrongKindError):
            act()
    with pytest.raises(RoostError):
        prop(a, note, "city", "Rome")


def test_the_table_of_the_layers_is_what_the_program_does(a: Node) -> None:
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "layers.md").read_text().splitlines()
        if line.startswith("|")
    ][2:]
    seconds = {"h": layers.HOUR_S, "d": layers.DAY_S}
    written = [
        (name, review, intake, int(age.split()[0]) * seconds[age.split()[1]], int(budget))
        for name, review, intake, age, budget in rows
    ]
    held = layers.layers(a.store, a.readers, a.now_us)
    assert written == [(x.name, x.review_cron, x.intake_cron, x.min_age_s, x.budget) for x in held]


def test_a_scope_of_a_channel_sees_no_turn_of_another(world: World, a: Node) -> None:
    work = append(a, "standup", "ship the boat", channel="work")
    home = append(a, "dinner", "ship the soup", channel="home")
    fact = a.remember("a ship has a hull")
    for node in world.everywhere():
        scope = Scope(world.agent, every_state=False, channel="work")
        now = node.now_us
        found = search(node.store, scope, "ship", Filters(), limit=9, now_us=now)
        assert {s.record for s in found} == {work, fact}, node.name
        page = list_records(node.store, scope, Filters(), limit=9, cursor=None, now_us=now)
        assert home not in {s.record for s in page.records}
        assert get(node.store, scope, work, now_us=now).text == "ship the boat"
        with pytest.raises(NotFoundError):
            get(node.store, scope, home, now_us=now)
        assert set(node.search("ship")) == {work, home, fact}


@pytest.mark.parametrize("provenance", ["tool", "web", "file", "import"])
def test_what_a_tool_says_of_an_entity_waits_too(world: World, a: Node, provenance: str) -> None:
    ada = entity(a, "Ada")
    note = Note("London", provenance=provenance)
    said = kinds.set_property(
        a.author, ada, "city", note, "so", via=Via.LOCAL, now_us=a.now_us
    ).record
    mine = prop(a, ada, "country", "Britain")
    for node in world.everywhere():
        assert [node.state(r) for r in (said, mine)] == ["proposed", "new"]
        assert node.search("London Britain") == [mine]
