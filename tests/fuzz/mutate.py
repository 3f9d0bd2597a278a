"""Makers of hostile inputs: a valid one is taken apart where its format has joints, and wrecked.

Every maker is a function of a ``random.Random`` alone, so a seed repeats an input.

- ``packed``: MessagePack, also where it lies inside a byte string (operations, headers, gifts).
- ``written``: JSON, one value or lines of them.
- ``spelled``: text and bytes without structure of their own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgpack

Maker = Callable[[random.Random], bytes]

INTS: Final = (
    0, 1, 2, 14, 127, 128, 255, 256, 512, 513, 65_535, 65_536, 2**31, 2**32 - 2, 2**32 - 1, 2**40,
    2**40 + 1, 2**48 - 1, 2**48, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -1, -32, -33, -(2**31),
    -(2**63),
)  # fmt: skip
TEXTS: Final = (
    "", "\0", "kind", "body.text", "field.", "next.", "mark.0", "\u202e", "e\u0301" * 40,
    "\U0001f41d", "a" * 300, "run", "totals", "found", "grant", "127.0.0.1:1", "[::1%0]:0",
)  # fmt: skip
# What no canonical encoding holds, or what promises more than there is.
RAW: Final = (
    b"\xc1", b"\xca\x00\x00\x00\x00", b"\xcb\x7f\xf8" + bytes(6), b"\xcb\x7f\xf0" + bytes(6),
    b"\xcc\x05", b"\xcf" + bytes(7) + b"\x05", b"\xd3" + b"\xff" * 8, b"\xd4\x05\x00",
    b"\xd6\xff" + bytes(4), b"\xc7\x00\x05", b"\xc9\xff\xff\xff\xff\x05", b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xde\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\xdb\x7f\xff\xff\xff", b"\xa2\xed\xa0", b"\xa3\xed\xa0\x80", b"\xa1\xff", b"\xd9\x01a",
    b"\xc5\x00\x01a", b"\x91" * 9 + b"\xc0", b"\x81\xa0" * 40 + b"\xc0",
    b"\x82\xa1a\x01\xa1a\x02", b"\x82\xa1b\x01\xa1a\x02", b"\x81\xc4\x01a\x01", b"\x81\x01\x01",
    b"",
)  # fmt: skip
LARGE: Final = (
    b"\x91" * 2_000 + b"\xc0", b"\xdc\x01\x00" + b"\x80" * 256, b"\xdc\x10\x00" + b"\x90" * 4_096,
    b"\xdc\x10\x00" + b"\x81\xa0\x80" * 4_096, b"\xc5\xff\xff" + bytes(65_535),
)  # fmt: skip
SEED_BYTES_MAX: Final = 16 * 1024


def packed(seeds: Sequence[bytes]) -> Maker:
    """Inputs from valid MessagePack."""
    small = [s for s in seeds if len(s) <= SEED_BYTES_MAX] or list(seeds)
    trees = [(s, msgpack.unpackb(s, strict_map_key=False)) for s in small]

    def make(rng: random.Random) -> bytes:
        seed, tree = rng.choice(trees)
        pick = rng.random()
        if pick < 0.1:
            return spoiled(rng, seed, rng.choice(small))
        if pick < 0.13:
            return msgpack.packb(anything(rng, 3))  # type: ignore[no-any-return]
        data = variant(rng, tree, rng.choice(trees)[1])
        return spoiled(rng, data, seed) if pick > 0.95 else data

    return make


def variant(rng: random.Random, value: Any, other: Any) -> bytes:
    """``value`` with one part of it, anywhere, made wrong or merely different."""
    if rng.random() < 0.8:
        match value:
            case list() if value:
                at = rng.randrange(len(value))
                parts = [msgpack.packb(inner) for inner in value]
                parts[at] = variant(rng, value[at], other)
                return _head(len(value), 0x90, 0xDC) + b"".join(parts)
            case dict() if value:
                return _variant_of_map(rng, value, other)
            case bytes() if len(value) > 8:
                inner = _within(value)
                if inner is not None:
                    tree, padded = inner
                    data = variant(rng, tree, other)
                    data += bytes(-len(data) % 64) if padded else b""
                    return msgpack.packb(data)  # type: ignore[no-any-return]
    return _wreck(rng, value, other)


def _variant_of_map(rng: random.Random, value: dict[Any, Any], other: Any) -> bytes:
    chosen, out = rng.choice(list(value)), _head(len(value), 0x80, 0xDE)
    wrong_key = rng.random() < 0.2
    for key, inner in value.items():
        if key != chosen:
            out += msgpack.packb(key) + msgpack.packb(inner)
        elif wrong_key:
            out += _wreck(rng, key, other) + msgpack.packb(inner)
        else:
            out += msgpack.packb(key) + variant(rng, inner, other)
    return out


def _within(data: bytes) -> tuple[Any, bool] | None:
    """The MessagePack list or map inside a byte string, and whether zeros pad it to 64 bytes."""
    if not (0x80 <= data[0] <= 0x9F or data[0] in {0xDC, 0xDD, 0xDE}):
        return None
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(data))
    unpacker.feed(data)
    try:
        tree = unpacker.unpack()
    except Exception:  # noqa: BLE001 - these bytes are no MessagePack: they have no joints
        return None
    end = unpacker.tell()
    padded = len(data) % 64 == 0 and not any(data[end:])
    return (tree, padded) if end == len(data) or padded else None


def _head(count: int, short: int, long: int) -> bytes:
    return bytes([short | count]) if count < 16 else bytes([long]) + count.to_bytes(2, "big")


def _wreck(rng: random.Random, value: Any, other: Any) -> bytes:
    pick = rng.random()
    if pick < 0.003:
        return rng.choice(LARGE)
    if pick < 0.15:
        return rng.choice(RAW)
    if pick < 0.25:
        return msgpack.packb(_part_of(rng, other))  # type: ignore[no-any-return]
    if pick < 0.35:
        return msgpack.packb(anything(rng, 2))  # type: ignore[no-any-return]
    match value:
        case list() | dict():
            return _wreck_many(rng, value, other)
        case bytes() | str():
            return _wreck_blob(rng, value)
        case int() if not isinstance(value, bool):
            near = value + rng.choice((-2, -1, 1, 2))
            return _packed_or(near if -(2**63) <= near < 2**64 else 0, b"\xc0")
    return _packed_or(rng.choice((None, True, False, 0, 1, 0.0, -0.0, 1e308, "", b"")), b"\xc0")


def _wreck_many(rng: random.Random, value: list[Any] | dict[Any, Any], other: Any) -> bytes:
    """A list or map with an element more, less, twice, elsewhere, or under a wrong count."""
    is_map = isinstance(value, dict)
    pairs = list(value.items()) if isinstance(value, dict) else value
    parts = [b"".join(map(msgpack.packb, p if is_map else (p,))) for p in pairs]
    short, long = (0x80, 0xDE) if is_map else (0x90, 0xDC)
    at = rng.randrange(len(parts)) if parts else 0
    match rng.randrange(7):
        case 0 if parts:
            del parts[at]
        case 1 if parts:
            parts.insert(at, parts[at])
        case 2 if len(parts) > 1:
            parts[at], parts[at - 1] = parts[at - 1], parts[at]
        case 3:
            more = msgpack.packb(_part_of(rng, other))
            parts.insert(at, msgpack.packb("more") + more if is_map else more)
        case 4:
            return _head(len(parts) + rng.choice((-1, 1)) & 0xF, short, long) + b"".join(parts)
        case 5:
            return bytes([long]) + len(parts).to_bytes(2, "big") + b"".join(parts)
        case _ if parts:
            parts = parts[:1] * rng.choice((2, 3, 5, 17, 17, 65, 65, 257, 513, 1_025))
    return _head(len(parts), short, long) + b"".join(parts)


def _wreck_blob(rng: random.Random, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    match rng.randrange(6):
        case 0:
            data = data[:-1]
        case 1:
            data += b"\0"
        case 2:
            data = bytes(len(data))
        case 3:
            data = spoiled(rng, data, data)
        case 4:  # the other type of string
            return msgpack.packb(data.decode("latin-1") if isinstance(value, bytes) else data)  # type: ignore[no-any-return]
        case 5:  # longer than it need be
            return (
                (b"\xdb" if isinstance(value, str) else b"\xc6")
                + len(data).to_bytes(4, "big")
                + data
            )
    kind = msgpack.packb(b"" if isinstance(value, bytes) else "")
    if kind == b"\xa0":
        size = len(data)
        return (bytes([0xA0 | size]) if size < 32 else b"\xda" + size.to_bytes(2, "big")) + data
    return msgpack.packb(data)  # type: ignore[no-any-return]


def _packed_or(value: Any, otherwise: bytes) -> bytes:
    try:
        return msgpack.packb(value)  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        return otherwise


def _part_of(rng: random.Random, value: Any) -> Any:
    while isinstance(value, (list, dict)) and value and rng.random() < 0.8:
        value = rng.choice(list(value.values()) if isinstance(value, dict) else value)
    return value


def anything(rng: random.Random, depth: int) -> Any:
    """A value of a random type, nested up to ``depth``."""
    match rng.randrange(8 if depth else 6):
        case 0:
            return rng.choice(INTS)
        case 1:
            return rng.choice(TEXTS)
        case 2:
            return rng.randbytes(rng.choice((0, 1, 8, 16, 32, 33, 64)))
        case 3:
            return rng.choice((None, True, False))
        case 4:
            return rng.choice((0.0, -0.0, 1.5, 5e-324, 1e308))
        case 5:
            return rng.choice(([], {}))
        case 6:
            return [anything(rng, depth - 1) for _ in range(rng.randrange(5))]
        case _:
            keys = rng.sample(TEXTS, rng.randrange(4))
            return {key: anything(rng, depth - 1) for key in keys}


# -- bytes without structure ----------------------------------------------------------------------


def spoiled(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Bytes with a few of them changed, lost, repeated, or with part of ``other`` among them."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.choice((0, 0x7F, 0x80, 0xC0, 0xC1, 0xDD, 0xFF, rng.randrange(256)))
            case 2:
                out[at:at] = rng.randbytes(rng.choice((1, 1, 2, 8)))
            case 3:
                del out[at : at + rng.choice((1, 1, 2, 8, 64))]
            case 4:
                del out[at:]
            case 5:
                out[at:at] = out[at : at + rng.choice((1, 4, 32))]
            case _:
                start = rng.randrange(len(other) + 1)
                out[at:] = other[start:]
    return bytes(out)


def spelled(seeds: Sequence[bytes], alphabet: bytes = b"") -> Maker:
    """Inputs from valid text or bytes; ``alphabet`` are bytes that mean something in them."""

    def make(rng: random.Random) -> bytes:
        seed = rng.choice(seeds)
        if not alphabet or rng.random() < 0.5:
            return spoiled(rng, seed, rng.choice(seeds))
        out = bytearray(seed)
        for _ in range(rng.randint(1, 4)):
            at, word = rng.randrange(len(out) + 1), bytes([rng.choice(alphabet)])
            match rng.randrange(4):
                case 0:
                    out[at:at] = word * rng.choice((1, 1, 2, 300))
                case 1 if at < len(out):
                    out[at : at + 1] = word
                case 2:
                    out[at:at] = rng.choice(TEXTS).encode()
                case _:
                    del out[at : at + 1]
        return bytes(out)

    return make


# -- JSON -----------------------------------------------------------------------------------------

WORDS: Final = (
    "NaN", "Infinity", "-Infinity", "1e999", "-0", "1" * 25, "9" * 5_000, "0.1e-400", '"\\ud800"',
    '"\\u0000"', "nul", "'a'", '{"a":1,"a":2}', "[" * 100_000, '{"a":' * 3_000, "[1,]", '"', '"\\',
    "\ufeff{}", "[" + "{}," * 2_000 + "{}]", "[" * 500 + "]" * 500, '"\U0001f41d"', "",
)  # fmt: skip


def written(seeds: Sequence[Any], *, lines: bool = False) -> Maker:
    """Inputs from JSON values; with ``lines`` from lists of values, each on a line of its own."""

    def make(rng: random.Random) -> bytes:
        seed = rng.choice(seeds)
        if lines:
            rows = [json.dumps(row) for row in seed]
            at = rng.randrange(len(rows))
            rows[at] = said(rng, seed[at], rng.choice(seeds))
            if rng.random() < 0.2:
                rng.shuffle(rows)
            text = "\n".join(rows) + rng.choice(("\n", "", "\r\n", "\n\n"))
        else:
            text = said(rng, seed, rng.choice(seeds))
        data = text.encode("utf-8", "surrogatepass")
        return spoiled(rng, data, data) if rng.random() < 0.1 else data

    return make


def said(rng: random.Random, value: Any, other: Any) -> str:
    """The JSON of ``value`` with one part of it, anywhere, made wrong or merely different."""
    if rng.random() < 0.85:
        match value:
            case dict() if value:
                chosen = rng.choice(list(value))
                pairs = [
                    f"{json.dumps(k)}: {said(rng, v, other) if k == chosen else json.dumps(v)}"
                    for k, v in value.items()
                ]
                if rng.random() < 0.1:
                    pairs.insert(rng.randrange(len(pairs)), rng.choice(pairs))
                if rng.random() < 0.1:
                    del pairs[rng.randrange(len(pairs))]
                return "{" + ", ".join(pairs) + "}"
            case list() if value:
                return _said_list(rng, value, other)
    pick = rng.random()
    if pick < 0.15:
        return rng.choice(WORDS)
    if pick < 0.4:
        return json.dumps(_part_of(rng, other))
    if pick < 0.8:
        return json.dumps(rng.choice(TEXTS) * rng.choice((1, 1, 50)))
    return json.dumps(rng.choice((*INTS, None, True, False, [], {}, 1.5, [[]], [{}], 10**30)))


def _said_list(rng: random.Random, value: list[Any], other: Any) -> str:
    at = rng.randrange(len(value))
    parts = [json.dumps(v) for v in value]
    parts[at] = said(rng, value[at], other)
    match rng.randrange(8):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[at - 1])
    return "[" + ", ".join(parts) + "]"
