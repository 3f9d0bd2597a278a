"""Gifts after pairing: in order, between these two, and the opener's after its person agreed."""

import pytest

from keys import limits, pair_messages
from keys.errors import BadEncoding, BadSignature, RefusedError
from keys.pairing import Joiner, Opener
from tests.support.pairing import (
    JOINER,
    MIDDLE,
    refused,
    run,
    two,
)


@pytest.fixture
def channels() -> tuple[Joiner, Opener]:
    """Two machines that are done."""
    joiner, opener = two()
    run(joiner, opener)
    return joiner, opener


def test_gifts_go_both_ways_in_order(channels: tuple[Joiner, Opener]) -> None:
    """The opener's go once its person has confirmed the joiner's key."""
    here, there = (side.paired.channel for side in channels)
    assert there.open(here.seal(b"my signature")) == b"my signature"
    there.release(JOINER.device)
    for gift in (b"certificate", b"", b"v" * limits.PAIR_GIFT_BYTES_MAX):
        assert here.open(there.seal(gift)) == gift


def test_the_opener_gives_nothing_before_its_person_confirmed(
    channels: tuple[Joiner, Opener],
) -> None:
    """Confirming another key does not open the channel either."""
    channel = channels[1].paired.channel
    with pytest.raises(RefusedError):
        channel.seal(b"vault")
    refused("another_device", lambda: channel.release(MIDDLE.device))
    with pytest.raises(RefusedError):
        channel.seal(b"vault")


def test_a_gift_replayed_reordered_reflected_or_changed_does_not_open(
    channels: tuple[Joiner, Opener],
) -> None:
    """Each box opens once, in its place, on the other side."""
    here, there = (side.paired.channel for side in channels)
    first, second = here.seal(b"first"), here.seal(b"second")
    for bad in (second, first[:-1] + bytes([first[-1] ^ 1])):
        with pytest.raises(BadSignature):
            there.open(bad)
    with pytest.raises(BadSignature):
        here.open(first)
    assert there.open(first) == b"first"
    with pytest.raises(BadSignature):
        there.open(first)
    assert there.open(second) == b"second"


def test_a_gift_of_another_pairing_does_not_open(channels: tuple[Joiner, Opener]) -> None:
    """Same devices, same code: other keys."""
    joiner, opener = two()
    run(joiner, opener)
    with pytest.raises(BadSignature):
        opener.paired.channel.open(channels[0].paired.channel.seal(b"gift"))


def test_there_are_64_gifts_at_most(channels: tuple[Joiner, Opener]) -> None:
    """The 65th is refused unread."""
    here, there = (side.paired.channel for side in channels)
    for _ in range(limits.PAIR_GIFTS_MAX):
        there.open(here.seal(b"x"))
    with pytest.raises(AssertionError):
        here.seal(b"x")
    with pytest.raises(BadEncoding, match="more than 64"):
        there.open(pair_messages.encode_gift(b"x" * 17))


def test_a_refusal_in_the_place_of_a_gift_is_seen(channels: tuple[Joiner, Opener]) -> None:
    """The opener's person said no."""
    sent = pair_messages.encode_refused(RefusedError("the keys differ"))
    refused("closed", lambda: channels[0].paired.channel.open(sent))
