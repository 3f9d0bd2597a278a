"""Times on every node: one instant in every zone, no naive time, nothing that is never valid."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from crdt.entry import Via
from crdt.payload import put
from keys.errors import UsageError
from memory.clocks import clock_suspects
from memory.moving import ImportRow, import_rows
from memory.notes import Note
from memory.query import get, never_valid
from memory.writing import change
from node.params import Params
from node.times import parse_time
from node.verbs.moving import export_line
from node.verbs.reading import filters_of
from node.verbs.writing import note_of
from tests.support.memory_world import HOUR_US, Node, World

DAY_US = 24 * HOUR_US
ZONES = ("Pacific/Kiritimati", "America/Los_Angeles", "Europe/Berlin", "UTC")
TIMES = ("valid_from", "valid_to", "expires")
Zone = Callable[[str], None]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Zone]:
    """Sets this process's time zone, for the test."""

    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


def test_M_E1_an_instant_is_the_same_in_every_zone_and_across_a_clock_change(
    world: World, a: Node, zone: Zone
) -> None:
    """Expires in the night when Berlin's clocks change: live a second before, gone at it."""
    zone("America/Los_Angeles")
    note = note_of(
        Params({"text": "the code of the gate", "expires": "2026-03-29T03:30+02:00"}), a.store, 1
    )
    ends = note.expires or 0
    record = a.write(note).record
    a.remember("the colour of the gate")
    for node in world.everywhere():
        for name in ZONES:
            zone(name)
            assert parse_time("2026-03-29T01:30Z") == ends
            seen = get(node.store, node.scope, record, now_us=ends)
            assert (seen.expires, seen.state_at(ends - 1), seen.state_at(ends)) == (
                ends,
                "new",
                "expired",
            )
    zone("Europe/Berlin")
    midnights = [parse_time(f"2026-03-{day}") or 0 for day in (28, 29, 30)]
    assert [b - a for a, b in pairwise(midnights)] == [DAY_US, 23 * HOUR_US]


def test_M_E2_a_time_without_offset_is_no_time_and_all_that_is_kept_are_whole_numbers(
    world: World, a: Node
) -> None:
    for key in TIMES:
        for naive in ("2026-03-01T12:00", "2026-03-01 12:00:00", "20260301T120000"):
            with pytest.raises(UsageError, match="is not a time"):
                note_of(Params({"text": "bees", key: naive}), a.store, 1)
    given = {key: f"202{i}-03-01T12:00:00.25-07:00" for i, key in enumerate(TIMES, 6)}
    record = a.write(note_of(Params({"text": "bees", **given}), a.store, 1)).record
    for node in world.everywhere():
        kinds = node.rows(
            "SELECT DISTINCT typeof(valid_from), typeof(valid_to), typeof(expires),"
            " typeof(created_ms), typeof(changed_ms) FROM record WHERE record = ?",
            record,
        )
        kinds += node.rows("SELECT DISTINCT typeof(time_ms), typeof(received_us) FROM entry")
        assert {kind for row in kinds for kind in row} == {"integer"}
        seen = node.seen(record)
        assert [seen.valid_from, seen.valid_to, seen.expires] == [
            parse_time(text) for text in given.values()
        ]


def test_M_E5_what_a_peer_made_valid_at_no_time_is_named(world: World, a: Node, b: Node) -> None:
    """Here it is refused; what another program wrote is found by the scan, on every node."""
    start = world.clock_us
    with pytest.raises(UsageError, match="not after"):
        a.remember("never so", valid_from=start, valid_to=start)
    fine = a.remember("bees", valid_from=start, valid_to=start + 1)
    never = b.remember("wasps", valid_from=start)
    careless = [put("field.valid_to", start - 1)]
    change(b.author, never, careless, via=Via.AGENT, now_us=b.now_us)
    for node in world.everywhere():
        assert never_valid(node.store, node.scope) == [never]
        assert node.search("wasps", at_us=start) == []
        assert node.search("bees", at_us=start) == [fine]
    a.retire(never)
    assert never_valid(a.store, a.scope) == []


def test_M_E6_a_time_that_cannot_be_read_is_an_error_and_not_an_empty_answer(
    world: World, a: Node
) -> None:
    record = a.remember("bees in the roof")
    for key in ("at", "as_of", "since", "until"):
        for text in ("March 2026", "2026-13-01", "yesterday", "", "1.3.2026", "1772323200"):
            with pytest.raises(UsageError, match="is not a time"):
                filters_of(Params({key: text}))
    filters = filters_of(Params({"at": "2026-03-01", "as_of": "2026-03-01T00:00Z"}))
    for node in world.everywhere():
        found = node.search("bees", at_us=filters.at_us, as_of_us=filters.as_of_us)
        assert found == [record]


def test_M_E11_every_time_of_an_export_says_its_offset(world: World, a: Node, zone: Zone) -> None:
    """In every zone, on every node, the very line."""
    zone("Pacific/Kiritimati")
    given = {key: f"203{i}-03-01" for i, key in enumerate(TIMES)}
    record = a.write(note_of(Params({"text": "bees", **given}), a.store, 1)).record
    lines = []
    for node in world.everywhere():
        for name in ZONES:
            zone(name)
            lines.append(export_line(node.store, node.seen(record), node.now_us))
    times = [lines[0][key] for key in (*TIMES, "recorded_at")]
    assert all(str(text).endswith("Z") for text in times)
    assert times[0] == "2030-02-28T10:00:00Z"
    assert all(line == lines[0] for line in lines)


def test_M_E12_what_was_meant_travels_with_the_text_and_imports_are_left_alone(
    world: World, a: Node, zone: Zone
) -> None:
    """Resolved once, by who wrote it; the text is the very text; every node shows the same."""
    zone("UTC")
    text = "we moved the hives yesterday, in two weeks we harvest"  # on 2023-11-14
    record = a.remember(text)
    revised = a.revise(a.remember("the queen is old"), "last week the queen was new")
    done = import_rows(
        a.author, [ImportRow(1, Note("it rained yesterday", kind="turn", session="s"))], a.now_us
    )
    zone("Pacific/Kiritimati")
    for node in world.everywhere():
        line = export_line(node.store, node.seen(record), node.now_us)
        assert line["text"] == text
        assert line["when"] == [["yesterday", "2023-11-13"], ["in two weeks", "2023-11-28"]]
        assert node.seen(revised).detail["body"]["when"] == '[["last week", "2023-W45"]]'
        assert "when" not in node.seen(done.records[0]).detail["body"]


def test_stamps_more_than_a_day_off_are_suspect_and_late_ones_are_not(
    world: World, a: Node, b: Node
) -> None:
    """A clock ahead, a clock behind what it builds on; a device that was away is neither."""
    honest = b.remember("written in the cellar")
    b.offset_us = 40 * DAY_US
    ahead = b.remember("from the future")
    b.offset_us = 0
    before = a.remember("bees")
    world.clock_us += 10 * DAY_US
    world.settle()
    after = a.remember("wasps")
    a.offset_us = -3 * DAY_US
    behind = a.remember("from the past")
    a.offset_us = 0
    records = [honest, ahead, before, after, behind]
    digests = set()
    for node in world.everywhere():
        suspects = clock_suspects(node.store, records, node.now_us)
        assert suspects == {ahead, behind}
        digests.add(node.digest)
    assert len(digests) == 1
