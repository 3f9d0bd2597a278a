"""SPAKE2 behind its door: equal keys for equal codes, one class of error for whatever arrives."""

import random

import pytest

from keys.errors import BadEncoding
from keys.ids import DeviceId
from keys.pake import MESSAGE_BYTES, Pake, joiner_side, opener_side
from keys.signing import DeviceKey
from tests.support.spake_messages import MALFORMED

A = DeviceKey(bytes([1]) * 32).device
B = DeviceKey(bytes([2]) * 32).device
C = DeviceKey(bytes([3]) * 32).device


def sides() -> tuple[Pake, Pake]:
    """Both sides with the same code and keys."""
    return joiner_side("123456", joiner=A, opener=B), opener_side("123456", joiner=A, opener=B)


def test_equal_codes_and_identities_give_equal_keys() -> None:
    """The key is 32 bytes and new each time."""
    keys = []
    for _ in range(2):
        joiner, opener = sides()
        keys.append(joiner.finish(opener.message))
        assert opener.finish(joiner.message) == keys[-1]
    assert len(set(keys)) == 2
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize(
    ("code", "joiner_key", "opener_key"),
    [("123457", A, B), ("123456", C, B), ("123456", A, C)],
    ids=["code", "joiner", "opener"],
)
def test_another_code_or_identity_gives_another_key_and_no_error(
    code: str, joiner_key: DeviceId, opener_key: DeviceId
) -> None:
    """Nothing tells but the confirmation."""
    joiner, _ = sides()
    opener = opener_side(code, joiner=joiner_key, opener=opener_key)
    assert joiner.finish(opener.message) != opener.finish(joiner.message)


@pytest.mark.parametrize("name", MALFORMED)
def test_X_5_a_malformed_message_is_a_clean_refusal(name: str) -> None:
    """One class of error, whatever the library thinks of it."""
    joiner, opener = sides()
    with pytest.raises(BadEncoding):
        joiner.finish(MALFORMED[name])
    assert opener.finish(sides()[0].message)


def test_X_5_our_own_message_reflected_is_refused() -> None:
    """As it was sent, and with the other side's byte."""
    for side in (b"A", b"B"):
        joiner, _ = sides()
        with pytest.raises(BadEncoding):
            joiner.finish(side + joiner.message[1:])


def test_a_well_formed_message_is_not_read_with_other_bytes_after_it() -> None:
    """The library alone ignores what follows."""
    joiner, opener = sides()
    assert len(opener.message) == MESSAGE_BYTES
    with pytest.raises(BadEncoding):
        joiner.finish(opener.message + b"\0")
    joiner.finish(opener.message)


def test_a_side_finishes_once() -> None:
    """A second message would be a second guess."""
    joiner, opener = sides()
    joiner.finish(opener.message)
    with pytest.raises(BadEncoding):
        joiner.finish(opener.message)


def test_other_bytes_give_bad_encoding_or_a_key_that_is_never_ours() -> None:
    """One random number in 16 is a point of the group; the others are refused, with one class."""
    rng = random.Random(1)
    refused = 0
    for _ in range(32):
        joiner, opener = sides()
        try:
            key = joiner.finish(b"B" + rng.randbytes(32))
        except BadEncoding:
            refused += 1
        else:
            assert key != opener.finish(joiner.message)
    assert 16 < refused < 32
