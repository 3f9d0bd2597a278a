"""Pairing codes: they name a device, die early, and are given out slowly."""

import threading
from collections.abc import Callable

import pytest

from keys import pair_code
from keys.errors import PairingError, UsageError
from keys.limits import (
    PAIR_CODE_DIGITS,
    PAIR_CODE_TTL_S,
    PAIR_CODES_PER_WINDOW,
    PAIR_JOINS_PER_CODE_MAX,
    PAIR_PICK_DIGITS,
    PAIR_WINDOW_S,
)
from keys.pair_code import CodeBook, Offer
from keys.signing import DeviceKey

DEVICE = DeviceKey(bytes([1]) * 32).device


def offer(now_s: float = 1_000) -> Offer:
    """An open code of ``DEVICE``."""
    return CodeBook().open(DEVICE, now_s)[1]


def reason(error: pytest.ExceptionInfo[PairingError]) -> object:
    """Why pairing failed."""
    return error.value.details["reason"]


def test_a_code_begins_with_the_digits_of_its_device() -> None:
    """The same device always has the same two digits, and each pair of digits has devices."""
    codes = {pair_code.new_code(DEVICE) for _ in range(50)}
    assert {code[:2] for code in codes} == {pair_code.pick_digits(DEVICE)}
    assert {len(code) for code in codes} == {6}
    assert len({code[2:] for code in codes}) > 40
    devices = (DeviceKey.generate().device for _ in range(1_000))
    assert len({pair_code.pick_digits(device) for device in devices}) > 95


def test_the_digits_of_a_device_never_change() -> None:
    """They are part of the protocol."""
    assert pair_code.pick_digits(DEVICE) == "09"


def test_a_code_of_another_device_is_noticed() -> None:
    """Without using it up."""
    code = pair_code.new_code(DEVICE)
    pair_code.check_picks(code, DEVICE)
    other = next(
        device
        for device in (DeviceKey(bytes([n]) * 32).device for n in range(2, 20))
        if pair_code.pick_digits(device) != code[:2]
    )
    with pytest.raises(PairingError) as caught:
        pair_code.check_picks(code, other)
    assert reason(caught) == "another_device"


@pytest.mark.parametrize("typed", ["123456", " 12 3456\n", "123-456", "1 2 3 4 5 6"])
def test_a_typed_code_may_have_spaces_and_hyphens(typed: str) -> None:
    """The form does not matter."""
    assert pair_code.parse_code(typed) == "123456"


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "12345a", "\u0661" * 6, "12345\0"])
def test_what_is_no_code_is_a_usage_error(typed: str) -> None:
    """Nothing is sent for it."""
    with pytest.raises(UsageError):
        pair_code.parse_code(typed)


def test_a_code_is_good_for_one_answer() -> None:
    """After the answer every further try is refused, and says to make a new code."""
    opened = offer()
    opened.attempt(1_001)
    opened.spend()
    assert not opened.is_open
    for late in (True, False):
        with pytest.raises(PairingError) as caught:
            opened.attempt(1_002) if late else opened.spend()
        assert reason(caught) == "spent"
        assert "make a new code with `roost pair open`" in str(caught.value.hint)


def test_of_many_connections_at_once_one_gets_the_answer() -> None:
    """Spending is one step, whatever threads do."""
    opened, start = offer(), threading.Barrier(8)
    answered, refused = [], []

    def connection() -> None:
        opened.attempt(1_000)
        start.wait()
        try:
            opened.spend()
            answered.append(1)
        except PairingError:
            refused.append(1)

    threads = [threading.Thread(target=connection) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), len(refused)) == (1, 7)


@pytest.mark.parametrize("late", [PAIR_CODE_TTL_S, PAIR_CODE_TTL_S + 1, 10**9, -1])
def test_a_code_dies_after_two_minutes(late: int) -> None:
    """The last moment before is in time; a clock that was set back is not."""
    offer().attempt(1_000 + PAIR_CODE_TTL_S - 0.001)
    opened = offer()
    with pytest.raises(PairingError) as caught:
        opened.attempt(1_000 + late)
    assert reason(caught) == "expired"
    with pytest.raises(PairingError):
        opened.attempt(1_001)


def test_X_5_malformed_tries_are_counted() -> None:
    """The eighth is let through to the arithmetic, the ninth kills the code."""
    opened = offer()
    for _ in range(PAIR_JOINS_PER_CODE_MAX):
        opened.attempt(1_001)
    with pytest.raises(PairingError):
        opened.attempt(1_001)
    assert not opened.is_open


def test_a_code_can_be_closed() -> None:
    """The person changed their mind; a spent code stays spent."""
    opened = offer()
    opened.close()
    with pytest.raises(PairingError) as caught:
        opened.attempt(1_001)
    assert reason(caught) == "closed"
    spent = offer()
    spent.spend()
    spent.close()
    with pytest.raises(PairingError) as caught:
        spent.attempt(1_001)
    assert reason(caught) == "spent"


def test_a_life_has_bounds() -> None:
    """1 and 120 seconds are in, 0 and 121 out, and the life is kept."""
    for good in (1, PAIR_CODE_TTL_S):
        CodeBook().open(DEVICE, 0, good)
    for bad in (0, PAIR_CODE_TTL_S + 1):
        with pytest.raises(UsageError):
            CodeBook().open(DEVICE, 0, bad)
    opened = CodeBook().open(DEVICE, 0, 10)[1]
    opened.attempt(9)
    with pytest.raises(PairingError):
        opened.attempt(10)


def test_S_M3_the_sixth_code_within_ten_minutes_has_to_wait() -> None:
    """The error says how long; then one more is given out, and the book has forgotten the first."""
    book = CodeBook()
    for n in range(PAIR_CODES_PER_WINDOW):
        book, _ = book.open(DEVICE, 100 + n)
    with pytest.raises(PairingError) as caught:
        book.open(DEVICE, 130)
    assert reason(caught) == "paused"
    wait_s = caught.value.details["wait_s"]
    assert isinstance(wait_s, int)
    assert 100 + PAIR_WINDOW_S <= 130 + wait_s <= 101 + PAIR_WINDOW_S
    book, _ = book.open(DEVICE, 130 + wait_s)
    assert len(book.opened_s) <= PAIR_CODES_PER_WINDOW


def test_a_clock_that_was_set_does_not_shut_pairing_for_ever() -> None:
    """Times of long ago and of long ahead count alike: not."""
    full = CodeBook(tuple(float(n) for n in range(PAIR_CODES_PER_WINDOW)))
    full.open(DEVICE, 10**9)
    ahead = CodeBook(tuple(10.0**9 + n for n in range(PAIR_CODES_PER_WINDOW)))
    ahead.open(DEVICE, 0)
    soon = CodeBook(tuple(100.0 + n for n in range(PAIR_CODES_PER_WINDOW)))
    with pytest.raises(PairingError):
        soon.open(DEVICE, 0)


def test_X_3_an_hour_of_guessing_is_thirty_guesses(
    record_property: Callable[[str, object], None],
) -> None:
    """Somebody who asks for a code every second for an hour, and uses up each with a guess."""
    book, guesses = CodeBook(), 0
    for second in range(3_600):
        try:
            book, opened = book.open(DEVICE, second)
        except PairingError:
            continue
        opened.attempt(second)
        opened.spend()
        guesses += 1
    chance = guesses / 10 ** (PAIR_CODE_DIGITS - PAIR_PICK_DIGITS)
    record_property("chance of an hour of guesses", chance)
    assert (guesses, chance) == (30, 0.003)
