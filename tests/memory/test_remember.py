"""Remembering: what is written, what only reinforces, and what is refused."""

import pytest

from crdt.entry import Via, tombstone_id
from keys.errors import RefusedError, UsageError
from keys.limits import (
    COMMIT_ENTRIES_MAX,
    REASON_BYTES_MAX,
    SOURCES_PER_RECORD_MAX,
    TAG_BYTES_MAX,
    TAGS_PER_RECORD_MAX,
    TEXT_BYTES_MAX,
)
from memory.notes import Note, check_reason
from memory.writing import RetiredError, TombstonedError, remember_batch
from tests.support.memory_world import Node, World

SPELLINGS = (
    "The owner keeps BEES on the roof",
    "  the owner keeps bees\ton the roof.  ",
    "the owner\u00a0keeps bees on the roof!",
    "\uff34he owner keeps bees on the roof",  # a full-width T
    "the owner keeps\u200b bees on the roof",
)


def test_a_note_is_kept_with_all_that_was_said_of_it(world: World, a: Node) -> None:
    """Every field that a note has reads the same on every device."""
    note = Note(
        text="The owner keeps bees on the roof",
        layer="month",
        tags=("home", "animals"),
        category="preference",
        provenance="agent",
        source="chat 7",
        speaker="Ada",
        session="s-1",
        title="Bees",
        valid_from=1_000_000,
        valid_to=2**50,
        expires=2**51,
        weight=2.5,
    )
    written = a.write(note, Via.AGENT)
    assert written.created
    for node in world.everywhere():
        seen = node.seen(written.record)
        assert (
            seen.text,
            seen.layer,
            seen.tags,
            seen.category,
            seen.provenance,
            seen.source,
            seen.speaker,
            seen.session,
            seen.title,
            seen.valid_from,
            seen.valid_to,
            seen.expires,
            seen.weight,
        ) == (
            note.text,
            note.layer,
            tuple(sorted(note.tags)),
            note.category,
            note.provenance,
            note.source,
            note.speaker,
            note.session,
            note.title,
            note.valid_from,
            note.valid_to,
            note.expires,
            note.weight,
        )
        assert (seen.state, seen.via, seen.device) == ("new", Via.AGENT, a.key.device)


def test_a_batch_is_one_commit_and_reports_what_it_refuses(a: Node) -> None:
    """The good notes of a batch are written together; the bad ones are named by their place."""
    notes = [Note("one"), Note(""), Note("two"), Note("three", layer="eon"), Note("ONE.")]
    result = remember_batch(a.author, notes, Via.LOCAL, a.now_us)
    assert [place for place, _ in result.refused] == [1, 3]
    assert [w.created for w in result.written] == [True, True, False]
    assert result.written[0].record == result.written[2].record
    lefts = [row[0] for row in a.rows("SELECT seq FROM entry WHERE signature <> x'' ORDER BY seq")]
    assert lefts == [1, 3], "the opening, and the end of one commit of two"


def test_a_batch_larger_than_a_commit_is_several(world: World, a: Node, b: Node) -> None:
    """More records than a commit may have are written in whole commits and arrive whole."""
    notes = [Note(f"number {i}") for i in range(COMMIT_ENTRIES_MAX + 88)]
    result = remember_batch(a.author, notes, Via.LOCAL, a.now_us)
    assert len(result.written) == len(notes)
    signed = [row[0] for row in a.rows("SELECT seq FROM entry WHERE signature <> x'' ORDER BY seq")]
    assert signed == [1, 1 + COMMIT_ENTRIES_MAX, 1 + len(notes)]
    world.settle()
    assert a.digest == b.digest


def test_M_A16_the_same_value_again_reinforces_and_makes_no_second_row(
    world: World, a: Node, b: Node
) -> None:
    """In every spelling: one live row, counted once more each time."""
    record = a.remember(SPELLINGS[0])
    other = a.remember("The owner keeps wasps on the roof")
    for spelling in SPELLINGS:
        assert a.write(Note(spelling)) == a.write(Note(spelling))
    assert a.rows("SELECT record, times FROM reinforced") == [(record, 2 * len(SPELLINGS))]
    for node in world.everywhere():
        assert sorted(node.search("owner roof")) == sorted([record, other])
        assert node.search("bees") == [record]
        assert node.seen(record).text == SPELLINGS[0]


def test_reinforcing_adds_tags_and_changes_nothing_else(world: World, a: Node) -> None:
    """R29: the union of the tags; layer, weight, title and provenance stay the first ones."""
    record = a.remember("bees", tags=("home",), layer="year", weight=5.0, title="Bees")
    a.remember("BEES", tags=("home", "work"), layer="day", weight=0.5, title="no", source="x")
    for node in world.everywhere():
        seen = node.seen(record)
        assert seen.tags == ("home", "work")
        assert (seen.layer, seen.weight, seen.title, seen.source) == ("year", 5.0, "Bees", None)


def test_M_D10_repeating_a_value_never_raises_trust(a: Node) -> None:
    """What an agent says ten times is as new as what it says once."""
    record = a.remember("bees", provenance="agent")
    for _ in range(10):
        a.write(Note("bees", provenance="user"), Via.AGENT)
    assert (a.state(record), a.seen(record).provenance) == ("new", "agent")


def test_turns_are_never_merged(world: World, a: Node) -> None:
    """R27: two equal turns of a session are two turns, also when one of them is forgotten."""
    first, second = (a.remember("yes", kind="turn", session="s") for _ in range(2))
    third = a.remember("yes")
    assert len({first, second, third}) == 3
    a.forget(first)
    for node in world.everywhere():
        assert [node.state(r) for r in (first, second, third)] == ["erased", "new", "new"]


def test_values_written_apart_live_side_by_side_and_one_is_shown(
    world: World, a: Node, b: Node
) -> None:
    """Both records stay; the smaller id is canonical and the other reads as its duplicate."""
    records = sorted([a.remember("bees"), b.remember("Bees.")])
    assert a.search("bees") != b.search("bees")
    for node in world.everywhere():
        assert node.search("bees") == [records[0]]
        assert [node.state(r) for r in records] == ["new", "duplicate"]
        assert node.seen(records[1]).duplicate == records[0]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_M_A1_a_forgotten_value_is_refused_in_every_spelling(
    world: World, a: Node, spelling: str
) -> None:
    """The refusal has its own code, names the tombstone, and holds on every device."""
    record = a.remember(SPELLINGS[0])
    kept = a.remember("wasps")
    a.forget(record)
    for node in world.everywhere():
        with pytest.raises(TombstonedError) as refused:
            node.remember(spelling)
        assert refused.value.exit_code == 3
        assert refused.value.details["tombstone"] == str(tombstone_id(world.agent, record))
        assert node.remember("WASPS") == kept


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_retired_value_is_refused_in_every_spelling(world: World, a: Node, spelling: str) -> None:
    """A person is asked; the record that refuses is named."""
    record = a.remember(SPELLINGS[0])
    a.retire(record)
    for node in world.everywhere():
        with pytest.raises(RetiredError) as refused:
            node.remember(spelling)
        assert refused.value.details["record"] == str(record)


def test_an_old_wording_is_refused_and_the_new_one_is_not(world: World, a: Node) -> None:
    """A superseded value does not return; its successor's value reinforces."""
    old = a.remember("bees")
    new = a.revise(old, "wasps")
    for node in world.everywhere():
        with pytest.raises(RetiredError):
            node.remember("Bees")
        assert node.remember("Wasps") == new


REFUSED_NOTES = {
    "no text": Note(""),
    "only space": Note(" \n\t\u00a0"),
    "too long": Note("x" * (TEXT_BYTES_MAX + 1)),
    "too long in bytes": Note("é" * (TEXT_BYTES_MAX // 2 + 1)),
    "kind": Note("x", kind="tombstone"),
    "layer": Note("x", layer="eon"),
    "category": Note("x", category="Fact"),
    "provenance": Note("x", provenance="god"),
    "negative weight": Note("x", weight=-1.0),
    "infinite weight": Note("x", weight=float("inf")),
    "no weight": Note("x", weight=float("nan")),
    "ends as it starts": Note("x", valid_from=5, valid_to=5),
    "ends before it starts": Note("x", valid_from=5, valid_to=4),
    "empty tag": Note("x", tags=(" ",)),
    "control character in a tag": Note("x", tags=("a\nb",)),
    "long tag": Note("x", tags=("t" * (TAG_BYTES_MAX + 1),)),
    "many tags": Note("x", tags=tuple(f"t{i}" for i in range(TAGS_PER_RECORD_MAX + 1))),
    "long source": Note("x", source="s" * 1025),
    "long session": Note("x", session="s" * 1025),
    "long title": Note("x", title="s" * 1025),
    "long speaker": Note("x", speaker="s" * 129),
}


@pytest.mark.parametrize("note", REFUSED_NOTES.values(), ids=REFUSED_NOTES.keys())
def test_what_cannot_be_stored_is_refused_before_anything_is_written(a: Node, note: Note) -> None:
    """M-E5, M-H28: a bad value is an error that names it; nothing enters the log."""
    with pytest.raises(UsageError):
        a.write(note)
    assert a.store.vector() == {}
    assert a.remember("a good note")


def test_the_largest_of_everything_is_accepted(world: World, a: Node, b: Node) -> None:
    """At its bounds a note is written and arrives."""
    record = a.remember(
        "x" * TEXT_BYTES_MAX,
        tags=tuple(f"{i:02}{'t' * (TAG_BYTES_MAX - 2)}" for i in range(TAGS_PER_RECORD_MAX)),
        source="s" * 1024,
        speaker="s" * 128,
    )
    world.settle()
    assert b.seen(record).text == a.seen(record).text
    assert len(b.seen(record).tags) == TAGS_PER_RECORD_MAX


def test_a_note_has_at_most_so_many_sources(a: Node) -> None:
    """One source more than the bound is refused with the number."""
    source = a.remember("a source")
    sources = (source,) * (SOURCES_PER_RECORD_MAX + 1)
    with pytest.raises(UsageError, match=str(SOURCES_PER_RECORD_MAX)):
        a.remember("derived", derived_from=sources)


@pytest.mark.parametrize("reason", ["", "  \n", "x" * (REASON_BYTES_MAX + 1)])
def test_a_reason_has_words_and_an_end(reason: str) -> None:
    """An empty or endless reason is refused."""
    with pytest.raises(UsageError):
        check_reason(reason)
    assert check_reason("  it \n was so ") == "it was so"


def test_M_H13_a_lone_surrogate_is_replaced_at_the_border(world: World, a: Node) -> None:
    """Half of a character in text, tag or name becomes U+FFFD; the rest is kept byte for byte."""
    record = a.remember("a\ud83db 🍕", tags=("t\udc00",), source="s\ud800", speaker="p\udfff")
    whole = a.remember("an astral pair \ud83c\udf55 is one pizza")
    for node in world.everywhere():
        seen = node.seen(record)
        assert (seen.text, seen.tags) == ("a\ufffdb 🍕", ("t\ufffd",))
        assert (seen.source, seen.speaker) == ("s\ufffd", "p\ufffd")
        assert node.seen(whole).text == "an astral pair 🍕 is one pizza"
        assert node.search("a\ud83db") == node.search("a\ufffdb") == [record]


def test_S_J7_text_is_kept_byte_for_byte(world: World, a: Node) -> None:
    """NFC, NFD, right-to-left, controls and NUL come back as they went in; tags are NFC."""
    texts = ["Zo\u00eb", "Zoe\u0308 too", "שלום", "tab\tnew\nline", "nul\0inside", "\u202eevil"]
    records = [a.remember(text, tags=("Zoe\u0308",)) for text in texts]
    for node in world.everywhere():
        assert [node.seen(r).text for r in records] == texts
        assert {node.seen(r).tags for r in records} == {("Zo\u00eb",)}


def test_who_may_not_write_is_told_so(world: World, a: Node) -> None:
    """A device with the right to read has nothing to write with, and its log stays unopened."""
    guest = world.stranger("guest")
    a.remember("bees")
    a.grant(guest, "read")
    world.pull(guest, a)
    with pytest.raises(RefusedError):
        guest.remember("wasps")
    assert guest.search("bees")
    assert [log.device for log in guest.store.vector()] == [a.key.device]
