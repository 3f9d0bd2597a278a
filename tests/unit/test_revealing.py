"""M-D4, X-90: what a person would not see in a text is named before it is approved."""

import unicodedata

import pytest

from node.revealing import class_of, flags, hidden, revealed

SEEN = [
    "plain",
    "two\nlines\tand a tab",
    "Zoë",
    "Zoe\u0308",
    "日本語",
    "ไทย",
    "עברית",
    "🐝",
    "\u00a0",
]
UNSEEN = {
    "control": ["\x1b]0;x\x07", "\x9b", "\x00", "\r", "\x7f"],
    "bidi": ["\u202e", "\u2066", "\u200f", "\u061c"],
    "tag": ["\U000e0041", "\U000e007f", "\U000e0001"],
    "invisible": [
        "\u200b",
        "\u200d",
        "\u2060",
        "\ufeff",
        "\xad",
        "\u3164",
        "\u2800",
        "\ufe00",
        "\u2028",
    ],
    "private": ["\ue000"],
    "surrogate": ["\ud800"],
}


@pytest.mark.parametrize("text", SEEN)
def test_what_a_person_sees_is_left_alone(text: str) -> None:
    assert (revealed(text), hidden(text), flags(text)) == (text, [], [])


@pytest.mark.parametrize(("why", "char"), [(w, c) for w, cs in UNSEEN.items() for c in cs])
def test_M_D4_what_cannot_be_seen_is_escaped_and_named(why: str, char: str) -> None:
    text = f"be kind{char}"
    first = hidden(text)[0]
    assert (first["at"], first["char"], first["class"]) == (7, f"U+{ord(char[0]):04X}", why)
    assert revealed(text).startswith(f"be kind\\u{{{ord(char[0]):x}}}")
    assert flags("kind", None, text) == [why]


def test_no_format_character_of_unicode_passes() -> None:
    """Whatever this Python's Unicode calls a control, a format or a separator of lines."""
    passed = [
        hex(code)
        for code in (*range(0x20000), *range(0xE0000, 0xE1000))
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co")
        and class_of(chr(code)) is None
    ]
    assert passed == ["0x9", "0xa"]
