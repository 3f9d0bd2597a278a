"""Entries: headers, their canonical bytes, and ids bound to their author. See FORMAT.md.

A header is the canonical MessagePack of
``[1, agent, device, incarnation, seq, prev, record, payload_kind, payload_hash, payload_len, deps,
wall_ms, via, commit_left]``. The entry's hash is the BLAKE2b-256 of those bytes.
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final, NamedTuple

import keys.codec as codec
from keys.errors import BadEncoding
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation, RecordId, hash256
from keys.limits import (
    ACTOR_BYTES,
    COMMIT_ENTRIES_MAX,
    DEPS_MAX,
    ENTRY_BYTES_MAX,
    HASH_BYTES,
    HEADER_BYTES_MAX,
    RECORD_BYTES,
    SEQ_MAX,
    WALL_MS_MAX,
)

VERSION: Final = 1
NO_PREV: Final = EntryHash(bytes(HASH_BYTES))
NO_RECORD: Final = RecordId(bytes(RECORD_BYTES))
PAYLOAD_KIND_MAX: Final = 255


class PayloadKind(IntEnum):
    """What a payload is. Kinds that this version does not know are kept and forwarded."""

    OPEN = 0
    OPS = 1
    TOMBSTONE = 2


class Via(IntEnum):
    """The kind of principal that wrote: across nodes a claim of the device, nothing more (R22)."""

    PERSON = 1
    AGENT = 2
    CONSOLIDATOR = 3
    IMPORTER = 4
    PEER = 5
    LOCAL = 6


class LogId(NamedTuple):
    """One log of one agent: a device and an incarnation."""

    device: DeviceId
    incarnation: Incarnation

    def __str__(self) -> str:
        return f"{self.device.short()}/{self.incarnation.short()}"


class Header(NamedTuple):
    """A decoded header; ``data`` are its canonical bytes and ``hash`` their BLAKE2b-256."""

    agent: AgentId
    device: DeviceId
    incarnation: Incarnation
    seq: int
    prev: EntryHash
    record: RecordId
    payload_kind: int
    payload_hash: bytes
    payload_len: int
    deps: tuple[EntryHash, ...]
    wall_ms: int
    via: int
    commit_left: int
    data: bytes
    hash: EntryHash
    log: LogId


def make_header(  # noqa: PLR0913 - a header has these fields
    agent: AgentId,
    log: LogId,
    seq: int,
    prev: EntryHash,
    *,
    record: RecordId,
    payload_kind: int,
    payload: bytes,
    deps: list[EntryHash],
    wall_ms: int,
    via: int,
    commit_left: int,
) -> Header:
    """A header for ``payload``; raises ``BadEncoding`` when a field is over its bound."""
    data = codec.encode(
        [
            VERSION,
            agent,
            log.device,
            log.incarnation,
            seq,
            prev,
            record,
            payload_kind,
            hash256(payload),
            len(payload),
            sorted(deps),
            wall_ms,
            via,
            commit_left,
        ]
    )
    return decode_header(data)


def decode_header(data: bytes) -> Header:
    """The header in ``data``; raises ``BadEncoding`` for anything but canonical bytes in bounds."""
    if len(data) > HEADER_BYTES_MAX:
        raise BadEncoding(f"a header has at most {HEADER_BYTES_MAX} bytes")
    value = codec.decode_small(data)
    if type(value) is not list or len(value) != 14:
        raise BadEncoding("a header is a list of 14 that starts with 1")
    (
        version,
        agent,
        device,
        incarnation,
        seq,
        prev,
        record,
        kind,
        payload_hash,
        payload_len,
        deps,
        wall_ms,
        via,
        commit_left,
    ) = value
    if type(payload_hash) is not bytes or len(payload_hash) != HASH_BYTES:
        raise BadEncoding(f"a payload hash has {HASH_BYTES} bytes")
    for number, low, high in (
        (version, VERSION, VERSION),
        (seq, 1, SEQ_MAX),
        (kind, 0, PAYLOAD_KIND_MAX),
        (payload_len, 1, ENTRY_BYTES_MAX - len(data)),
        (wall_ms, 0, WALL_MS_MAX),
        (via, 1, 6),
        (commit_left, 0, COMMIT_ENTRIES_MAX - 1),
    ):
        if type(number) is not int or not low <= number <= high:
            raise BadEncoding(f"a header field must be from {low} to {high}")
    log = LogId(DeviceId(device), Incarnation(incarnation))
    return Header(
        AgentId(agent),
        log.device,
        log.incarnation,
        seq,
        EntryHash(prev),
        RecordId(record),
        kind,
        payload_hash,
        payload_len,
        _deps(deps) if deps != [] else (),
        wall_ms,
        via,
        commit_left,
        data,
        EntryHash(hash256(data)),
        log,
    )


def _deps(value: Any) -> tuple[EntryHash, ...]:
    if type(value) is not list or len(value) > DEPS_MAX:
        raise BadEncoding(f"an entry has at most {DEPS_MAX} deps")
    if not value:
        return ()
    if any(type(d) is not bytes for d in value):
        raise BadEncoding("deps are hashes")
    if len(value) > 1 and any(a >= b for a, b in pairwise(value)):
        raise BadEncoding("deps are sorted and distinct")
    return tuple(EntryHash(d) for d in value)


def actor_id(agent: bytes, log: LogId, seq: int, salt: bytes) -> bytes:
    """The Automerge actor of one entry (R1): never carried, always derived."""
    return blake2b(
        b"roost actor" + agent + log.device + log.incarnation + seq.to_bytes(8, "big") + salt,
        digest_size=ACTOR_BYTES,
    ).digest()


_LOW_74: Final = (1 << 74) - 1
_LOW_62: Final = (1 << 62) - 1


def author_bound_id(agent: bytes, log: LogId, seq: int, wall_ms: int) -> RecordId:
    """The UUIDv7 of the record that the entry at ``seq`` creates (R9)."""
    bits = _author_bits(agent, log, seq)
    number = (
        (wall_ms & WALL_MS_MAX) << 80 | 7 << 76 | (bits >> 62) << 64 | 2 << 62 | (bits & _LOW_62)
    )
    return RecordId(number.to_bytes(RECORD_BYTES, "big"))


def is_author_bound(record: RecordId, agent: bytes, log: LogId, seq: int) -> bool:
    """Whether ``record`` may be created by the entry at this place (R9)."""
    number = int.from_bytes(record, "big")
    bits = (number >> 64 & 0xFFF) << 62 | number & _LOW_62
    return (
        number >> 76 & 0xF == 7 and number >> 62 & 3 == 2 and bits == _author_bits(agent, log, seq)
    )


def _author_bits(agent: bytes, log: LogId, seq: int) -> int:
    digest = blake2b(
        b"roost record" + agent + log.device + log.incarnation + seq.to_bytes(8, "big"),
        digest_size=16,
    ).digest()
    return int.from_bytes(digest, "big") & _LOW_74


def derived_id(agent: bytes, kind: str, natural_key: bytes) -> RecordId:
    """The UUIDv8 that every device derives for (agent, kind, natural key) (R9, R30)."""
    digest = blake2b(
        b"roost derived" + agent + kind.encode() + b"\0" + natural_key, digest_size=16
    ).digest()
    number = int.from_bytes(digest, "big")
    number = number & ~(0xF << 76) | 8 << 76
    number = number & ~(3 << 62) | 2 << 62
    return RecordId(number.to_bytes(RECORD_BYTES, "big"))


def is_derived(record: RecordId) -> bool:
    """Whether an id has the form of a derived one."""
    return record[6] >> 4 == 8


def tombstone_id(agent: bytes, record: RecordId) -> RecordId:
    """The id of the tombstone of ``record``: the same on every device (R30)."""
    return derived_id(agent, "tombstone", bytes(record))
