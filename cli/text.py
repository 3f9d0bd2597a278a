"""Text made safe and ready to show: pure functions, nothing is written here.

1. ``visible`` turns everything that a terminal would act on, or that a person would not see, into
   an escape: control characters (C0, DEL, C1), line ends, bidirectional controls, zero-width and
   other invisible characters, tags, lone surrogates. What it returns is one line.
2. ``json_line`` writes the same characters as JSON escapes: equal as a value, inert on a terminal.
3. Times come in as ISO 8601 with an offset and are shown in this device's zone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Final

SHORT_ID_CHARS: Final = 8
SHORT_RECORD_CHARS: Final = 16  # an id of a record begins with its time: ten characters

# The emoji and text presentation selectors are left alone, one at a time: a heart is a heart.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"
)
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ELLIPSIS: Final = "…"


def visible(text: str) -> str:
    """The text on one line, with nothing in it that acts on a terminal or cannot be seen."""
    return text if _is_plain(text) else _UNSAFE.sub(lambda match: _escape(match[0]), text)


def visible_lines(text: str) -> list[str]:
    """The lines of a text, each as ``visible`` gives it; tabs become spaces."""
    return [visible(line.expandtabs(4)) for line in re.split("\r?\n", text)]


def json_line(value: object) -> str:
    """The value as JSON on one line, as people read it, but inert on a terminal."""
    import json

    return json_escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))


def json_escaped(text: str) -> str:
    """JSON text whose unsafe characters, all of them inside strings, are escapes; equal as JSON."""
    return text if _is_plain(text) else _UNSAFE.sub(lambda match: _json_escape(match[0]), text)


def word(text: object) -> str:
    """A name as one word of a shell, for a command that somebody may copy."""
    import shlex

    return shlex.quote(visible(str(text)))


def width(text: str) -> int:
    """How many columns of a terminal a ``visible`` text takes."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def clip(text: str, columns: int) -> str:
    """The text cut to at most so many columns, with a mark where something was cut off."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        kept.append(char)
    return "".join(kept) + _ELLIPSIS


def pad(text: str, columns: int) -> str:
    """The text with spaces after it up to so many columns."""
    return text + " " * (columns - width(text))


def local_time(moment: object) -> str:
    """An ISO 8601 time in this device's zone, to the second; anything else as it is."""
    if moment is None:
        return "-"
    try:
        parsed = datetime.fromisoformat(str(moment))
    except ValueError:
        return str(moment)
    if parsed.tzinfo is None:
        return str(moment)
    return parsed.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short_records(ids: Iterable[str]) -> dict[str, str]:
    """As ``short_ids``, for ids of records."""
    return short_ids(ids, SHORT_RECORD_CHARS)


def short_ids(ids: Iterable[str], least: int = SHORT_ID_CHARS) -> dict[str, str]:
    """Each id with its beginning, all equally long, long enough to tell these ids apart."""
    ordered = sorted(set(ids))
    length = least
    for before, after in pairwise(ordered):
        common = next(
            (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
            min(len(before), len(after)),
        )
        length = max(length, common + 1)
    return {whole: whole[:length].rstrip("-") for whole in ordered}


def local_date(moment: object) -> str:
    """The day of ``local_time``."""
    return local_time(moment).partition(" ")[0]


def flat(value: object) -> str:
    """Any value of a result on one line, for people."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {flat(found)}" for key, found in value.items())
    if isinstance(value, list):
        return ", ".join(flat(found) for found in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def count(number: int, noun: str) -> str:
    """``1 record``, ``2 records``, ``3 copies``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
