"""The one door to MessagePack: a canonical, strict, bounded codec.

1. ``encode`` gives the shortest encoding; map keys are strings in byte order.
2. ``decode(b)`` succeeds only if ``encode(decode(b)) == b`` (so no long integers, no duplicate or
   unsorted keys, no trailing bytes, no NaN, no extension types, no str/bytes confusion).
3. The size is checked before anything is read; the number of values and the depth are counted on
   the raw bytes before anything is allocated for them.
4. ``decode`` raises ``BadEncoding`` and nothing else.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgpack

from keys.errors import BadEncoding
from keys.limits import CODEC_ITEMS_MAX, INT_MAX, INT_MIN, NESTING_MAX, SMALL_BYTES

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"

_pack = msgpack.Packer(use_bin_type=True, strict_types=False, autoreset=True).pack


# AttributeError: a map key of bytes, which the library lets through, has no ``encode``.
_NOT_OURS = (
    AttributeError,
    ValueError,
    TypeError,
    RecursionError,
    msgpack.exceptions.UnpackException,
)


def encode(value: Any) -> bytes:
    """Return the canonical MessagePack of ``value``.

    Accepts None, bool, int (-2**63 .. 2**64 - 1), finite float, str without surrogates, bytes and
    subclasses, list, tuple and dict with str keys. Raises ``BadEncoding`` for anything else.
    """
    _check(value, 0)
    try:
        return _pack(_sorted(value))  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as exc:
        raise BadEncoding("a value that cannot be encoded") from exc


def decode(data: bytes, size_max: int, items_max: int = CODEC_ITEMS_MAX) -> Any:
    """Return the value that ``data`` canonically encodes.

    ``size_max`` is in bytes, ``items_max`` counts values at every depth. Raises ``BadEncoding``
    when a bound is passed or the encoding is not the canonical one.
    """
    if len(data) > size_max:
        raise BadEncoding(f"{len(data)} bytes where at most {size_max} are allowed")
    _scan(data, items_max)
    try:
        value = msgpack.unpackb(data, raw=False, strict_map_key=True, use_list=True)
        again = _pack(_sorted(value))
    except _NOT_OURS as exc:
        raise BadEncoding("not MessagePack of the allowed types") from exc
    if again != data:
        raise BadEncoding("not the canonical encoding")
    return value


def pack(value: Any) -> bytes:
    """MessagePack of a list that this program built itself, without the checks of ``encode``."""
    return bytes(_pack(value))


def unpack(data: bytes) -> Any:
    """What ``pack`` packed: for bytes from our own store only."""
    return msgpack.unpackb(data, raw=False, strict_map_key=False, use_list=True)


def decode_small(data: bytes) -> Any:
    """``decode`` for bytes whose field types the caller checks exactly, one by one.

    Skips the walk over the raw bytes (which costs more than all the rest) where so little can be
    built from them that it does not matter, ``SMALL_BYTES`` at most. Raises ``BadEncoding``.
    """
    if len(data) > SMALL_BYTES:
        _scan(data, CODEC_ITEMS_MAX)
    try:
        value = msgpack.unpackb(data, raw=False, strict_map_key=True)
        again = _pack(value)
    except _NOT_OURS as exc:
        raise BadEncoding("not MessagePack of the allowed types") from exc
    if again != data:
        raise BadEncoding("not the canonical encoding")
    return value


def decode_first(data: bytes) -> tuple[Any, int]:
    """The first value of ``data`` and its length; otherwise as ``decode_small``."""
    if len(data) > SMALL_BYTES:
        _walk(data, CODEC_ITEMS_MAX)
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=True, max_buffer_size=len(data) or 1)
    try:
        unpacker.feed(data)
        value = unpacker.unpack()
        length: int = unpacker.tell()
        again = _pack(value)
    except _NOT_OURS as exc:
        raise BadEncoding("not MessagePack of the allowed types") from exc
    if again != (data if length == len(data) else data[:length]):
        raise BadEncoding("not the canonical encoding")
    return value, length


def _sorted(value: Any) -> Any:
    """Maps with their keys in byte order; everything else as it is."""
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: item[0].encode())
        return {key: _sorted(inner) for key, inner in items}
    if isinstance(value, (list, tuple)):
        return [
            _sorted(inner) if isinstance(inner, (dict, list, tuple)) else inner for inner in value
        ]
    return value


def _check(value: Any, depth: int) -> None:
    if depth > NESTING_MAX:
        raise BadEncoding(f"nested deeper than {NESTING_MAX}")
    if isinstance(value, (list, tuple)):
        for inner in value:
            _check(inner, depth + 1)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadEncoding("a map key that is not text")
            _check(key, depth + 1)
            _check(inner, depth + 1)
    else:
        _check_scalar(value)


def _check_scalar(value: Any) -> None:
    match value:
        case None | bool() | bytes():
            return
        case str():
            if not value.isascii():
                _check_text(value)
        case int():
            if not INT_MIN <= value <= INT_MAX:
                raise BadEncoding("an integer of more than 64 bits")
        case float():
            if not math.isfinite(value):
                raise BadEncoding("a number that is not finite")
        case _:
            raise BadEncoding(f"a value of type {type(value).__name__}")


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise BadEncoding("text with a lone surrogate") from exc


# First byte -> (bytes of length field or fixed body, kind): see the MessagePack specification.
_FIXED = {
    0xC0: 0,
    0xC2: 0,
    0xC3: 0,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
_BLOBS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}


def _scan(data: bytes, items_max: int) -> None:
    """Raise unless ``data`` is one value in bounds, of allowed types, without NaN."""
    if _walk(data, items_max) != len(data):
        raise BadEncoding("trailing bytes")


def _walk(data: bytes, items_max: int) -> int:
    """Walk one value without building anything; the position after it."""
    pos, seen, size = 0, 0, len(data)
    open_counts = [1]  # values still to come at each depth
    while open_counts:
        if open_counts[-1] == 0:
            open_counts.pop()
            continue
        open_counts[-1] -= 1
        seen += 1
        if seen > items_max:
            raise BadEncoding(f"more than {items_max} values")
        if pos >= size:
            raise BadEncoding("ends too early")
        pos, children = _step(data, pos, size)
        if children:
            if children > size - pos:
                raise BadEncoding("ends too early")
            open_counts.append(children)
            if len(open_counts) > NESTING_MAX + 1:
                raise BadEncoding(f"nested deeper than {NESTING_MAX}")
    return pos


def _step(data: bytes, pos: int, size: int) -> tuple[int, int]:
    """One value's head: the position after it (and its body) and how many values it holds."""
    first = data[pos]
    pos += 1
    if first <= 0x7F or first >= 0xE0:
        return pos, 0
    if first >= 0xA0 and first <= 0xBF:
        return _inside(pos + (first & 0x1F), size), 0
    if first <= 0x8F:
        return pos, 2 * (first & 0x0F)
    if first <= 0x9F:
        return pos, first & 0x0F
    if first in _FIXED:
        end = _inside(pos + _FIXED[first], size)
        if first == 0xCB and (data[pos] & 0x7F) == 0x7F and data[pos + 1] >= 0xF0:
            raise BadEncoding("a number that is not finite")
        return end, 0
    for table, factor in ((_BLOBS, 0), (_LISTS, 1), (_MAPS, 2)):
        if first in table:
            width = table[first]
            end = _inside(pos + width, size)
            count = int.from_bytes(data[pos:end], "big")
            return (_inside(end + count, size), 0) if factor == 0 else (end, factor * count)
    raise BadEncoding(f"type byte {first:#04x} is not allowed")


def _inside(end: int, size: int) -> int:
    if end > size:
        raise BadEncoding("ends too early")
    return end
