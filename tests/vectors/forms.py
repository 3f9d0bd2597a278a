"""How values and bytes stand in the JSON of the vectors, and back."""

from __future__ import annotations

import json
import struct
from typing import Any

PERIODS = (1, 34)  # of zeros and such, and of hashes in a list
REPEATED_BYTES_MIN = 128


def hexed(data: bytes) -> str:
    """Bytes as hex; what repeats often stands once as ``xx*n``, between spaces."""
    parts, at, start = list[str](), 0, 0
    while at < len(data):
        period, times = max(((p, _times(data, at, p)) for p in PERIODS), key=lambda f: f[0] * f[1])
        if period * times < REPEATED_BYTES_MIN or times < 2:
            at += 1
            continue
        parts += [data[start:at].hex(), f"{data[at : at + period].hex()}*{times}"]
        at = start = at + period * times
    return " ".join(part for part in [*parts, data[start:].hex()] if part)


def _times(data: bytes, at: int, period: int) -> int:
    once = data[at : at + period]
    times = 1
    while data.startswith(once, at + times * period):
        times += 1
        if at + times * period >= len(data):
            break
    return times


def unhexed(text: str) -> bytes:
    """The bytes of ``hexed``."""
    out = b""
    for part in text.split():
        digits, _, times = part.partition("*")
        out += bytes.fromhex(digits) * int(times or 1)
    return out


def shown(value: Any) -> Any:
    """A MessagePack value as JSON that loses neither type nor precision."""
    match value:
        case None | bool():
            return value
        case int():
            return {"int": str(int(value))}
        case float():
            return {"f64": struct.pack(">d", value).hex()}
        case str():
            return {"str": value} if len(value) <= 64 else {"utf8": hexed(value.encode())}
        case bytes():
            return {"bin": hexed(bytes(value))}
        case list() | tuple():
            return [shown(inner) for inner in value]
        case dict():
            return {"map": [[key, shown(inner)] for key, inner in value.items()]}
    raise TypeError(type(value).__name__)


def read(value: Any) -> Any:
    """The value of ``shown``."""
    match value:
        case {"int": str(text)}:
            return int(text)
        case {"f64": str(text)}:
            return struct.unpack(">d", bytes.fromhex(text))[0]
        case {"str": str(text)}:
            return text
        case {"utf8": str(text)}:
            return unhexed(text).decode()
        case {"bin": str(text)}:
            return unhexed(text)
        case {"map": list(rows)}:
            return {key: read(inner) for key, inner in rows}
        case list(rows):
            return [read(inner) for inner in rows]
    return value


def utf32(text: str) -> str:
    """Text as hex of its code points, so that lone surrogates can stand there too."""
    return text.encode("utf-32-be", "surrogatepass").hex()


def from_utf32(text: str) -> str:
    """The text of ``utf32``."""
    return bytes.fromhex(text).decode("utf-32-be", "surrogatepass")


def rendered(suite: dict[str, Any]) -> str:
    """A suite as JSON with one case per line."""
    head = {key: value for key, value in suite.items() if key != "cases"}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    cases = ",\n".join(json.dumps(case) for case in suite["cases"])
    return "{\n" + "\n".join(lines) + '\n"cases": [\n' + cases + "\n]}\n"
