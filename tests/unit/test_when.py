"""Relative dates: what English and German words meant on a day, and what is left alone."""

import time
from collections.abc import Iterator
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.when import day_of, read_when, resolve_dates, when_value

TODAY = date(2026, 12, 1)  # a Tuesday
MEANT = {
    "I saw her yesterday": [("yesterday", "2026-11-30")],
    "The day before yesterday it rained": [("The day before yesterday", "2026-11-29")],
    "Tomorrow we leave": [("Tomorrow", "2026-12-02")],
    "we met last Tuesday": [("last Tuesday", "2026-11-24")],
    "we met last Monday": [("last Monday", "2026-11-30")],
    "next Tuesday at noon": [("next Tuesday", "2026-12-08")],
    "this Friday": [("this Friday", "2026-12-04")],
    "in two weeks we move": [("in two weeks", "2026-12-15")],
    "in 10 days": [("in 10 days", "2026-12-11")],
    "three days ago, or a week ago": [
        ("three days ago", "2026-11-28"),
        ("a week ago", "2026-11-24"),
    ],
    "last week she was ill": [("last week", "2026-W48")],
    "next month": [("next month", "2027-01")],
    "a year ago": [("a year ago", "2025")],
    "two months ago": [("two months ago", "2026-10")],
    "this year": [("this year", "2026")],
    "last night": [("last night", "2026-11-30")],
    "Gestern war sie da, heute nicht": [("Gestern", "2026-11-30"), ("heute", "2026-12-01")],
    "übermorgen": [("übermorgen", "2026-12-03")],
    "Vorgestern kam Post": [("Vorgestern", "2026-11-29")],
    "wir fahren morgen": [("morgen", "2026-12-02")],
    "Morgen fahren wir": [("Morgen", "2026-12-02")],
    "letzten Dienstag": [("letzten Dienstag", "2026-11-24")],
    "am nächsten Mittwoch": [("nächsten Mittwoch", "2026-12-02")],
    "in zwei Wochen": [("in zwei Wochen", "2026-12-15")],
    "vor drei Tagen": [("vor drei Tagen", "2026-11-28")],
    "vor einem Monat": [("vor einem Monat", "2026-11")],
    "letztes Jahr": [("letztes Jahr", "2025")],
    "nächste Woche": [("nächste Woche", "2026-W50")],
}
LEFT_ALONE = (
    "on Tuesday",
    "every Monday",
    "a few days ago",
    "some weeks ago",
    "the next day",
    "she was born in 1990",
    "two weeks of holiday",
    "am Morgen trinkt sie Tee",
    "Guten Morgen",
    "der Morgen danach",
    "jeden Dienstag",
    "daylight and weekly reports",
    "Freitags ist zu",
    "the kettle is blue",
    "in 999 years",
)


@pytest.mark.parametrize("text", MEANT)
def test_M_E12_relative_words_are_resolved_on_the_day_they_were_written(text: str) -> None:
    assert resolve_dates(text, TODAY) == MEANT[text]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_M_E12_words_that_can_mean_two_things_are_left_alone(text: str) -> None:
    assert resolve_dates(text, TODAY) == []


@settings(max_examples=60)
@given(st.text(), st.dates())
def test_M_E12_any_text_on_any_day_gives_words_of_the_text(text: str, today: date) -> None:
    for words, meant in resolve_dates(f"{text} in two weeks, last year", today):
        assert words in f"{text} in two weeks, last year"
        assert meant


@settings(max_examples=60)
@given(st.text() | st.none() | st.integers())
def test_M_E12_what_a_peer_wrote_instead_is_no_date(value: object) -> None:
    assert all(isinstance(words, str) for words, _ in read_when(value))
    assert read_when('[["gestern", "2026-11-30"], 3, ["x"]]') == [["gestern", "2026-11-30"]]


@pytest.fixture
def zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def test_M_E12_the_day_is_that_of_this_devices_zone(zones: pytest.MonkeyPatch) -> None:
    """One moment, two zones, two days: each device resolves by the day its person lives in."""
    moment = 1_764_586_800_000_000  # 2025-12-01T11:00Z
    found = {}
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        zones.setenv("TZ", zone)
        time.tzset()
        found[zone] = (day_of(moment), when_value("yesterday", moment))
    assert found == {
        "Pacific/Kiritimati": (date(2025, 12, 2), '[["yesterday", "2025-12-01"]]'),
        "America/Los_Angeles": (date(2025, 12, 1), '[["yesterday", "2025-11-30"]]'),
    }
