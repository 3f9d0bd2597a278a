"""The messages of pairing: exactly the form of PAIRING.md, bounded, and the version comes first."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys import limits, pair_messages
from keys.address import Address
from keys.codec import decode, encode
from keys.errors import BadEncoding, BadInput, PairingError, StoreError, UsageError
from keys.ids import OwnerId
from keys.pair_code import _TEXTS, Reason, failed
from keys.pair_messages import (
    ANSWER,
    CONFIRM,
    CONFIRMED,
    GIFT,
    JOIN,
    REFUSED,
    Greeting,
    Introduction,
    OwnerInfo,
    Proof,
)
from keys.signing import DeviceKey, OwnerKey
from keys.tls import certificate_of

KEY, OTHER = DeviceKey(bytes([1]) * 32), DeviceKey(bytes([2]) * 32)
OWNER = OwnerInfo(OwnerKey(bytes([3]) * 32).owner, bytes([4]) * 32)
ADDRESSES = (Address("desk.local", 7667), Address("fe80::1%eth0", 7667))
INTRODUCTION = Introduction(
    "desk \U0001f469\u200d\U0001f4bb", mine=True, owner=OWNER, addresses=ADDRESSES
)
GREETING = Greeting(KEY.device, certificate_of(KEY), INTRODUCTION, b"A" + bytes(32))
JOIN_BYTES = GREETING.encoded(JOIN)
TEXT = (Path(__file__).parents[2] / "keys" / "PAIRING.md").read_text()


def changed(at: int, value: object) -> bytes:
    """The ``join`` with one field replaced."""
    fields = decode(JOIN_BYTES, limits.PAIR_MESSAGE_BYTES_MAX)
    fields[at] = value
    return encode(fields)


@pytest.mark.parametrize("kind", [JOIN, ANSWER])
def test_a_greeting_comes_back(kind: str) -> None:
    """Writing and reading are inverse."""
    assert pair_messages.decode_greeting(GREETING.encoded(kind), kind) == GREETING


def test_the_largest_greeting_fits() -> None:
    """All fields at their bounds stay inside the bound of a message, and one more is out."""
    longest = Address(".".join(["a" * 63] * 3 + ["a" * 61]), 65_535)
    said = Introduction("n" * limits.NAME_BYTES_MAX, True, OWNER, (longest,) * limits.ADDRESSES_MAX)
    data = Greeting(KEY.device, certificate_of(KEY), said, bytes(33)).encoded(JOIN)
    assert pair_messages.decode_greeting(data, JOIN).introduction == said
    with pytest.raises(BadEncoding, match="at most 8192"):
        pair_messages.decode_greeting(bytes(limits.PAIR_MESSAGE_BYTES_MAX + 1), JOIN)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (1, [1]),
        (1, [1, 1, 1]),
        (1, [True, 1]),
        (1, [0, 1]),
        (1, [1, 65_536]),
        (1, "11"),
        (1, [1, "1"]),
        (2, ""),
        (2, "n" * (limits.NAME_BYTES_MAX + 1)),
        (2, "a\x1bb"),
        (2, b"desk"),
        (3, bytes(KEY.device)[:-1]),
        (3, bytes(OTHER.device)),
        (3, str(KEY.device)),
        (4, 1),
        (4, None),
        (5, "A" * 33),
        (6, b""),
        (6, certificate_of(OTHER)),
        (6, certificate_of(KEY) + b"\0"),
        (7, None),
        (7, ["desk.local"]),
        (7, ["Desk.local:1"]),
        (7, [b"desk.local:1"]),
        (7, [1]),
        (7, ["desk.local:1"] * (limits.ADDRESSES_MAX + 1)),
        (8, [bytes(32)]),
        (8, [bytes(31), bytes(32)]),
        (8, [bytes(32), bytes(33)]),
        (8, None),
    ],
)
def test_a_field_of_another_form_is_refused(at: int, value: object) -> None:
    """Type, size and meaning of every field are checked."""
    assert changed(2, INTRODUCTION.name) == JOIN_BYTES
    with pytest.raises(BadInput):
        pair_messages.decode_greeting(changed(at, value), JOIN)


def test_a_message_has_all_fields_and_no_more() -> None:
    """One field more or fewer is another message."""
    fields = decode(JOIN_BYTES, limits.PAIR_MESSAGE_BYTES_MAX)
    for other in (fields[:-1], [*fields, None], [], fields[1:]):
        with pytest.raises(BadEncoding):
            pair_messages.decode_greeting(encode(other), JOIN)


@pytest.mark.parametrize("versions", [[2, 3], [65_535, 65_535]])
def test_another_version_is_told_before_another_form(versions: list[int]) -> None:
    """A newer device gets "upgrade", not "malformed", whatever else it sends."""
    for data in (changed(1, versions), encode([JOIN, versions, {"new": "form"}])):
        with pytest.raises(PairingError) as caught:
            pair_messages.decode_greeting(data, JOIN)
        assert caught.value.details["reason"] == "versions"
    assert pair_messages.decode_greeting(changed(1, [1, 9]), JOIN).introduction.versions == (1, 9)


def test_what_we_say_of_ourselves_is_checked_too() -> None:
    """A name that no peer would take is refused where it is given."""
    for name in ("", "n" * 129, "a\nb", "\ud800"):
        with pytest.raises(UsageError):
            Introduction(name, True, OWNER)
    with pytest.raises(UsageError):
        Introduction("desk", True, OWNER, ADDRESSES * 9)
    with pytest.raises(BadEncoding):
        OwnerInfo(OwnerId(bytes(32)), bytes(31))


@pytest.mark.parametrize("extra", [None, b"", b"x" * 100])
def test_a_proof_comes_back(extra: bytes | None) -> None:
    """With extra it is a ``confirmed``, without a ``confirm``."""
    proof = Proof(bytes(32), bytes(64), extra)
    kind = CONFIRM if extra is None else CONFIRMED
    assert pair_messages.decode_proof(proof.encoded(), kind) == proof
    with pytest.raises(BadEncoding, match="is expected"):
        pair_messages.decode_proof(proof.encoded(), CONFIRMED if extra is None else CONFIRM)


@pytest.mark.parametrize(
    "fields",
    [
        [CONFIRM, bytes(31), bytes(64)],
        [CONFIRM, bytes(32), bytes(65)],
        [CONFIRM, bytes(32)],
        [CONFIRM, bytes(32), bytes(64), b""],
        [CONFIRM, "x" * 32, bytes(64)],
    ],
)
def test_a_proof_of_another_form_is_refused(fields: list[object]) -> None:
    """Sizes and types are exact."""
    pair_messages.decode_proof(encode([CONFIRM, bytes(32), bytes(64)]), CONFIRM)
    with pytest.raises(BadEncoding):
        pair_messages.decode_proof(encode(fields), CONFIRM)


def test_a_gift_has_a_bound() -> None:
    """The largest gift in its box is read, one byte more is not."""
    size = limits.PAIR_GIFT_BYTES_MAX + pair_messages.BOX_OVERHEAD_BYTES
    assert len(pair_messages.decode_gift(pair_messages.encode_gift(bytes(size)))) == size
    for data in (pair_messages.encode_gift(bytes(size + 1)), encode([GIFT, "x"]), encode([GIFT])):
        with pytest.raises(BadEncoding):
            pair_messages.decode_gift(data)


@pytest.mark.parametrize("reason", Reason)
def test_a_refusal_reaches_the_other_side_as_what_it_is(reason: Reason) -> None:
    """In the place of any message it is raised as the error it names."""
    sent = pair_messages.encode_refused(failed(reason))
    for read in (
        lambda: pair_messages.decode_greeting(sent, ANSWER),
        lambda: pair_messages.decode_proof(sent, CONFIRMED),
        lambda: pair_messages.decode_gift(sent),
    ):
        with pytest.raises(PairingError) as caught:
            read()
        assert caught.value.details == {"reason": str(reason), "by": "them"}
        assert caught.value.message == failed(reason).message


def test_other_errors_are_told_without_their_text() -> None:
    """The other side learns that it sent nonsense, or that we stopped; nothing of our disk."""
    assert decode(pair_messages.encode_refused(BadEncoding("x")), 100) == [REFUSED, "malformed"]
    assert decode(pair_messages.encode_refused(StoreError("/home/x")), 100) == [REFUSED, "closed"]


def test_a_refusal_for_a_reason_of_a_newer_version_is_a_refusal() -> None:
    """An unknown word stops pairing; a long one is no word."""
    with pytest.raises(PairingError):
        pair_messages.decode_proof(encode([REFUSED, "moon phase"]), CONFIRM)
    with pytest.raises(BadEncoding):
        pair_messages.decode_proof(encode([REFUSED, "m" * 33]), CONFIRM)


@given(st.binary(max_size=200))
def test_other_bytes_raise_bad_input_and_nothing_else(data: bytes) -> None:
    """Whatever arrives, one class of error leaves."""
    for read in (
        lambda: pair_messages.decode_greeting(data, JOIN),
        lambda: pair_messages.decode_proof(data, CONFIRMED),
        lambda: pair_messages.decode_gift(data),
    ):
        with pytest.raises(BadInput):
            read()


def test_every_cut_and_every_changed_byte_of_a_join_is_refused_or_read_as_something_else() -> None:
    """There are no two spellings of one message."""
    for size in range(len(JOIN_BYTES)):
        with pytest.raises(BadInput):
            pair_messages.decode_greeting(JOIN_BYTES[:size], JOIN)
    for at in range(len(JOIN_BYTES)):
        data = JOIN_BYTES[:at] + bytes([JOIN_BYTES[at] ^ 1]) + JOIN_BYTES[at + 1 :]
        try:
            assert pair_messages.decode_greeting(data, JOIN) != GREETING
        except (BadInput, PairingError):
            continue


def test_the_document_names_every_kind_reason_and_bound() -> None:
    """PAIRING.md and the code use the same words and numbers."""
    first_cells = set(re.findall(r"^\| `([a-z_]+)` \|", TEXT, re.MULTILINE))
    assert first_cells == {*pair_messages.KINDS, *Reason}
    assert set(_TEXTS) == set(Reason)
    for number, unit in (
        (limits.PAIR_CODE_DIGITS, "digits"),
        (limits.PAIR_CODE_TTL_S, "seconds"),
        (limits.PAIR_WINDOW_S, "seconds"),
        (limits.PAIR_CODES_PER_WINDOW, "codes"),
        (limits.PAIR_JOINS_PER_CODE_MAX, "tries"),
        (limits.PAIR_CONNECTIONS_MAX, "connections"),
        (limits.PAIR_MESSAGE_BYTES_MAX, "bytes"),
        (limits.CERTIFICATE_BYTES_MAX, "bytes"),
        (limits.PAIR_EXTRA_BYTES_MAX, "bytes"),
        (limits.ADDRESS_BYTES_MAX, "bytes"),
        (limits.NAME_BYTES_MAX, "bytes"),
        (limits.PAIR_GIFTS_MAX, "gifts"),
        (limits.PAIR_GIFT_BYTES_MAX // 1024, "KiB"),
    ):
        assert f"{number:,} {unit}" in TEXT
    assert f"at most {limits.ADDRESSES_MAX}" in TEXT
