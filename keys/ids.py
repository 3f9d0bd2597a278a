"""Ids as value types: bytes inside, base32 with two check characters outside.

The text form is Crockford's base32 in lower case (no i, l, o, u) of the bytes, followed by two
characters of a BLAKE2b over the kind and the bytes, so that a mistyped id is noticed and an id of
one kind is not taken for another. ``i``, ``l`` and ``o`` are read as ``1``, ``1`` and ``0``.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import ClassVar, Self

from keys.errors import BadEncoding, UsageError
from keys.limits import HASH_BYTES, INCARNATION_BYTES, KEY_BYTES, RECORD_BYTES

BASE32_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
BASE32_VALUES = {c: i for i, c in enumerate(BASE32_ALPHABET)} | {"i": 1, "l": 1, "o": 0}
_CHECK_CHARS = 2


def hash256(*parts: bytes) -> bytes:
    """BLAKE2b-256 of the concatenated parts."""
    h = blake2b(digest_size=HASH_BYTES)
    for part in parts:
        h.update(part)
    return h.digest()


def base32(data: bytes) -> str:
    """Crockford base32 of ``data``, most significant bits first, last group padded with zeros."""
    bits = len(data) * 8
    groups = -(-bits // 5)
    number = int.from_bytes(data, "big") << (groups * 5 - bits)
    return "".join(
        BASE32_ALPHABET[(number >> shift) & 31] for shift in range(groups * 5 - 5, -1, -5)
    )


def from_base32(text: str, size: int) -> bytes:
    """The ``size`` bytes that ``text`` encodes; raises ``BadEncoding`` for anything else."""
    groups = -(-size * 8 // 5)
    if len(text) != groups or any(c not in BASE32_VALUES for c in text):
        raise BadEncoding("not base32 of the right length")
    number = 0
    for c in text:
        number = number << 5 | BASE32_VALUES[c]
    spare = groups * 5 - size * 8
    if number & ((1 << spare) - 1):
        raise BadEncoding("spare bits are set")
    return (number >> spare).to_bytes(size, "big")


class Id(bytes):
    """A fixed-size identifier. Equal bytes are equal; ``str()`` gives the checked text form."""

    kind: ClassVar[str] = ""
    size: ClassVar[int] = 0

    def __new__(cls, value: object) -> Self:
        """Take ``size`` bytes; raises ``BadEncoding`` for any other length or type."""
        if not isinstance(value, bytes) or len(value) != cls.size:
            raise BadEncoding(f"a {cls.kind} id has {cls.size} bytes")
        return bytes.__new__(cls, value)

    def __str__(self) -> str:
        return base32(self) + self._check()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.short()}>"

    def short(self) -> str:
        """The first eight characters, for the journal and for columns; not unique."""
        return base32(self)[:8]

    def _check(self) -> str:
        digest = blake2b(self.kind.encode() + b"\0" + bytes(self), digest_size=2).digest()
        number = int.from_bytes(digest, "big") >> 6
        return BASE32_ALPHABET[number >> 5] + BASE32_ALPHABET[number & 31]

    @classmethod
    def text_length(cls) -> int:
        """Characters of the text form, check characters included."""
        return -(-cls.size * 8 // 5) + _CHECK_CHARS

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form; raises ``UsageError`` naming what is wrong with it."""
        wanted = text.strip().lower().replace("-", "")
        if len(wanted) != cls.text_length():
            raise UsageError(f"a {cls.kind} id has {cls.text_length()} characters")
        try:
            found = cls(from_base32(wanted[:-_CHECK_CHARS], cls.size))
        except BadEncoding as exc:
            raise UsageError(f"not a {cls.kind} id") from exc
        if str(found)[-_CHECK_CHARS:] != "".join(
            BASE32_ALPHABET[BASE32_VALUES.get(c, 0)] for c in wanted[-_CHECK_CHARS:]
        ):
            raise UsageError(f"a mistyped {cls.kind} id: its check characters do not fit")
        return found


class DeviceId(Id):
    """A device's Ed25519 public key."""

    kind = "device"
    size = KEY_BYTES


class OwnerId(Id):
    """An owner's Ed25519 public key, the first one where it was rotated."""

    kind = "owner"
    size = KEY_BYTES


class AgentId(Id):
    """The hash of an agent's founding statement."""

    kind = "agent"
    size = HASH_BYTES


class StatementId(Id):
    """The hash of a statement's bytes, signature excluded (R16)."""

    kind = "statement"
    size = HASH_BYTES


class EntryHash(Id):
    """The hash of an entry's header."""

    kind = "entry"
    size = HASH_BYTES


class Incarnation(Id):
    """Names one unbroken run of one device's log."""

    kind = "incarnation"
    size = INCARNATION_BYTES


class RecordId(Id):
    """A UUIDv7 (author-bound, R9) or UUIDv8 (derived) of one record."""

    kind = "record"
    size = RECORD_BYTES


def prefix_range(kind: type[Id], text: str) -> tuple[bytes, bytes]:
    """The lowest and highest id whose text form starts with ``text``; raises ``UsageError``."""
    wanted = text.strip().lower().replace("-", "")
    groups = -(-kind.size * 8 // 5)
    if not wanted or len(wanted) > groups or any(c not in BASE32_VALUES for c in wanted):
        raise UsageError(f"{text[:32]!r} is not a {kind.kind} id or the start of one")
    number = 0
    for c in wanted:
        number = number << 5 | BASE32_VALUES[c]
    shift = kind.size * 8 - 5 * len(wanted)
    if shift < 0:
        low = number >> -shift
        return low.to_bytes(kind.size, "big"), low.to_bytes(kind.size, "big")
    low, high = number << shift, (number + 1 << shift) - 1
    return low.to_bytes(kind.size, "big"), high.to_bytes(kind.size, "big")
