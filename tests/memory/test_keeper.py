"""Intake, review and expiry by rules, on one device and on several."""

import pytest

from keys.ids import RecordId
from memory import expiring, intake, reviewing
from memory.context import Asked, context
from memory.gist import gist, sentences
from memory.layers import HOUR_S
from memory.notes import Note
from memory.rows import LAYERS
from tests.support.author import seeded
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes
from tests.support.memory_world import Node, World

RUN = bytes(16)
FACT = "I moved to Lisbon in May 2023."
DAY_US = 86_400_000_000


def take(node: Node) -> intake.Outcome:
    return intake.take_in(node.author, RUN, node.now_us)


def turn(node: Node, text: str, **fields: object) -> RecordId:
    note = Note(text, kind="turn", session="s", speaker="Ada", **fields)  # type: ignore[arg-type]
    return node.write(note).record


def review(node: Node, layer: str) -> reviewing.Outcome:
    return reviewing.review(node.author, layer, RUN, node.now_us)


def later(world: World, seconds: int) -> None:
    world.clock_us += seconds * 1_000_000


# -- what is kept of a text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [FACT, "Ada works at the harbour since Tuesday.", "我昨天搬到了里斯本，住在海边。"],  # noqa: RUF001
)
def test_what_says_something_is_kept_as_it_was_said(text: str) -> None:
    assert gist(text) == text
    assert gist(f"Hey! {text} How are you?") == text


@pytest.mark.parametrize("text", ["", "Hi!", "Thanks, that sounds great!", "How are you?", "ok"])
def test_small_talk_is_not_kept(text: str) -> None:
    assert gist(text) == ""


def test_sentences_lose_nothing() -> None:
    text = "One. Two!\nThree? 四。五！六"  # noqa: RUF001
    assert "".join(sentences(text)).replace(" ", "") == text.replace(" ", "").replace("\n", "")


# -- intake --------------------------------------------------------------------------------------


def test_a_turn_becomes_one_observation_however_often_intake_runs(
    world: World, a: Node, b: Node
) -> None:
    source = turn(a, f"Hi there! {FACT}")
    turn(a, "Thanks!")
    assert take(a).wrote == [intake.observation_id(a.store, source)]
    world.settle()
    for node in (a, b, a):  # B wrote nothing, so B takes nothing in
        assert take(node).wrote == []
    a.store.connection.execute("DELETE FROM meta WHERE key = 'intake'")
    assert take(a).wrote == []
    record = intake.observation_id(a.store, source)
    for node in world.everywhere():
        seen = node.seen(record)
        assert (seen.text, seen.speaker, seen.session, seen.state) == (FACT, "Ada", "s", "new")
        assert seen.detail["sources"] == [source]
        assert record in node.search("Lisbon", kinds=("observation",))


def test_what_comes_from_a_tool_waits_as_its_source_would(world: World, a: Node) -> None:
    record = intake.observation_id(a.store, turn(a, FACT, provenance="tool"))
    take(a)
    for node in world.everywhere():
        assert node.state(record) == "proposed"
        assert node.search("Lisbon", kinds=("observation",)) == []


def test_M_A18_forgotten_text_does_not_come_back_by_intake(world: World, a: Node, b: Node) -> None:
    secret = f"I moved to {seeded('a place').hex()} in May 2023."
    source = turn(a, secret)
    take(a)
    kept = turn(a, FACT)
    take(a)
    world.settle()
    a.forget(source)
    world.settle()
    again = turn(b, secret)  # a turn may say it again; what is derived from it may not
    for _ in range(10):
        for node in (a, b):
            node.store.connection.execute("DELETE FROM meta WHERE key = 'intake'")
            take(node)
        world.settle()
    for node in world.everywhere():
        assert node.state(intake.observation_id(a.store, source)) == "erased"
        held = node.rows(
            "SELECT record FROM record WHERE record = ?",
            bytes(intake.observation_id(b.store, again)),
        )
        assert held == []
        assert node.state(intake.observation_id(a.store, kept)) == "new"
    b.forget(again)
    world.settle()
    assert a.clean()
    assert b.clean()
    assert found_in(a.home, secret) == found_in(b.home, secret) == []


def test_M_D11_a_block_in_a_transcript_is_not_learned_again(a: Node) -> None:
    a.remember("the boat leaves Oslo on 3 June 2024 with Ada")
    block = context(a.store, a.readers, Asked("boat", 4_096, "2026-03-01", "muse"), a.now_us)
    turn(a, f"{block.text}\n{FACT}")
    (record,) = take(a).wrote
    assert a.seen(record).text == FACT


def test_a_marked_source_is_passed_over(a: Node) -> None:
    marked = turn(a, FACT, extra=(("field.no_intake", True),))
    other = turn(a, FACT.replace("Lisbon", "Porto"))
    assert take(a).wrote == [intake.observation_id(a.store, other)]
    assert a.state(marked) == "new"


def test_a_value_that_is_known_is_not_written_twice(a: Node) -> None:
    a.remember(FACT)
    turn(a, FACT)
    outcome = take(a)
    assert (outcome.known, outcome.wrote) == (1, [])


# -- review --------------------------------------------------------------------------------------


def test_a_memory_moves_on_with_its_age_and_a_second_run_writes_nothing(
    world: World, a: Node
) -> None:
    record = a.remember("bees hum")
    assert review(a, "day").looked_at == 0
    later(world, 2 * HOUR_S)
    assert review(a, "day").promoted == []
    later(world, 24 * HOUR_S)
    before = a.store.vector()
    assert review(a, "day").promoted == [record]
    assert a.store.vector() != before
    before = a.store.vector()
    for layer in LAYERS:
        assert review(a, layer).promoted == []
    assert a.store.vector() == before  # R41
    for node in world.everywhere():
        assert (node.seen(record).layer, node.state(record)) == ("week", "current")
    for age, layer in ((7, "month"), (30, "year"), (365, "decade"), (5 * 365, "century")):
        later(world, age * 24 * HOUR_S)
        for name in LAYERS:
            review(a, name)
        assert a.seen(record).layer == layer
    later(world, 10 * 365 * 24 * HOUR_S)
    review(a, "century")
    assert a.seen(record).layer == "millennium"
    assert review(a, "millennium").looked_at == 0


def test_M_D5_M_G1_to_retire_is_a_persons(world: World, a: Node, b: Node) -> None:
    light = a.remember("it rained", weight=0.1)
    rule = a.remember("never shout", category="rule", weight=0.1)
    world.settle()
    later(world, 2 * HOUR_S)
    first, second = review(a, "day"), review(b, "day")
    assert first.proposed == second.proposed == [reviewing.verdict_id(a.store, light, "retire")]
    for node in world.everywhere():
        assert node.state(first.proposed[0]) == "proposed"
        assert node.state(light) == "new"
        assert node.search("rained") == [light]
        assert node.search("weighs") == []
        assert node.state(rule) == "proposed"
    assert review(a, "day").proposed == []
    a.approve(first.proposed[0])
    for node in world.everywhere("d"):
        assert node.search("weighs") == []  # what a keeper thinks is no memory
    reviewing.carry_out(a.author, a.seen(first.proposed[0]), a.now_us)
    for node in world.everywhere("e"):
        assert node.state(light) == "deprecated"
    assert_equal_nodes(*world.nodes.values())


def test_two_devices_that_review_at_once_agree(world: World, a: Node, b: Node) -> None:
    records = [a.remember(f"memory {i}") for i in range(20)]
    world.settle()
    later(world, 25 * HOUR_S)
    assert review(a, "day").promoted == review(b, "day").promoted == records
    for node in world.everywhere():
        assert {node.seen(r).layer for r in records} == {"week"}
    assert_equal_nodes(*world.nodes.values())


# -- expiry --------------------------------------------------------------------------------------


def test_M_B4_what_has_expired_is_erased_with_what_was_derived(world: World, a: Node) -> None:
    secret = seeded("expires").hex()
    over = a.remember(secret, expires=world.clock_us + DAY_US)
    derived = a.remember(f"of {secret}", derived_from=(over,))
    kept = a.remember("bees", expires=world.clock_us + 9 * DAY_US)
    assert expiring.expire(a.author, a.now_us) == []
    world.clock_us += 2 * DAY_US
    assert expiring.expire(a.author, a.now_us) == [over, derived]
    for node in world.everywhere():
        assert [node.state(r) for r in (over, derived, kept)] == ["erased", "erased", "new"]
        assert node.clean()
        assert found_in(node.home, secret) == []
    reasons = {r[0] for r in a.rows("SELECT reason FROM tombstone")}
    assert reasons == {"expired", "derived"}
    assert expiring.expire(a.author, a.now_us) == []


def test_R41_reviews_of_unchanged_data_write_nothing_for_a_year(world: World, a: Node) -> None:
    records = [a.remember(f"memory {i}") for i in range(5)]
    sizes = []
    for _ in range(60):
        later(world, 7 * 24 * HOUR_S)
        for layer in LAYERS:
            review(a, layer)
        sizes.append(len(a.rows("SELECT 1 FROM entry")))
    assert sizes[-1] <= 1 + 5 * 6
    assert all(a.state(r) == "current" for r in records)
