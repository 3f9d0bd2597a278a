"""Everything that must not make two devices peers."""

from functools import partial

import pytest

from keys import limits, pair_messages
from keys.codec import decode, encode
from keys.errors import BadEncoding, BadInput, BadSignature
from keys.pair_code import CodeBook, Offer, pick_digits
from keys.pairing import Failed, Joiner, Opener, Proving
from keys.signing import OwnerKey
from keys.tls import certificate_of
from tests.support.pairing import (
    DESK,
    JOINER,
    MIDDLE,
    NOW,
    OPENER,
    PHONE,
    edited,
    offer,
    proving,
    refused,
    run,
    two,
    wrong,
)
from tests.support.spake_messages import MALFORMED


def test_X_2_one_wrong_guess_kills_the_code() -> None:
    """The right code is refused afterwards, on any connection; a new one works."""
    shown = offer()
    joiner, opener = two(shown, wrong(shown.code))
    confirm = joiner.receive(opener.receive(joiner.start(), NOW))
    refused("wrong_code", opener.receive, confirm or b"", NOW)
    assert not shown.is_open
    late_joiner, late_opener = two(shown)
    refused("spent", late_opener.receive, late_joiner.start(), NOW)
    run(*two())


def test_X_2_the_answer_spends_the_code_whatever_follows() -> None:
    """A guesser that hangs up after the answer had its guess."""
    shown = offer()
    joiner, opener = two(shown)
    opener.receive(joiner.start(), NOW)
    opener.fail()
    assert not shown.is_open
    late_joiner, late_opener = two(shown)
    refused("spent", late_opener.receive, late_joiner.start(), NOW)


def test_X_4_with_different_codes_both_fail_before_anything_is_stored() -> None:
    """SPAKE2 itself tells nobody; the opener notices first, and its refusal tells the joiner."""
    shown = offer()
    joiner, opener = two(shown, wrong(shown.code))
    confirm = joiner.receive(opener.receive(joiner.start(), NOW))
    error = refused("wrong_code", opener.receive, confirm or b"", NOW)
    refused("wrong_code", joiner.receive, pair_messages.encode_refused(error))
    for side in (joiner, opener):
        assert isinstance(side.state, Failed)
        with pytest.raises(AssertionError):
            _ = side.paired


def test_X_4_an_opener_that_skips_the_confirmation_is_noticed() -> None:
    """The joiner takes nothing from an opener whose proof is not under the same key."""
    shown = offer()
    joiner, opener = two(shown, wrong(shown.code))
    joiner.receive(opener.receive(joiner.start(), NOW))
    assert isinstance(opener.state, Proving)
    forged = opener.state.secrets.prove(OPENER, b"opener", b"x" * 16)
    refused("wrong_code", joiner.receive, forged)


def test_S_M3_a_wrong_code_is_seen_on_both_sides_and_says_what_to_do() -> None:
    """Both errors say to make a new code; the sixth code has to wait."""
    book = CodeBook()
    for _ in range(limits.PAIR_CODES_PER_WINDOW):
        book, shown = book.open(OPENER.device, NOW)
        joiner, opener = two(shown, wrong(shown.code))
        confirm = joiner.receive(opener.receive(joiner.start(), NOW))
        here = refused("wrong_code", opener.receive, confirm, NOW)
        sent = pair_messages.encode_refused(here)
        there = refused("wrong_code", joiner.receive, sent)
        for error in (here, there):
            assert "make a new code with `roost pair open`" in str(error.hint)
    refused("paused", lambda: book.open(OPENER.device, NOW))


@pytest.mark.parametrize("name", [name for name in MALFORMED if name != "own side"])
def test_X_5_a_malformed_spake_message_does_not_get_an_answer(name: str) -> None:
    """The opener refuses it and the code lives on; the joiner refuses it too."""
    shown = offer()
    joiner, opener = two(shown)
    flipped = MALFORMED[name].replace(b"B", b"A", 1)
    with pytest.raises(BadEncoding):
        opener.receive(edited(joiner.start(), 5, flipped), NOW)
    assert shown.is_open
    run(*two(shown))
    joiner, opener = two()
    answer = opener.receive(joiner.start(), NOW)
    with pytest.raises(BadEncoding):
        joiner.receive(edited(answer, 5, MALFORMED[name]))


def test_X_5_a_message_of_the_own_side_is_refused() -> None:
    """A joiner that says it is B, and the joiner's own message reflected."""
    joiner, opener = two()
    join = joiner.start()
    spake = decode(join, limits.PAIR_MESSAGE_BYTES_MAX)[5]
    with pytest.raises(BadEncoding):
        opener.receive(edited(join, 5, b"B" + spake[1:]), NOW)
    with pytest.raises(BadEncoding, match="join message where answer"):
        joiner.receive(join)


def test_X_5_malformed_tries_are_counted_and_end_the_code() -> None:
    """Nobody gets to send nonsense for two minutes."""
    shown = offer()
    for _ in range(limits.PAIR_JOINS_PER_CODE_MAX):
        joiner, opener = two(shown)
        with pytest.raises(BadEncoding):
            opener.receive(edited(joiner.start(), 5, b"A" + bytes(32)), NOW)
    joiner, opener = two(shown)
    refused("spent", opener.receive, joiner.start(), NOW)


def test_X_6_a_recorded_pairing_replayed_to_an_opener_fails() -> None:
    """Even under the same code: the opener's half is new, and so are key and transcript."""
    shown = offer()
    joiner, opener = two(shown)
    join = joiner.start()
    confirm = joiner.receive(opener.receive(join, NOW)) or b""
    again = Opener(OPENER, DESK, Offer(shown.code, NOW, 120))
    again.receive(join, NOW)
    refused("wrong_code", again.receive, confirm, NOW)
    assert opener.receive(confirm, NOW)


def test_X_6_a_recorded_pairing_replayed_to_a_joiner_fails() -> None:
    """The recorded answer is a well-formed one; the recorded proof does not fit."""
    shown = offer()
    joiner, opener = two(shown)
    answer = opener.receive(joiner.start(), NOW)
    confirmed = opener.receive(joiner.receive(answer) or b"", NOW)
    again, _ = two(shown)
    again.start()
    again.receive(answer)
    refused("wrong_code", again.receive, confirmed)
    assert joiner.receive(confirmed) is None


def middle_joiner(code: str) -> Joiner:
    """The attacker's side towards the opener."""
    return Joiner(MIDDLE, PHONE, OPENER.device, code)


def test_X_7_a_middle_with_its_own_key_has_one_guess_on_each_side() -> None:
    """It plays an opener to the joiner and a joiner to the opener, and has one guess in each."""
    shown = offer()
    joiner = Joiner(JOINER, PHONE, MIDDLE.device, pick_digits(MIDDLE.device) + shown.code[2:])
    guess = Offer(wrong(pick_digits(MIDDLE.device) + shown.code[2:]), NOW, 120)
    to_joiner, to_opener = Opener(MIDDLE, DESK, guess), middle_joiner(wrong(shown.code))
    confirm = joiner.receive(to_joiner.receive(joiner.start(), NOW)) or b""
    refused("wrong_code", to_joiner.receive, confirm, NOW)
    opener = Opener(OPENER, DESK, shown)
    confirm = to_opener.receive(opener.receive(to_opener.start(), NOW)) or b""
    refused("wrong_code", opener.receive, confirm, NOW)
    assert not shown.is_open


def test_X_7_a_middle_is_noticed_by_the_digits_before_anything_is_sent() -> None:
    """The code picks a key, and the leaf's is another; the code is not used up."""
    shown = offer()
    assert pick_digits(MIDDLE.device) != pick_digits(OPENER.device)
    refused("another_device", Joiner(JOINER, PHONE, MIDDLE.device, shown.code).start)
    run(*two(shown))


def test_X_7_the_middle_relays_spake_messages_under_its_own_key() -> None:
    """The halves are the real ones, the identities around them are not: two different keys."""
    code = pick_digits(MIDDLE.device) + "0000"
    joiner = Joiner(JOINER, PHONE, MIDDLE.device, code)
    opener = Opener(OPENER, DESK, Offer(code, NOW, 120))
    swapped = edited(edited(joiner.start(), 3, MIDDLE.device), 6, certificate_of(MIDDLE))
    answer = opener.receive(swapped, NOW)
    back = edited(edited(answer, 3, MIDDLE.device), 6, certificate_of(MIDDLE))
    confirm = joiner.receive(back) or b""
    refused("wrong_code", opener.receive, confirm, NOW)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (1, [1, 2]),
        (2, "desk2"),
        (7, ["10.0.0.9:7667"]),
        (8, [OwnerKey(bytes([9]) * 32).owner, bytes(32)]),
        (8, [DESK.owner.owner, bytes([1]) * 32]),
    ],
    ids=["versions", "name", "addresses", "owner", "recovery hash"],
)
@pytest.mark.parametrize("which", ["join", "answer"])
def test_X_7_a_field_changed_on_the_way_fails_the_confirmation(
    which: str, at: int, value: object
) -> None:
    """The transcript holds every field of both greetings."""
    joiner, opener = two()
    join = joiner.start()
    answer = opener.receive(edited(join, at, value) if which == "join" else join, NOW)
    confirm = joiner.receive(edited(answer, at, value) if which == "answer" else answer) or b""
    refused("wrong_code", opener.receive, confirm, NOW)


@pytest.mark.parametrize("which", ["join", "answer"])
def test_X_7_a_swapped_certificate_or_key_is_refused(which: str) -> None:
    """Alone they contradict each other; together they are not the leaf, or not what was proven."""
    for at, value in ((3, bytes(MIDDLE.device)), (6, certificate_of(MIDDLE))):
        joiner, opener = two()
        join = joiner.start()
        sent = join if which == "join" else opener.receive(join, NOW)
        receive = partial(opener.receive, now_s=NOW) if which == "join" else joiner.receive
        with pytest.raises(BadInput):
            receive(edited(sent, at, value))
    joiner, opener = two()
    answer = opener.receive(joiner.start(), NOW)
    with pytest.raises(BadSignature):
        joiner.receive(edited(edited(answer, 3, MIDDLE.device), 6, certificate_of(MIDDLE)))


def test_a_proof_without_the_device_key_is_refused() -> None:
    """Who knows the code but not the key that was named has proven nothing."""
    for role in (b"joiner", b"opener"):
        joiner, opener = proving()
        assert isinstance(opener.state, Proving)
        forged = opener.state.secrets.prove(MIDDLE, role, None if role == b"joiner" else b"x" * 16)
        side = opener if role == b"joiner" else joiner
        receive = partial(opener.receive, now_s=NOW) if role == b"joiner" else joiner.receive
        with pytest.raises(BadSignature):
            receive(forged)
        assert isinstance(side.state, Failed)


def test_a_proof_is_of_one_role() -> None:
    """The joiner's proof sent back to it is not the opener's."""
    joiner, opener = two()
    confirm = joiner.receive(opener.receive(joiner.start(), NOW)) or b""
    _, tag, signature = decode(confirm, limits.PAIR_MESSAGE_BYTES_MAX)
    refused("wrong_code", joiner.receive, encode(["confirmed", tag, signature, b""]))
