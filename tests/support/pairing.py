"""Two devices that pair, for the tests of pairing."""

from collections.abc import Callable

import pytest

from keys import limits
from keys.address import Address
from keys.codec import decode, encode
from keys.errors import PairingError
from keys.pair_code import CodeBook, Offer
from keys.pair_messages import Introduction, OwnerInfo
from keys.pairing import Joiner, Opener
from keys.signing import DeviceKey, OwnerKey

JOINER, OPENER, MIDDLE = (DeviceKey(bytes([n]) * 32) for n in (1, 2, 3))
NOW = 1_000.0


def introduction(name: str, *, mine: bool = True) -> Introduction:
    """What a device called ``name`` says of itself."""
    owner = OwnerInfo(OwnerKey(name.encode().ljust(32)[:32]).owner, bytes(32))
    return Introduction(name, mine, owner, (Address(f"{name}.local", 7667),))


PHONE, DESK = introduction("phone"), introduction("desk")


def offer() -> Offer:
    """A code the opener shows."""
    return CodeBook().open(OPENER.device, NOW)[1]


def wrong(code: str) -> str:
    """Another code of the same device."""
    return code[:2] + f"{(int(code[2:]) + 1) % 10_000:04}"


def two(shown: Offer | None = None, code: str | None = None) -> tuple[Joiner, Opener]:
    """Both machines; the joiner types what is shown, or ``code``."""
    shown = shown or offer()
    joiner = Joiner(JOINER, PHONE, OPENER.device, code or shown.code)
    return joiner, Opener(OPENER, DESK, shown, extra=b"more")


def run(joiner: Joiner, opener: Opener) -> None:
    """The whole exchange."""
    confirm = joiner.receive(opener.receive(joiner.start(), NOW))
    assert confirm is not None
    assert joiner.receive(opener.receive(confirm, NOW)) is None


def refused(reason: str, call: Callable[..., object], *args: object) -> PairingError:
    """The error of a call that fails for this reason."""
    with pytest.raises(PairingError) as caught:
        call(*args)
    assert caught.value.details["reason"] == reason
    return caught.value


def edited(message: bytes, at: int, value: object) -> bytes:
    """A greeting with one field replaced on the way."""
    fields = decode(message, limits.PAIR_MESSAGE_BYTES_MAX)
    fields[at] = value
    return encode(fields)


def started() -> tuple[Joiner, Opener]:
    """Two machines after the first message was sent."""
    joiner, opener = two()
    joiner.start()
    return joiner, opener


def proving() -> tuple[Joiner, Opener]:
    """Two machines that have both greetings."""
    joiner, opener = two()
    joiner.receive(opener.receive(joiner.start(), NOW))
    return joiner, opener
