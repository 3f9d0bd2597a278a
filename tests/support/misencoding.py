"""MessagePack that says what a value says, or nearly, and is not its canonical encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack

_INTEGERS = ((b"\xcc", 1), (b"\xcd", 2), (b"\xce", 4), (b"\xcf", 8))
_BINS = ((b"\xc4", 1), (b"\xc5", 2), (b"\xc6", 4))
_STRS = ((b"\xd9", 1), (b"\xda", 2), (b"\xdb", 4))


def misencoded(value: Any, *, trailing: bool = True) -> Iterator[bytes]:
    """Other encodings of ``value`` and of everything in it; some give another value, or none."""
    good = msgpack.packb(value)
    if trailing:
        yield good + b"\0"
    match value:
        case bool() | None:
            return
        case int():
            yield from _long(value.to_bytes(8, "big", signed=value < 0), good, _INTEGERS)
            yield msgpack.packb(float(value))
            yield b"\xd4\x05\x01"  # an extension
        case bytes():
            yield from _longer(value, good, _BINS)
            yield b"\xda" + len(value).to_bytes(2, "big") + value  # as text
            yield b"\xc8" + len(value).to_bytes(2, "big") + b"\x05" + value  # as an extension
        case str():
            yield from _longer(value.encode(), good, _STRS)
            yield b"\xc5" + len(value.encode()).to_bytes(2, "big") + value.encode()  # as bytes
        case list():
            yield from _of_list(value)
        case dict():
            yield from _of_map(value)


def _long(eight: bytes, good: bytes, heads: tuple[tuple[bytes, int], ...]) -> Iterator[bytes]:
    for head, size in heads:
        if head != good[:1] and not any(eight[:-size]):
            yield head + eight[-size:]


def _longer(body: bytes, good: bytes, heads: tuple[tuple[bytes, int], ...]) -> Iterator[bytes]:
    for head, size in heads:
        if head != good[:1] and len(body) < 256**size:
            yield head + len(body).to_bytes(size, "big") + body


def _of_list(value: list[Any]) -> Iterator[bytes]:
    packed = [msgpack.packb(inner) for inner in value]
    whole = b"".join(packed)
    head = msgpack.packb(value)[: -len(whole) or None]
    yield b"\xdd" + len(value).to_bytes(4, "big") + whole
    yield b"\xdc" + (len(value) + 1).to_bytes(2, "big") + whole + b"\xc0"
    for at, inner in enumerate(value):
        for bad in misencoded(inner, trailing=False):
            yield head + b"".join([*packed[:at], bad, *packed[at + 1 :]])


def _of_map(value: dict[str, Any]) -> Iterator[bytes]:
    head = bytes([0x80 | len(value)])
    pairs = [msgpack.packb(key) + msgpack.packb(inner) for key, inner in value.items()]
    yield b"\xdf" + len(value).to_bytes(4, "big") + b"".join(pairs)
    if not value:
        return
    yield bytes([0x81 + len(value)]) + pairs[0] + b"".join(pairs)  # a key twice
    if len(pairs) > 1:
        yield head + b"".join(reversed(pairs))
    for at, (key, inner) in enumerate(value.items()):
        others = [*misencoded(key, trailing=False)]
        changed = [other + msgpack.packb(inner) for other in others]
        changed += [msgpack.packb(key) + bad for bad in misencoded(inner, trailing=False)]
        for pair in changed:
            yield head + b"".join([*pairs[:at], pair, *pairs[at + 1 :]])
