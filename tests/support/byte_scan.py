"""Looks for a marker in every byte of every file of a directory, in the encodings it may take."""

from __future__ import annotations

import base64
from pathlib import Path

# A text is also looked for in parts: an index stores a word without the start that it shares with
# the word before it.
PART_CHARS = 16


def needles(marker: str) -> dict[str, bytes]:
    """What a marker may look like in a file, by the name of the form."""
    parts = {"whole": marker}
    parts |= {
        f"part {i}": marker[i : i + PART_CHARS]
        for i in range(0, len(marker) - PART_CHARS + 1, PART_CHARS)
    }
    out: dict[str, bytes] = {}
    for name, part in parts.items():
        plain = part.encode()
        out[f"{name}, utf-8"] = plain
        out[f"{name}, hex"] = plain.hex().encode()
        for encoding in ("utf-16-le", "utf-16-be"):
            out[f"{name}, {encoding}"] = part.encode(encoding)
        for shift in range(3):
            inner = base64.b64encode(bytes(shift) + plain)[4 if shift else 0 :]
            out[f"{name}, base64 at {shift}"] = inner[: len(inner) // 4 * 4 - 4]
    return out


def found_in(folder: Path, *markers: str) -> list[str]:
    """``file: form`` of every place where a marker is; upper and lower case are one."""
    wanted = {f"{marker[:8]} {name}": needle for marker in markers for name, needle in _all(marker)}
    out = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        lowered = data.lower()
        out += [
            f"{path.relative_to(folder)}: {name}"
            for name, needle in wanted.items()
            if needle in data or needle.lower() in lowered
        ]
    return out


def _all(marker: str) -> list[tuple[str, bytes]]:
    return list(needles(marker).items())
