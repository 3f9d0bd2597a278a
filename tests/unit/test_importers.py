"""Readers of files: LoCoMo, JSON Lines, Roost's own export."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.errors import UsageError
from keys.limits import IMPORT_LINE_BYTES_MAX, NAME_BYTES_MAX, SOURCE_BYTES_MAX
from node.importers import jsonl, locomo
from node.importers.jsonl import read_objects
from node.importers.locomo import read_locomo, session_moment
from node.importers.roost_jsonl import Manifest, read_export
from node.importers.rows import Problem, Row
from node.jsontext import parse_json


def turn(n: int, session: int = 1, **more: Any) -> dict[str, object]:
    return {"speaker": "Ann", "dia_id": f"D{session}:{n}", "text": f"line {n}"} | more


def sample(name: str = "conv-1", **sessions: Any) -> dict[str, Any]:
    talk: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    return {"sample_id": name, "qa": [], "conversation": talk | sessions}


DATE = "1:56 pm on 8 May, 2023"
DATED = {"session_1_date_time": DATE}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "locomo.json"


def read(file: Path, value: object, conversation: str | None = None) -> list[Row | Problem]:
    file.write_text(json.dumps(value))
    return list(read_locomo(file, conversation))


def test_a_turn_becomes_a_row(file: Path) -> None:
    """With its speaker, its id as in the file, its session and when that began."""
    assert read(file, [sample(session_1=[turn(1)], **DATED)]) == [
        {
            "line": 1,
            "kind": "turn",
            "text": "line 1",
            "speaker": "Ann",
            "source": "D1:1",
            "session": "conv-1/session_1",
            "valid_from": "2023-05-08T13:56:00+00:00",
        }
    ]


def test_sessions_come_in_the_order_of_their_numbers(file: Path) -> None:
    """Ten after nine, whatever the order in the file; a date without a session is nothing."""
    sessions: dict[str, Any] = {f"session_{n}": [turn(1, n)] for n in (10, 2, 9)}
    rows = read(file, [sample(session_11_date_time=DATE, **sessions)])
    assert [row["source"] for row in rows if isinstance(row, dict)] == ["D2:1", "D9:1", "D10:1"]


@pytest.mark.parametrize(
    ("said", "caption", "text"),
    [
        ("look", "a red barn", "look\n[image: a red barn]"),
        ("", "a red barn", "[image: a red barn]"),
        ("look", None, "look"),
        ("look", "  ", "look"),
        (" look ", " barn ", " look \n[image: barn]"),
    ],
)
def test_the_caption_of_a_picture_follows_what_was_said(
    file: Path, said: str, caption: str | None, text: str
) -> None:
    """On a line of its own; what was said is kept as it is."""
    extra: dict[str, Any] = {
        "blip_caption": caption,
        "img_url": ["http://x/y.jpg"],
        "query": "barn",
    }
    (row,) = read(file, [sample(session_1=[turn(1, text=said, **extra)], **DATED)])
    assert isinstance(row, dict)
    assert row["text"] == text


@pytest.mark.parametrize("wanted", ["1", "conv-2"])
def test_one_conversation_can_be_picked(file: Path, wanted: str) -> None:
    """By its place from 0, or its sample id; lines are counted in the whole file."""
    samples = [sample(f"conv-{n}", session_1=[turn(1)], **DATED) for n in (1, 2, 3)]
    (row,) = read(file, samples, wanted)
    assert isinstance(row, dict)
    assert (row["session"], row["line"]) == ("conv-2/session_1", 2)


@pytest.mark.parametrize("wanted", ["3", "-1", "conv-9", "", "¹"])
def test_a_conversation_that_is_not_there_lists_those_that_are(file: Path, wanted: str) -> None:
    """A sample id may look like a number."""
    with pytest.raises(UsageError) as caught:
        read(file, [sample("conv-1"), sample("conv-2"), {}], wanted)
    assert caught.value.details["candidates"] == ["conv-1", "conv-2"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("text", "no object"),
        ({}, "dia_id"),
        (turn(2, dia_id=""), "dia_id"),
        (turn(2, dia_id="x" * (SOURCE_BYTES_MAX + 1)), "dia_id"),
        (turn(2, speaker=7), "speaker"),
        (turn(2, speaker="x" * (NAME_BYTES_MAX + 1)), "speaker"),
        (turn(2, text=None), "text is missing"),
        (turn(2, text=" "), "text is not"),
        (turn(2, blip_caption=[]), "blip_caption"),
    ],
)
def test_a_malformed_turn_is_named_and_the_rest_is_read(
    file: Path, bad: object, message: str
) -> None:
    """Its place in the file, never its text."""
    first, problem, last = read(file, [sample(session_1=[turn(1), bad, turn(3)], **DATED)])
    assert isinstance(problem, Problem)
    assert (problem.line, problem.item) == (2, "conv-1/session_1[1]")
    assert message in problem.message
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert (first["line"], last["line"]) == (1, 3)


def test_bounds_of_a_turn_are_allowed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the bound it is a row, one byte over it is none."""
    monkeypatch.setattr(locomo, "TEXT_BYTES_MAX", 4)
    at = turn(1, text="üü", speaker="x" * NAME_BYTES_MAX, dia_id="x" * SOURCE_BYTES_MAX)
    found = read(file, [sample(session_1=[at, turn(2, text="üüx")], **DATED)])
    assert [type(row) for row in found] == [dict, Problem]


@pytest.mark.parametrize("bad", [7, {}, {"sample_id": "x"}, {"conversation": {}}])
def test_a_malformed_conversation_is_named_and_the_rest_is_read(file: Path, bad: object) -> None:
    """By its place."""
    problem, row = read(file, [bad, sample(session_1=[turn(1)], **DATED)])
    assert isinstance(problem, Problem)
    assert problem.item == "[0]"
    assert isinstance(row, dict)


def test_a_session_without_a_readable_date_is_read_without_one(file: Path) -> None:
    """One problem for the session, not one for each turn."""
    problem, *rows = read(file, [sample(session_1=[turn(1), turn(2)], session_1_date_time="soon")])
    assert isinstance(problem, Problem)
    assert problem.item == "conv-1/session_1"
    assert len(rows) == 2
    assert not any("valid_from" in row for row in rows if isinstance(row, dict))


def test_a_session_that_is_no_list_is_named(file: Path) -> None:
    """The other sessions are read."""
    problem, row = read(file, [sample(session_1={}, session_2=[turn(1)], session_2_date_time=DATE)])
    assert isinstance(problem, Problem)
    assert isinstance(row, dict)


@pytest.mark.parametrize("text", ["", "{}", "[1", "\ufeff", '[{"a": 1, "a": 2}]', "[" * 100_000])
def test_a_file_that_is_something_else_is_wrong_usage(file: Path, text: str) -> None:
    """Nothing of it is read."""
    file.write_text(text)
    with pytest.raises(UsageError, match="not a LoCoMo file"):
        read_locomo(file)


def test_a_file_has_a_bound(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read whole."""
    file.write_text("[]" + " " * 8)
    monkeypatch.setattr(locomo, "FILE_BYTES_MAX", 10)
    assert list(read_locomo(file)) == []
    monkeypatch.setattr(locomo, "FILE_BYTES_MAX", 9)
    with pytest.raises(UsageError, match="larger than 9 bytes"):
        read_locomo(file)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00+00:00"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00+00:00"),
        ("12:30 pm on 1 January, 2024", "2024-01-01T12:30:00+00:00"),
        (" 8:30 am on 29 February, 2024 ", "2024-02-29T08:30:00+00:00"),
        ("8:30 am on 29 February, 2023", None),
        ("13:30 pm on 1 May, 2023", None),
        ("0:30 am on 1 May, 2023", None),
        ("1:60 pm on 1 May, 2023", None),
        ("1:30 pm on 1 Mai, 2023", None),
        ("1:30 pm on 1 May 2023", None),
        ("", None),
    ],
)
def test_the_date_of_a_session_is_read_as_utc(text: str, moment: str | None) -> None:
    """The file names no zone; anything else is no date."""
    assert session_moment(text) == moment


def objects(data: bytes) -> list[Any]:
    return list(read_objects(io.BytesIO(data)))


def test_each_line_is_an_object_with_its_number() -> None:
    """Empty lines are skipped, and counted."""
    assert objects(b'{"a": 1}\n\n \r\n{"b": 2}') == [(1, {"a": 1}), (4, {"b": 2})]


def test_a_mark_at_the_beginning_is_skipped() -> None:
    """Some editors write one; nowhere else is it allowed."""
    assert objects(b'\xef\xbb\xbf{"a": 1}\n') == [(1, {"a": 1})]
    assert isinstance(objects(b'{"a": 1}\n\xef\xbb\xbf{"a": 1}\n')[1], Problem)


def test_a_line_has_a_bound_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without line ends is not read into memory."""
    monkeypatch.setattr(jsonl, "IMPORT_LINE_BYTES_MAX", 9)
    fits, too_long, after = objects(b'{"a": 1}\n{"a": "%s"}\n{"b": 2}\n' % (b"x" * 50))
    assert (fits, after) == ((1, {"a": 1}), (3, {"b": 2}))
    assert isinstance(too_long, Problem)
    assert too_long.line == 2
    (endless,) = objects(b"x" * 100)
    assert isinstance(endless, Problem)
    assert IMPORT_LINE_BYTES_MAX > 9


@given(st.binary())
def test_any_bytes_give_rows_or_problems(data: bytes) -> None:
    """And no exception."""
    for found in objects(data):
        assert isinstance(found, Problem) or isinstance(found[1], dict)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.floats(allow_nan=False)))
def test_what_was_written_is_read(value: dict[str, Any]) -> None:
    """For any object, however it was escaped."""
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=True)
        if "Infinity" not in text:
            assert parse_json(text.encode()) == value


def test_the_reason_quotes_nothing() -> None:
    """A problem is shown, and may be kept in a journal."""
    for data in (b'{"text": "secret', b'{"secret": 1, "secret": 2}', b'{"secret": "\\ud800"}'):
        with pytest.raises(ValueError, match=r".*") as caught:
            parse_json(data)
        assert "secret" not in str(caught.value)


MANIFEST = Manifest("a1", "muse", "2025-03-04T00:00:00+00:00", 1)


def export(*rows: object) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def test_an_export_is_a_manifest_and_its_rows() -> None:
    """Rows carry the numbers of their lines."""
    manifest, rows = read_export(export(MANIFEST.as_dict(), {"record": "r1"}))
    assert manifest == MANIFEST
    assert list(rows) == [{"record": "r1", "line": 2}]


@pytest.mark.parametrize("rows", [[], [{"a": 1}, {"b": 2}]])
def test_an_export_that_was_cut_short_is_named(rows: list[object]) -> None:
    """What is there is read all the same."""
    *found, problem = read_export(export(MANIFEST.as_dict(), *rows))[1]
    assert len(found) == len(rows)
    assert isinstance(problem, Problem)
    assert "says 1 records" in problem.message


def test_a_bad_line_of_an_export_is_counted() -> None:
    """It is one problem, not two."""
    (problem,) = read_export(export(MANIFEST.as_dict(), []))[1]
    assert isinstance(problem, Problem)
    assert problem.message == "not a JSON object"


@pytest.mark.parametrize(
    "first",
    [[], {}, {"roost": "1"}, {"roost": True}, {"roost": 2}, {"roost": 1}]
    + [MANIFEST.as_dict() | {"records": records} for records in (-1, True, "1", None)]
    + [MANIFEST.as_dict() | {"name": 1}],
)
def test_a_file_without_a_manifest_is_wrong_usage(first: object) -> None:
    """So that another program's file is not taken for ours."""
    with pytest.raises(UsageError) as caught:
        read_export(export(first))
    assert caught.value.hint


def test_an_empty_file_is_wrong_usage() -> None:
    """It has no manifest either."""
    with pytest.raises(UsageError, match="empty"):
        read_export(io.BytesIO())
