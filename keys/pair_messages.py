"""The messages of pairing (PAIRING.md 3): canonical codec arrays, checked field by field.

1. Every message is bounded before it is read, and is of exactly the form that PAIRING.md gives.
2. The version range is looked at first, so that a peer of another version is told so even when the
   rest of its message has another form.
3. A certificate in a message is that of the device the message names.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from keys.address import Address
from keys.codec import decode, encode
from keys.errors import BadEncoding, BadInput, PairingError, RoostError, UsageError
from keys.ids import DeviceId, OwnerId
from keys.limits import (
    ADDRESSES_MAX,
    HASH_BYTES,
    NAME_BYTES_MAX,
    PAIR_GIFT_BYTES_MAX,
    PAIR_MESSAGE_BYTES_MAX,
    SIGNATURE_BYTES,
)
from keys.pair_code import Reason, failed
from keys.tls import key_of_certificate

JOIN: Final = "join"
ANSWER: Final = "answer"
CONFIRM: Final = "confirm"
CONFIRMED: Final = "confirmed"
GIFT: Final = "gift"
REFUSED: Final = "refused"
KINDS: Final = (JOIN, ANSWER, CONFIRM, CONFIRMED, GIFT, REFUSED)

VERSIONS: Final = (1, 1)  # the oldest and the newest version of pairing that is spoken here
VERSION_MAX: Final = 65_535
BOX_OVERHEAD_BYTES: Final = 16
_GIFT_OVERHEAD_BYTES: Final = 32
_REASON_BYTES_MAX: Final = 32
_ITEMS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class OwnerInfo:
    """Whose device it is, by its own word: the owner and the hash of the recovery key (R20)."""

    owner: OwnerId
    recovery_hash: bytes

    def __post_init__(self) -> None:
        if len(self.recovery_hash) != HASH_BYTES:
            raise BadEncoding(f"a recovery hash has {HASH_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class Introduction:
    """What one side says of itself besides its key. Raises ``UsageError`` outside its bounds.

    ``addresses`` are where its node listens, at most 16. ``mine``: the person said that both
    devices are theirs.
    """

    name: str
    mine: bool
    owner: OwnerInfo
    addresses: tuple[Address, ...] = ()
    versions: tuple[int, int] = VERSIONS

    def __post_init__(self) -> None:
        try:
            size = len(self.name.encode())
        except UnicodeEncodeError as exc:
            raise UsageError("a device's name is not valid text") from exc
        if not 0 < size <= NAME_BYTES_MAX:
            raise UsageError(f"a device's name has 1 to {NAME_BYTES_MAX} bytes")
        if any(unicodedata.category(char) == "Cc" for char in self.name):
            raise UsageError("a device's name has no control characters")
        if len(self.addresses) > ADDRESSES_MAX:
            raise UsageError(f"a device has at most {ADDRESSES_MAX} addresses")


@dataclass(frozen=True, slots=True)
class Greeting:
    """A ``join`` or an ``answer``: who speaks, and its half of SPAKE2."""

    device: DeviceId
    certificate: bytes
    introduction: Introduction
    spake: bytes

    def encoded(self, kind: str) -> bytes:
        """The message, as ``JOIN`` or ``ANSWER``."""
        said = self.introduction
        return encode(
            [
                kind,
                list(said.versions),
                said.name,
                self.device,
                said.mine,
                self.spake,
                self.certificate,
                [str(address) for address in said.addresses],
                [said.owner.owner, said.owner.recovery_hash],
            ]
        )


@dataclass(frozen=True, slots=True)
class Proof:
    """A ``confirm`` or a ``confirmed``: that its side has the same key and transcript."""

    tag: bytes
    signature: bytes
    extra: bytes | None  # boxed; None in a confirm

    def encoded(self) -> bytes:
        """The message."""
        if self.extra is None:
            return encode([CONFIRM, self.tag, self.signature])
        return encode([CONFIRMED, self.tag, self.signature, self.extra])


def encode_gift(box: bytes) -> bytes:
    """A ``gift`` message."""
    return encode([GIFT, box])


def encode_refused(error: RoostError) -> bytes:
    """What to send the other side on this error, so that both people see the outcome."""
    otherwise = Reason.MALFORMED if isinstance(error, BadInput) else Reason.CLOSED
    reason = (
        error.details.get("reason", otherwise) if isinstance(error, PairingError) else otherwise
    )
    return encode([REFUSED, str(reason)])


def decode_greeting(data: bytes, kind: str) -> Greeting:
    """Read a ``join`` or an ``answer``.

    Raises ``BadInput``, or ``PairingError`` when it is a refusal or of other versions.
    """
    match _decoded(data, kind, PAIR_MESSAGE_BYTES_MAX):
        case [_, versions, *_] if not _overlaps(versions):
            raise failed(Reason.VERSIONS)
        case [
            _,
            [oldest, newest],
            str(name),
            bytes(device),
            bool(mine),
            bytes(spake),
            bytes(certificate),
            list(addresses),
            [bytes(owner), bytes(recovery_hash)],
        ]:
            info = OwnerInfo(OwnerId(owner), recovery_hash)
            said = _introduction(name, mine, info, addresses, (oldest, newest))
        case _:
            raise _form(kind)
    if key_of_certificate(certificate) != device:
        raise BadEncoding("the certificate is not of the device that the message names")
    return Greeting(DeviceId(device), certificate, said, spake)


def decode_proof(data: bytes, kind: str) -> Proof:
    """Read a ``confirm`` or a ``confirmed``; raises as ``decode_greeting`` does."""
    match _decoded(data, kind, PAIR_MESSAGE_BYTES_MAX):
        case [_, bytes(tag), bytes(signature)] if kind == CONFIRM:
            extra = None
        case [_, bytes(tag), bytes(signature), bytes(extra)] if kind == CONFIRMED:
            pass
        case _:
            raise _form(kind)
    if len(tag) != HASH_BYTES or len(signature) != SIGNATURE_BYTES:
        raise _form(kind)
    return Proof(tag, signature, extra)


def decode_gift(data: bytes) -> bytes:
    """The box of a ``gift``; raises as ``decode_greeting`` does."""
    size_max = PAIR_GIFT_BYTES_MAX + BOX_OVERHEAD_BYTES
    match _decoded(data, GIFT, size_max + _GIFT_OVERHEAD_BYTES):
        case [_, bytes(box)] if len(box) <= size_max:
            return box
    raise _form(GIFT)


def _decoded(data: bytes, kind: str, size_max: int) -> list[object]:
    """An array that begins with ``kind``; a refusal in its place is raised as what it says."""
    value: object = decode(data, size_max, _ITEMS_MAX)
    match value:
        case [str(found), *_] if found == kind:
            assert isinstance(value, list)
            return value
        case [str(found), str(reason)] if found == REFUSED:
            raise _their_refusal(reason)
        case [str(found), *_] if found in KINDS:
            raise BadEncoding(f"a {found} message where {kind} is expected")
    raise BadEncoding(f"not a pairing message, where {kind} is expected")


def _their_refusal(reason: str) -> RoostError:
    if len(reason.encode()) > _REASON_BYTES_MAX:
        return _form(REFUSED)
    try:
        return failed(Reason(reason), by="them")
    except ValueError:  # a newer version's
        return failed(Reason.CLOSED, by="them")


def _overlaps(versions: object) -> bool:
    """Whether a range is in common; what is no range is left to the check of the form."""
    match versions:
        case [int(oldest), int(newest)]:
            return oldest <= VERSIONS[1] and newest >= VERSIONS[0]
    return True


def _introduction(
    name: str,
    mine: bool,
    owner: OwnerInfo,
    addresses: list[object],
    versions: tuple[object, object],
) -> Introduction:
    oldest, newest = versions
    if (
        type(oldest) is not int
        or type(newest) is not int
        or not 1 <= oldest <= newest <= VERSION_MAX
    ):
        raise BadEncoding("a version range is two numbers, the oldest and the newest")
    if len(addresses) > ADDRESSES_MAX:
        raise BadEncoding(f"more than {ADDRESSES_MAX} addresses")
    try:
        parsed = tuple(Address.parse(text) for text in addresses if isinstance(text, str))
        said = Introduction(name, mine, owner, parsed, (oldest, newest))
    except UsageError as exc:
        raise BadEncoding(exc.message) from exc
    if [str(address) for address in parsed] != addresses:
        raise BadEncoding("an address that is not in its one form")
    return said


def _form(kind: str) -> BadEncoding:
    return BadEncoding(f"not the form of a {kind} message")
