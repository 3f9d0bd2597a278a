"""Text made safe to show (X-90), and short forms of ids and times."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.text import (
    clip,
    count,
    flat,
    json_line,
    local_date,
    local_time,
    pad,
    short_ids,
    short_records,
    visible,
    visible_lines,
    width,
    word,
)

# Signs of Arabic, Syriac and Kaithi that are of the class Cf and are drawn.
DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
UNDRAWN = "\u034f\u115f\u1160\u17b4\u180b\u2800\u3164\ufe00\uffa0\U000e0100\U000e0041"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b]52;c;aGk=\x1b\\", "\\x1b]52;c;aGk=\\x1b\\"),
        ("\x1b[2J\x1b[31m", "\\x1b[2J\\x1b[31m"),
        ("\x9b31m\x85\x90", "\\x9b31m\\x85\\x90"),
        ("a\x08b\x7f\x00", "a\\x08b\\x7f\\x00"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("\u2066x\u2069\u200f", "\\u2066x\\u2069\\u200f"),
        ("pay\u200bpal\ufeff\u2060\u00ad", "pay\\u200bpal\\ufeff\\u2060\\xad"),
        ("line\u2028para\u2029", "line\\u2028para\\u2029"),
        ("half \ud800", "half \\ud800"),
        ("hidden \U000e0041", "hidden \\U000e0041"),
        ("❤️", "❤️"),
        ("Zürich 日本 🐝", "Zürich 日本 🐝"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_what_a_terminal_would_act_on_or_hide_is_shown_as_an_escape(
    hostile: str, shown: str
) -> None:
    """Everything else is left as it is."""
    assert visible(hostile) == shown


def test_every_control_and_format_character_is_escaped() -> None:
    """But for the few of the class that a font draws."""
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and code not in DRAWN:
            assert visible(char) != char, hex(code)
    assert all(visible(char) != char for char in UNDRAWN)


def test_selectors_in_a_row_are_escaped() -> None:
    """One after a sign is how emoji are written; many carry a message."""
    assert visible("❤\ufe0f\ufe0f\ufe0e") == "❤\ufe0f\\ufe0f\\ufe0e"


@given(st.text())
def test_what_is_shown_is_one_line_and_inert(text: str) -> None:
    """For any text at all."""
    shown = visible(text)
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in shown)
    assert visible(shown) == shown


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_json_is_equal_as_a_value_and_inert(value: object) -> None:
    """Escapes are part of JSON."""
    line = json_line({"value": value})
    assert json.loads(line) == {"value": value}
    assert visible(line) == line


def test_json_keeps_half_a_surrogate_pair() -> None:
    """UTF-8 cannot, an escape can."""
    assert json_line({"a": "x\ud800"}) == '{"a": "x\\ud800"}'
    assert json.loads(json_line({"a": "\U000e0041"})) == {"a": "\U000e0041"}


def test_lines_of_a_text_are_kept_apart() -> None:
    """Each of them is made visible."""
    assert visible_lines("a\r\n\tb\x07\nc\rd") == ["a", "    b\\x07", "c\\rd"]


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("❤️", 1), ("ﾊﾛ", 2), ("", 0)]
)
def test_width_counts_columns(text: str, columns: int) -> None:
    """Wide signs take two, marks take none."""
    assert width(text) == columns
    assert width(pad(text, 9)) == 9


@pytest.mark.parametrize(
    ("text", "columns", "clipped"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("日本語", 5, "日本…"), ("ab", 1, "…")],
)
def test_a_text_is_clipped_by_columns(text: str, columns: int, clipped: str) -> None:
    """Never wider than it may be."""
    assert clip(text, columns) == clipped


def test_ids_are_as_short_as_they_can_be_told_apart() -> None:
    """All of one length, at least eight characters."""
    assert short_ids(["aaaaaaaaaaaa"]) == {"aaaaaaaaaaaa": "aaaaaaaa"}
    assert set(short_ids(["aaaaaaaaaab1", "aaaaaaaaaac1"]).values()) == {
        "aaaaaaaaaab",
        "aaaaaaaaaac",
    }
    assert short_ids(["ab", "abc"]) == {"ab": "ab", "abc": "abc"}
    assert short_ids([]) == {}


def test_ids_of_records_are_shown_past_their_time() -> None:
    """Records of one minute begin alike."""
    assert short_records(["0123456789abcdefghij"]) == {"0123456789abcdefghij": "0123456789abcdef"}


def test_times_are_shown_in_the_zone_of_this_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything that is no time is shown as it is."""
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert local_time("2025-03-04T16:12:03.5+00:00") == "2025-03-05 01:12:03"
    assert local_time("2025-03-04T16:12:03Z") == "2025-03-05 01:12:03"
    assert local_date("2025-03-04T16:12:03Z") == "2025-03-05"
    assert local_time("soon") == "soon"
    assert local_time("2025-03-04") == "2025-03-04"
    assert local_time(None) == "-"
    monkeypatch.undo()
    time.tzset()


def test_values_and_numbers_read_well() -> None:
    """For people."""
    assert flat({"a": [1, None], "b": True, "c": False}) == "a 1, -, b yes, c no"
    assert [count(1, "record"), count(2, "record"), count(1234, "entry")] == [
        "1 record",
        "2 records",
        "1,234 entries",
    ]


def test_a_name_in_a_command_to_copy_is_one_word() -> None:
    """A name comes from somebody else."""
    assert word("muse") == "muse"
    assert word("$(reboot); \x1b[A") == "'$(reboot); \\x1b[A'"
