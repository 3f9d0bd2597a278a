r"""Text as a person has to see it before approving: what is invisible is named and counted.

What a terminal would act on, what turns the direction of writing, and what cannot be seen become
escapes ``\u{HEX}``; line ends and tabs stay. ``hidden`` tells of each, so that an escape that the
text itself spells out is not taken for one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = frozenset("\n\t")
# Those that no category tells: fillers and blanks that are letters or symbols by name.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TAGS: Final = range(0xE0000, 0xE0080)
_SELECTORS: Final = (range(0xFE00, 0xFE0E), range(0xE0100, 0xE01F0))
_CLASSES: Final[Mapping[str, str]] = {
    "Cc": "control",
    "Cf": "invisible",
    "Cs": "surrogate",
    "Co": "private",
    "Zl": "invisible",
    "Zp": "invisible",
}
FOUND_MAX: Final = 1000


def class_of(char: str) -> str | None:
    """What is wrong with a character: control, bidi, tag, invisible …; None: a person sees it."""
    if char in _PLAIN or " " <= char <= "~":
        return None
    if char in _BIDI:
        return "bidi"
    if ord(char) in _TAGS:
        return "tag"
    if char in _BLANK or any(ord(char) in found for found in _SELECTORS):
        return "invisible"
    return _CLASSES.get(unicodedata.category(char))


def revealed(text: str) -> str:
    """The text with an escape for whatever a person would not see."""
    return "".join(c if class_of(c) is None else f"\\u{{{ord(c):x}}}" for c in text)


def hidden(text: str) -> list[dict[str, Any]]:
    """Each such character with its place (0 is the first), at most ``FOUND_MAX``."""
    found = [(at, c, why) for at, c in enumerate(text) if (why := class_of(c)) is not None]
    return [
        {"at": at, "char": f"U+{ord(c):04X}", "class": why, "name": unicodedata.name(c, "")}
        for at, c, why in found[:FOUND_MAX]
    ]


def flags(*texts: str | None) -> list[str]:
    """The classes of all that cannot be seen in some texts, each once."""
    return sorted({why for text in texts for c in text or "" if (why := class_of(c)) is not None})
