"""Relative dates in a text, resolved on the day it was written (M-E12).

1. The text stays as it is; what was resolved is kept beside it, in ``body.when``.
2. A date is as exact as its words: a day (``2026-03-01``), a week (``2026-W09``), a month
   (``2026-03``) or a year (``2026``), as ISO 8601 writes them. Nothing is made up.
3. Words that can mean two things are left alone: "on Tuesday", "a few days ago", "am Morgen".
4. English and German. "last Tuesday" is the nearest one before today, "next Tuesday" the nearest
   after it; "this" week, month or year is the one of today.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

Resolved: TypeAlias = tuple[str, str]
"""Words of a text, and the date that they meant."""

WHEN_KEY: Final = "body.when"
WHEN_MAX: Final = 16  # of one text
_AMOUNT_MAX: Final = 400

_DAYS: Final = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5,
    "sunday": 6, "montag": 0, "dienstag": 1, "mittwoch": 2, "donnerstag": 3, "freitag": 4,
    "samstag": 5, "sonnabend": 5, "sonntag": 6,
}  # fmt: skip
_SIMPLE: Final = {
    "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1,
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0,
    "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2, "vorgestern": -2,
    "gestern": -1, "heute": 0, "morgen": 1, "übermorgen": 2,
}  # fmt: skip
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "einem": 1, "einer": 1,
    "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8,
    "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12,
}  # fmt: skip
_UNITS: Final = {
    "day": "day", "week": "week", "month": "month", "year": "year", "tag": "day", "woche": "week",
    "monat": "month", "jahr": "year",
}  # fmt: skip
_BEFORE: Final = frozenset({"last", "letzte", "vergangene", "vorige"})
_AFTER: Final = frozenset({"next", "nächste", "kommende"})

_UNIT: Final = (
    r"(?P<unit>days?|weeks?|months?|years?|tag(?:en|e)?|wochen?|monat(?:en|e)?|jahr(?:en|e)?)"
)
_MANY: Final = r"(?P<many>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_DAY: Final = "(?P<day>" + "|".join(sorted(_DAYS, key=len, reverse=True)) + ")"
_FORMS: Final = (
    re.compile(r"\b(?P<simple>" + "|".join(sorted(_SIMPLE, key=len, reverse=True)) + r")\b"),
    re.compile(rf"\b(?P<sign>in) {_MANY} {_UNIT}\b(?! (?:of|row|a row)\b)"),
    re.compile(rf"\b{_MANY} {_UNIT} (?P<sign>ago)\b"),
    re.compile(rf"\b(?P<sign>vor) {_MANY} {_UNIT}\b"),
    re.compile(
        r"\b(?P<which>last|next|this|letzte|vergangene|vorige|nächste|kommende|diese)[nmrs]? "
        rf"(?:{_DAY}|(?P<unit>week|month|year|woche|monat|jahr))\b"
    ),
)
# What a text must hold for one of the forms to be in it.
_HINTS: Final = (
    "day", "night", "morrow", "week", "month", "year", "this ", "gestern", "heute", "morgen", "tag",
    "woche", "monat", "jahr", "mittwoch", "sonnabend",
)  # fmt: skip
# "am Morgen", "heute Morgen", "guten Morgen": the time of day, not the day after.
_TIME_OF_DAY: Final = re.compile(
    r"\b(?:am|guten|jeden|heute|gestern|vorgestern|der|den|dem|bis zum|eines|good) \Z"
)


def resolve_dates(text: str, today: date) -> list[Resolved]:
    """The relative dates of a text in their order, each with what it meant on ``today``."""
    lower = text.lower()
    if len(lower) != len(text) or not any(hint in lower for hint in _HINTS):
        return []
    found: list[tuple[int, int, str]] = []
    for start, end, meant in _all(text, lower, today):
        if all(end <= f[0] or start >= f[1] for f in found):
            found.append((start, end, meant))
    return [(text[start:end], meant) for start, end, meant in sorted(found)[:WHEN_MAX]]


def day_of(now_us: int) -> date:
    """The date in this device's zone; ``now_us`` are microseconds UTC."""
    return datetime.fromtimestamp(now_us / 1e6, UTC).astimezone().date()


def when_value(text: str, now_us: int) -> str | None:
    """What ``body.when`` holds of a text that is written now: JSON, or None without any date."""
    found = resolve_dates(text, day_of(now_us))
    return pack_when(found) if found else None


def pack_when(pairs: Sequence[Sequence[str]]) -> str:
    """What ``body.when`` holds of pairs of words and dates."""
    return json.dumps(pairs, ensure_ascii=False)


def read_when(value: object) -> list[list[str]]:
    """The pairs in ``body.when``; empty where a peer wrote something else."""
    try:
        pairs = json.loads(value) if isinstance(value, str) else []
    except ValueError:
        return []
    return [p for p in pairs if _is_pair(p)] if isinstance(pairs, list) else []


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)


def _all(text: str, lower: str, today: date) -> Iterator[tuple[int, int, str]]:
    for form in _FORMS:
        for match in form.finditer(lower):
            meant = _meant(match, text, today)
            if meant is not None:
                yield match.start(), match.end(), meant


def _meant(match: re.Match[str], text: str, today: date) -> str | None:
    said = match.groupdict()
    try:
        if said.get("simple"):
            return _simple(match, text, today)
        if said.get("many"):
            amount = _NUMBERS.get(said["many"]) or int(said["many"])
            forward = said["sign"] == "in"
            return _moved(today, amount if forward else -amount, _unit(said["unit"]))
        step = -1 if said["which"] in _BEFORE else int(said["which"] in _AFTER)
        if said.get("day"):
            return _weekday(today, _DAYS[said["day"]], step)
        return _period(today, step, _unit(said["unit"]))
    except (ValueError, OverflowError):  # beyond the calendar
        return None


def _simple(match: re.Match[str], text: str, today: date) -> str | None:
    word, start = match["simple"], match.start()
    if word == "morgen":
        named = text[start] == "M" and text[:start].rstrip()[-1:] not in ("", ".", "!", "?")
        if named or _TIME_OF_DAY.search(text[:start].lower()):
            return None
    return (today + timedelta(_SIMPLE[word])).isoformat()


def _unit(word: str) -> str:
    return next(unit for stem, unit in _UNITS.items() if word.startswith(stem))


def _moved(today: date, amount: int, unit: str) -> str | None:
    """So many units from today: a day, a month or a year, as exact as the unit."""
    if not 0 < abs(amount) <= _AMOUNT_MAX:
        return None
    if unit in ("day", "week"):
        return (today + timedelta(amount * (7 if unit == "week" else 1))).isoformat()
    return _period(today, amount, unit)


def _period(today: date, step: int, unit: str) -> str:
    if unit == "week":
        year, week, _ = (today + timedelta(7 * step)).isocalendar()
        return f"{year:04d}-W{week:02d}"
    if unit == "month":
        months = today.year * 12 + today.month - 1 + step
        return date(months // 12, months % 12 + 1, 1).isoformat()[:7]
    return date(today.year + step, 1, 1).isoformat()[:4]


def _weekday(today: date, day: int, step: int) -> str:
    away = day - today.weekday()  # of this week, from Monday
    if step < 0 and away >= 0:
        away -= 7
    if step > 0 and away <= 0:
        away += 7
    return (today + timedelta(away)).isoformat()
