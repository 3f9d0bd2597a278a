"""Keyed fingerprints of normalised texts: how a value is known again without being kept (R27, R28).

Normalisation 1, pinned to Unicode 14: NFKC (``nfkc``), casefold, NFKC; format characters (category
Cf) dropped; every run of white space becomes one space; white space and punctuation (category P) at
the edges dropped, unless nothing would be left. Code points that Unicode 14 does not assign pass
unchanged. What it does not catch stands in FORMAT.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

from crdt.payload import FINGERPRINT_KEY_BYTES, FINGERPRINT_MAC_BYTES, Fingerprint
from keys.errors import BadEncoding
from keys.ids import hash256
from keys.limits import KEY_BYTES, MARKS_MAX

NORMALISATION: Final = 1

# Assigned by Unicode 15.0 and not by 14.0 (CPython 3.12 and 3.11): they pass unchanged.
_AFTER_14: Final = (
    (0xCF3, 0xCF3),
    (0xECE, 0xECE),
    (0x10EFD, 0x10EFF),
    (0x1123F, 0x11241),
    (0x11B00, 0x11B09),
    (0x11F00, 0x11F10),
    (0x11F12, 0x11F3A),
    (0x11F3E, 0x11F59),
    (0x1342F, 0x1342F),
    (0x13439, 0x13455),
    (0x1B132, 0x1B132),
    (0x1B155, 0x1B155),
    (0x1D2C0, 0x1D2D3),
    (0x1DF25, 0x1DF2A),
    (0x1E030, 0x1E06D),
    (0x1E08F, 0x1E08F),
    (0x1E4D0, 0x1E4F9),
    (0x1F6DC, 0x1F6DC),
    (0x1F774, 0x1F776),
    (0x1F77B, 0x1F77F),
    (0x1F7D9, 0x1F7D9),
    (0x1FA75, 0x1FA77),
    (0x1FA87, 0x1FA88),
    (0x1FAAD, 0x1FAAF),
    (0x1FABB, 0x1FABD),
    (0x1FABF, 0x1FABF),
    (0x1FACE, 0x1FACF),
    (0x1FADA, 0x1FADB),
    (0x1FAE8, 0x1FAE8),
    (0x1FAF7, 0x1FAF8),
    (0x2B739, 0x2B739),
    (0x31350, 0x323AF),
)
_LATER: Final = re.compile(
    "([" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _AFTER_14) + "]+)"
)
_ASCII_EDGES: Final = " !\"#%&'()*,-./:;?@[\\]_{}"  # ASCII white space and category P


def normalise(text: str) -> str:
    """Normalisation 1 of ``text``; raises ``BadEncoding`` for lone surrogates."""
    if text.isascii():
        folded = text.lower()
        bare = " ".join(_CONTROL_SPACE.sub(" ", folded).split(" ")).strip(" ")
        return _ONE_SPACE.sub(" ", bare).strip(_ASCII_EDGES) or _ONE_SPACE.sub(" ", bare)
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise BadEncoding("text with a lone surrogate") from exc
    parts = _LATER.split(text)
    folded = "".join(part if i % 2 else _fold(part) for i, part in enumerate(parts))
    bare = _spaces(folded)
    return _strip(bare) or bare


_CONTROL_SPACE: Final = re.compile("[\t\n\x0b\x0c\r\x1c-\x1f]")
_ONE_SPACE: Final = re.compile(" +")


def nfkc(text: str) -> str:
    """NFKC in linear time: marks beyond ``MARKS_MAX`` in a row are normalised in parts of that.

    Sorting the marks of one character takes the square of their number, and a text may have two
    million. No writing has thirty (Unicode calls that the stream-safe format).
    """
    return "".join(unicodedata.normalize("NFKC", part) for part in _parts(text))


def _parts(text: str) -> list[str]:
    if len(text) <= MARKS_MAX:
        return [text]
    parts, start, marks = [], 0, 0
    for i, char in enumerate(text):
        if not unicodedata.combining(char) and char not in _BECOME_MARKS:
            marks = 0
        elif marks == MARKS_MAX:
            parts.append(text[start:i])
            start, marks = i, 1
        else:
            marks += 1
    return [*parts, text[start:]]


_BECOME_MARKS: Final = frozenset(
    "\u0f73\u0f75\u0f81\uff9e\uff9f"
)  # first of what NFKD makes of them


def _fold(text: str) -> str:
    folded = nfkc(nfkc(text).casefold())
    return "".join(c for c in folded if unicodedata.category(c) != "Cf")


def _spaces(text: str) -> str:
    """White space is what ``str.split`` splits at; the code points added later are none."""
    return " ".join(text.split())


def _strip(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _edge(text[start]):
        start += 1
    while end > start and _edge(text[end - 1]):
        end -= 1
    return text[start:end]


def _edge(char: str) -> bool:
    if _LATER.match(char):
        return False
    return char == " " or unicodedata.category(char).startswith("P")


@dataclass(frozen=True)
class FingerprintKey:
    """A secret key of one agent; its id is the start of the commitment that a statement holds."""

    secret: bytes

    def __repr__(self) -> str:
        return f"<fingerprint key {self.id.hex()[:8]}>"

    @cached_property
    def commitment(self) -> bytes:
        """What the founding statement, or a revocation, holds of this key (R25)."""
        return commitment_of(self.secret)

    @cached_property
    def id(self) -> bytes:
        """Eight bytes naming the key in fingerprints."""
        return self.commitment[:FINGERPRINT_KEY_BYTES]

    def fingerprint(self, normalised: str) -> Fingerprint:
        """The fingerprint of a text that ``normalise`` returned."""
        mac = blake2b(
            normalised.encode(),
            key=self.secret,
            digest_size=FINGERPRINT_MAC_BYTES,
            person=b"roost value",
            salt=NORMALISATION.to_bytes(2, "big"),
        ).digest()
        return Fingerprint(NORMALISATION, self.id, mac)


def commitment_of(secret: bytes) -> bytes:
    """BLAKE2b-256 that commits to a fingerprint key; raises ``BadEncoding`` for a wrong size."""
    if len(secret) != KEY_BYTES:
        raise BadEncoding("a fingerprint key has 32 bytes")
    return hash256(b"roost fingerprint key" + secret)


def fingerprints(keys: Iterable[FingerprintKey], text: str) -> list[Fingerprint]:
    """The fingerprints of ``text`` under every key, sorted (R25: every check runs under all)."""
    normalised = normalise(text)
    return sorted(key.fingerprint(normalised) for key in keys)
