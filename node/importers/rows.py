"""What every reader yields: a row that can be imported, or a problem with its place in the file.

A row is a JSON object of its own with ``line``, its number for messages: the line of a file that
has lines, else the count of items so far, from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from keys.limits import NAME_BYTES_MAX, SOURCE_BYTES_MAX, TAG_BYTES_MAX, TAGS_PER_RECORD_MAX
from memory.notes import clean

Row = dict[str, Any]

_ROOTS: Final = {
    "person": "persons", "people": "persons", "user": "persons",
    "organization": "organizations", "organisation": "organizations", "company": "organizations",
    "team": "organizations", "location": "locations", "place": "locations", "city": "locations",
    "country": "locations", "event": "events", "meeting": "events", "project": "projects",
    "procedure": "procedures", "process": "procedures", "guide": "procedures",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """One item that cannot be imported, and why; holds no text of a memory."""

    line: int
    message: str
    item: str | None = None
    code: str = "malformed"

    def as_dict(self) -> dict[str, object]:
        """The problem as ``--json`` lists it."""
        place: dict[str, object] = {"line": self.line}
        if self.item is not None:
            place["item"] = self.item
        return place | {"code": self.code, "message": self.message}


def source_of(file: str, place: object) -> str:
    """``FILE#PLACE``, cut to what a source may have: the place is the original id if there is one.

    The file is its name alone: where it lay on this machine is nobody else's business.
    """
    place_text = clean(str(place)).encode()[: SOURCE_BYTES_MAX // 2].decode(errors="ignore")
    room = SOURCE_BYTES_MAX - len(place_text.encode()) - 1
    return clean(file).encode()[:room].decode(errors="ignore") + "#" + place_text


def tags_of(given: object, *more: object) -> list[str]:
    """The texts of a list, or of a text with commas, that can be tags; the others are left out."""
    found = given.split(",") if isinstance(given, str) else given
    out: dict[str, None] = {}
    for tag in [*(found if isinstance(found, list) else []), *more]:
        word = " ".join(clean(tag).split()) if isinstance(tag, str) else ""
        if word and word.isprintable() and len(word.encode()) <= TAG_BYTES_MAX:
            out[word] = None
    return list(out)[:TAGS_PER_RECORD_MAX]


def moment_of(given: object) -> str | None:
    """Seconds since 1970, or ISO 8601 with an offset, as ISO 8601; None for anything else."""
    try:
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC).isoformat()
        if isinstance(given, str) and datetime.fromisoformat(given).tzinfo is not None:
            return given
    except (ValueError, OverflowError, OSError):
        pass
    return None


def name_of(given: object) -> str | None:
    """A name as the kinds take it, one line; None where it is none or too long."""
    words = " ".join(clean(given).split()) if isinstance(given, str) else ""
    return words if words and len(words.encode()) <= NAME_BYTES_MAX else None


def root_of(type_name: object) -> str:
    """The root of the entity tree that another program's type belongs to; else ``concepts``."""
    word = type_name.strip().casefold() if isinstance(type_name, str) else ""
    return _ROOTS.get(word, _ROOTS.get(word.removesuffix("s"), "concepts"))


def entity_row(line: int, name: str, type_name: object, source: str) -> Row:
    """An entity; one of this name and root that is here already is used instead."""
    return {
        "line": line, "kind": "entity", "text": name, "root": root_of(type_name),
        "tags": tags_of([type_name]), "source": source, "provenance": "import",
    }  # fmt: skip


def property_row(line: int, entity: str, name: str, text: str, source: str) -> Row:
    """Something said of an entity, which is known by its name."""
    return {
        "line": line, "kind": "property", "entity": NAMED + entity, "name": name, "text": text,
        "source": source, "provenance": "import",
    }  # fmt: skip


def relation_row(line: int, start: str, name: str, end: str, source: str) -> Row:
    """``start name end``; both ends are known by their names."""
    return {
        "line": line, "kind": "relation", "from": NAMED + start, "to": NAMED + end, "text": name,
        "name": name, "source": source, "provenance": "import",
    }  # fmt: skip


NAMED: Final = "name:"  # before a name in the place of a record's id
