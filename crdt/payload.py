"""Payloads: operations on one record, the opening of a log, tombstones. See FORMAT.md.

1. ``ops``: ``[engine, salt, ops, change_hash]``; ``ops`` is a byte string: the canonical list of
   ``[key, verb, type, value]`` with strictly rising keys, padded with zeros to 64 bytes (R1).
2. ``open``: the statement heads that the device had seen, and versions (R2). Never erased.
3. ``tombstone``: the record it erases, a reason code, fingerprints that may not return (R30).
4. Decoders raise ``BadEncoding`` and nothing else. They check form only; whether an operation may
   stand where it stands is the fold's question.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import keys.codec as codec
from keys.errors import BadEncoding
from keys.ids import RecordId
from keys.limits import (
    ENTRY_BYTES_MAX,
    HASH_BYTES,
    OP_KEY_BYTES_MAX,
    OPEN_HEADS_MAX,
    OPS_MAX,
    OPS_PADDING_BYTES,
    SALT_BYTES,
    TOMBSTONE_PRINTS_MAX,
)

ENGINE: Final = 1  # automerge 1.0.0rc1 (core 0.5.7): the change bytes that regeneration yields
PROTOCOL: Final = 1
Scalar: TypeAlias = bool | int | float | str | bytes | None


class Verb(IntEnum):
    """What an operation does to a key."""

    PUT = 0
    DELETE = 1


class Type(IntEnum):
    """The Automerge scalar type of a put."""

    NULL = 0
    BOOL = 1
    INT = 2
    UINT = 3
    F64 = 4
    STR = 5
    BYTES = 6


# Codes, not text: a tombstone holds no words of anybody (R33).
TOMBSTONE_REASONS: Final = ("person", "agent", "derived", "returning", "expired", "agent_forgotten")


class Op(NamedTuple):
    """One operation on a record's flat map."""

    key: str
    verb: Verb
    type: Type
    value: Scalar


@dataclass(frozen=True, slots=True)
class OpsPayload:
    """Operations on a record and the hash of the Automerge change they make."""

    engine: int
    salt: bytes
    ops: tuple[Op, ...]
    change_hash: bytes


@dataclass(frozen=True, slots=True)
class OpenPayload:
    """The first entry of a log: the statement heads its device had seen (R2)."""

    heads: tuple[bytes, ...]
    protocol: int
    engine: int


@dataclass(frozen=True, slots=True, order=True)
class Fingerprint:
    """A keyed hash of a normalised text (R28): normalisation number, key id, mac."""

    norm: int
    key: bytes
    mac: bytes


@dataclass(frozen=True, slots=True)
class TombstonePayload:
    """An erasure of one record (R30)."""

    record: RecordId
    reason: str
    prints: tuple[Fingerprint, ...]


FINGERPRINT_KEY_BYTES: Final = 8
FINGERPRINT_MAC_BYTES: Final = 16


def encode_ops(salt: bytes, ops: list[Op], change_hash: bytes) -> bytes:
    """The payload bytes of ``ops`` (sorted here by key); raises ``BadEncoding`` out of bounds."""
    ordered = sorted(ops, key=lambda op: op.key.encode())
    packed = codec.encode([[o.key, int(o.verb), int(o.type), o.value] for o in ordered])
    packed += bytes(-len(packed) % OPS_PADDING_BYTES)
    data = codec.encode([ENGINE, salt, packed, change_hash])
    if len(data) > ENTRY_BYTES_MAX:
        raise BadEncoding(f"an entry has at most {ENTRY_BYTES_MAX} bytes")
    return data


def engine_of(data: bytes) -> int:
    """The engine number of an ops payload, readable by every version."""
    value = codec.decode(data, ENTRY_BYTES_MAX)
    if not isinstance(value, list) or not value or type(value[0]) is not int:
        raise BadEncoding("an ops payload is a list that starts with its engine number")
    return value[0]


def decode_ops(data: bytes) -> OpsPayload:
    """The operations in ``data``; raises ``BadEncoding``."""
    if len(data) > ENTRY_BYTES_MAX:
        raise BadEncoding(f"an entry has at most {ENTRY_BYTES_MAX} bytes")
    value = codec.decode_small(data)
    if type(value) is not list or len(value) != 4:
        raise BadEncoding("an ops payload is [engine, salt, ops, change_hash]")
    engine, salt, padded, change_hash = value
    if type(engine) is not int or engine != ENGINE:
        raise BadEncoding("an engine number that this version does not know")
    for blob, size in ((salt, SALT_BYTES), (change_hash, HASH_BYTES)):
        if type(blob) is not bytes or len(blob) != size:
            raise BadEncoding(f"a payload field must have {size} bytes")
    if type(padded) is not bytes or len(padded) % OPS_PADDING_BYTES or not padded:
        raise BadEncoding("operations are padded to a multiple of 64 bytes")
    return OpsPayload(engine, salt, _ops(padded), change_hash)


def _ops(padded: bytes) -> tuple[Op, ...]:
    rows, length = codec.decode_first(padded)
    if len(padded) - length >= OPS_PADDING_BYTES or padded.count(0, length) != len(padded) - length:
        raise BadEncoding("padding is the fewest zero bytes")
    if type(rows) is not list or not 1 <= len(rows) <= OPS_MAX:
        raise BadEncoding(f"an entry has 1 to {OPS_MAX} operations")
    ops = tuple(map(_op, rows))
    before = ""
    for key, *_ in ops:  # code points are in the order of their UTF-8
        if key <= before:
            raise BadEncoding("operations have strictly rising keys")
        before = key
    return ops


def _op(row: Any) -> Op:
    if type(row) is not list or len(row) != 4:
        raise BadEncoding("an operation is [key, verb, type, value]")
    key, verb, kind, value = row
    if type(key) is not str or type(verb) is not int or type(kind) is not int:
        raise BadEncoding("an operation's key, verb or type is not one")
    known_verb, known_kind, python_type = _form(key, verb, kind)
    if type(value) is not python_type or (kind in _NUMBERS and not fits(known_kind, value)):
        raise BadEncoding("an operation's value is not of its type")
    return Op(key, known_verb, known_kind, value)


@lru_cache(maxsize=1024)
def _form(key: str, verb: int, kind: int) -> tuple[Verb, Type, type[Any]]:
    """What an operation on ``key`` is; the same few keys come in every record."""
    check_key(key)
    if verb not in (0, 1) or not 0 <= kind <= 6:
        raise BadEncoding("an operation's verb or type is not known")
    if verb == 1 and kind:
        raise BadEncoding("a delete carries no value")
    return Verb(verb), Type(kind), _PYTHON[kind]


def check_key(key: Any) -> None:
    """Raise ``BadEncoding`` unless ``key`` is ``kind`` or a known prefix and a name (R6)."""
    if (
        type(key) is not str
        or len(key) > OP_KEY_BYTES_MAX
        or (not key.isascii() and len(key.encode()) > OP_KEY_BYTES_MAX)
    ):
        raise BadEncoding(f"a key is text of at most {OP_KEY_BYTES_MAX} bytes")
    if not _KEY_FORM(key):
        raise BadEncoding("a key that is not of a record, or with a control character")


_KEY_FORM: Final = re.compile(r"(?:kind|(?:body|field|tag|mark|next)\.[^\x00-\x1f\x7f]+)\Z").match
_PYTHON: Final = (type(None), bool, int, int, float, str, bytes)
_NUMBERS: Final = frozenset({Type.INT, Type.UINT, Type.F64})


def fits(kind: Type, value: Any) -> bool:
    """Whether ``value`` is exactly of the scalar type ``kind``."""
    if type(value) is not _PYTHON[kind]:
        return False
    if type(value) is int:
        return 0 <= value < 2**64 if kind == Type.UINT else -(2**63) <= value < 2**63
    return type(value) is not float or math.isfinite(value)


def type_of(value: Scalar) -> Type:
    """The scalar type that a Python value is written as."""
    if value is None:
        return Type.NULL
    for cls, kind in ((bool, Type.BOOL), (int, Type.INT), (float, Type.F64), (str, Type.STR)):
        if isinstance(value, cls):
            return kind
    return Type.BYTES


def put(key: str, value: Scalar) -> Op:
    """A put of a Python value under its natural type."""
    return Op(key, Verb.PUT, type_of(value), bytes(value) if isinstance(value, bytes) else value)


def delete(key: str) -> Op:
    """A delete of ``key``."""
    return Op(key, Verb.DELETE, Type.NULL, None)


def encode_open(heads: list[bytes]) -> bytes:
    """The payload of a log's first entry."""
    return codec.encode([PROTOCOL, ENGINE, sorted(heads)[:OPEN_HEADS_MAX]])


def decode_open(data: bytes) -> OpenPayload:
    """The opening in ``data``; raises ``BadEncoding``."""
    value = codec.decode(data, 1024)
    if not isinstance(value, list) or len(value) != 3:
        raise BadEncoding("an opening is [protocol, engine, heads]")
    protocol, engine, heads = value
    if any(type(n) is not int or not 1 <= n < 2**16 for n in (protocol, engine)):
        raise BadEncoding("an opening's versions are small numbers")
    if not isinstance(heads, list) or not 1 <= len(heads) <= OPEN_HEADS_MAX:
        raise BadEncoding(f"an opening has 1 to {OPEN_HEADS_MAX} heads")
    if any(not isinstance(h, bytes) or len(h) != HASH_BYTES for h in heads):
        raise BadEncoding("an opening's heads are hashes")
    if sorted(set(heads)) != heads:
        raise BadEncoding("an opening's heads are sorted and distinct")
    return OpenPayload(tuple(heads), protocol, engine)


def encode_tombstone(record: RecordId, reason: str, prints: list[Fingerprint]) -> bytes:
    """The payload of a tombstone; ``reason`` is one of ``TOMBSTONE_REASONS``."""
    rows = [[p.norm, p.key, p.mac] for p in sorted(set(prints))]
    return codec.encode([record, TOMBSTONE_REASONS.index(reason), rows])


def decode_tombstone(data: bytes) -> TombstonePayload:
    """The tombstone in ``data``; raises ``BadEncoding``."""
    value = codec.decode(data, 8192)
    if not isinstance(value, list) or len(value) != 3:
        raise BadEncoding("a tombstone is [record, reason, fingerprints]")
    record, reason, rows = value
    if type(reason) is not int or not 0 <= reason < len(TOMBSTONE_REASONS):
        raise BadEncoding("a tombstone's reason is a code")
    if not isinstance(rows, list) or len(rows) > TOMBSTONE_PRINTS_MAX:
        raise BadEncoding(f"a tombstone has at most {TOMBSTONE_PRINTS_MAX} fingerprints")
    prints = tuple(_print(row) for row in rows)
    if any(a >= b for a, b in pairwise(prints)):
        raise BadEncoding("a tombstone's fingerprints are sorted and distinct")
    return TombstonePayload(RecordId(record), TOMBSTONE_REASONS[reason], prints)


def _print(row: Any) -> Fingerprint:
    if not isinstance(row, list) or len(row) != 3:
        raise BadEncoding("a fingerprint is [norm, key, mac]")
    norm, key, mac = row
    if type(norm) is not int or not 1 <= norm < 2**16:
        raise BadEncoding("a fingerprint's normalisation is a small number")
    for blob, size in ((key, FINGERPRINT_KEY_BYTES), (mac, FINGERPRINT_MAC_BYTES)):
        if not isinstance(blob, bytes) or len(blob) != size:
            raise BadEncoding(f"a fingerprint field must have {size} bytes")
    return Fingerprint(norm, key, mac)
