"""Notes: what somebody wants remembered, checked and made storable."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crdt.facts import BODY, TAG
from crdt.payload import Op, put
from keys.errors import UsageError
from keys.ids import RecordId
from keys.limits import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    SOURCE_BYTES_MAX,
    SOURCES_PER_RECORD_MAX,
    TAG_BYTES_MAX,
    TAG_VALUE_BYTES,
    TAGS_PER_RECORD_MAX,
    TEXT_BYTES_MAX,
)
from keys.signing import random_bytes
from memory.rows import CATEGORIES, LAYERS, PROVENANCES, TIME_US_MAX
from memory.shapes import KINDS, compared_value
from memory.when import WHEN_KEY, when_value

WRITABLE_KINDS = tuple(kind for kind in KINDS if kind not in ("layer", "verdict"))

# Kinds whose text speaks of the day it is written on.
DATED_KINDS = frozenset({"observation", "property", "turn", "diary"})


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wants remembered. Times in microseconds UTC."""

    text: str
    kind: str = "observation"
    layer: str = "day"
    tags: tuple[str, ...] = ()
    category: str = "fact"
    provenance: str = "user"
    source: str | None = None
    speaker: str | None = None
    session: str | None = None
    title: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    expires: int | None = None
    weight: float = 1.0
    derived_from: tuple[RecordId, ...] = ()
    imported: bytes | None = None  # the run of an import; makes an observation wait (R21)
    extra: tuple[tuple[str, str | int | float | bytes | None], ...] = ()

    @property
    def value(self) -> str:
        """What its fingerprint is made of; empty where it is not compared (R27)."""
        body = {k.removeprefix(BODY): v for k, v in self.extra if k.startswith(BODY)}
        return compared_value(self.kind, self.text, body)


def creation_ops(note: Note) -> list[Op]:
    """The operations that create a record from a checked note."""
    ops = [
        put("kind", note.kind),
        put("body.text", note.text),
        put("body.category", note.category),
        put("body.provenance", note.provenance),
        put("field.layer", note.layer),
        put("field.weight", note.weight),
    ]
    optional = {
        "body.source": note.source,
        "body.speaker": note.speaker,
        "body.session": note.session,
        "body.valid_from": note.valid_from,
        "body.imported": note.imported,
        "field.title": note.title,
        "field.valid_to": note.valid_to,
        "field.expires_at": note.expires,
        **dict(note.extra),
    }
    ops += [put(key, value) for key, value in optional.items() if value is not None]
    if note.derived_from:
        ops.append(put("body.derived_from", b"".join(note.derived_from)))
    return ops + [add_tag(tag) for tag in note.tags]


def dated(note: Note, now_us: int) -> Note:
    """The note with the relative dates of its text resolved, on the day it is written (M-E12)."""
    meant = when_value(note.text, now_us) if note.kind in DATED_KINDS else None
    return note if meant is None else replace(note, extra=(*note.extra, (WHEN_KEY, meant)))


def add_tag(tag: str) -> Op:
    """An add of a tag: a random value, so that it wins over a concurrent remove (R12)."""
    return put(TAG + tag, random_bytes(TAG_VALUE_BYTES))


def check_note(note: Note) -> Note:
    """The note with its text, tags and names made storable; raises ``UsageError``."""
    text = clean(note.text)
    if not text.strip():
        raise UsageError("there is no text to remember")
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise UsageError(f"a text has at most {TEXT_BYTES_MAX} bytes; split it")
    _one_of("kind", note.kind, WRITABLE_KINDS)
    _one_of("layer", note.layer, LAYERS)
    _one_of("category", note.category, CATEGORIES)
    _one_of("provenance", note.provenance, PROVENANCES)
    if not 0.0 <= note.weight <= 1e9:
        raise UsageError("a weight is a number from 0 to 1e9")
    if len(note.derived_from) > SOURCES_PER_RECORD_MAX:
        raise UsageError(f"a record has at most {SOURCES_PER_RECORD_MAX} sources")
    _check_times(note)
    return Note(
        text=text,
        kind=note.kind,
        layer=note.layer,
        tags=check_tags(note.tags),
        category=note.category,
        provenance=note.provenance,
        source=_short("source", note.source, SOURCE_BYTES_MAX),
        speaker=_short("speaker", note.speaker, NAME_BYTES_MAX),
        session=_short("session", note.session, SOURCE_BYTES_MAX),
        title=_short("title", note.title, SOURCE_BYTES_MAX),
        valid_from=note.valid_from,
        valid_to=note.valid_to,
        expires=note.expires,
        weight=float(note.weight),
        derived_from=tuple(dict.fromkeys(note.derived_from)),
        imported=note.imported,
        extra=note.extra,
    )


def _check_times(note: Note) -> None:
    for time_us in (note.valid_from, note.valid_to, note.expires):
        if time_us is not None and abs(time_us) > TIME_US_MAX:
            raise UsageError("a time beyond what can be kept")
    start, end = note.valid_from, note.valid_to
    if start is not None and end is not None and end <= start:
        raise UsageError("valid-to is not after valid-from")


def check_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Distinct tags in NFC without white space at the ends; raises ``UsageError``."""
    out: dict[str, None] = {}
    for tag in tags:
        short = len(tag) <= 4 * TAG_BYTES_MAX  # longer ones do not fit, whatever NFC makes of them
        word = unicodedata.normalize("NFC", clean(tag)).strip() if short else tag
        if not word or any(c < " " or c == "\x7f" for c in word):
            raise UsageError("a tag is a word without control characters")
        if len(word.encode()) > TAG_BYTES_MAX:
            raise UsageError(f"a tag has at most {TAG_BYTES_MAX} bytes")
        out[word] = None
    if len(out) > TAGS_PER_RECORD_MAX:
        raise UsageError(f"a record has at most {TAGS_PER_RECORD_MAX} tags")
    return tuple(out)


def check_reason(reason: str) -> str:
    """A reason as it is stored; raises ``UsageError`` for an empty or overlong one."""
    words = " ".join(clean(reason).split())
    if not words:
        raise UsageError("a reason is required", hint="--reason TEXT")
    if len(words.encode()) > REASON_BYTES_MAX:
        raise UsageError(f"a reason has at most {REASON_BYTES_MAX} bytes")
    return words


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"no {name} {value[:32]!r}", hint="one of " + ", ".join(allowed))


def _short(name: str, value: str | None, bytes_max: int) -> str | None:
    if value is None:
        return None
    text = clean(value)
    if len(text.encode()) > bytes_max:
        raise UsageError(f"a {name} has at most {bytes_max} bytes")
    return text


def clean(text: str) -> str:
    """Lone surrogates become U+FFFD, so that every text can be stored, signed and sent."""
    return (
        text
        if text.isascii()
        else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
