"""What a record of each kind is made of: its keys, whose part it is, by what it is found.

1. Every kind keeps its main text in ``body.text``: of an entity, a session or a file its name.
2. A part (a property, a relation, a section) names its owners in ``OWNER_KEYS``: an erased owner
   erases it, an owner that is not live withholds it.
3. Values are compared within their place (R27): ``blue`` of one entity is not ``blue`` of another.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final, TypeAlias

from crdt.facts import OWNER_KEYS, PART_KINDS
from crdt.payload import Scalar
from keys.limits import RECORD_BYTES

# ``body.*`` of a record without the prefix, as the detail of its row has it.
Body: TypeAlias = Mapping[str, Scalar]

KINDS: Final = (
    "observation",
    "layer",
    "perspective",
    "entity",
    "property",
    "relation",
    "file",
    "section",
    "diary",
    "session",
    "turn",
    "summary",
    "skill",
    "identity",
    "verdict",
)
# Kinds whose values are compared by fingerprint (R27: turns, diary lines and files are not).
COMPARED_KINDS: Final = frozenset({"observation", "perspective", "property", "relation", "summary"})
ROOTS: Final = (
    "persons", "concepts", "procedures", "events", "locations", "organizations", "projects"
)  # fmt: skip
PERSPECTIVES: Final = ("retrospective", "current", "future")
MUTABILITIES: Final = ("mutable", "append", "fixed")
# Kinds that are known by a name; of an entity it can change, so that it is a field.
NAMED_KINDS: Final = frozenset({"entity", "file", "session", "skill"})
PINNED: Final = "yes"
# Kinds that an agent may have a million of; of the others there is a list.
COMMON_KINDS: Final = frozenset({"observation", "turn"})
_NAME_IN_BODY: Final = frozenset({"property", "perspective", "relation", "layer"})


def folded_name(name: str) -> str:
    """A name as names are compared: NFKC, casefolded, white space collapsed (M-C10)."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def names_of(
    kind: str, text: str, title: str | None, body: Body, fields: Body
) -> list[tuple[str, str]]:
    """What a record is found by beside its id and its words: ``(what, value)``."""
    name = body.get("name") if kind in _NAME_IN_BODY else title or text
    out: list[tuple[str, str]] = [] if kind in COMMON_KINDS else [("kind", kind)]
    if kind in NAMED_KINDS | _NAME_IN_BODY and isinstance(name, str):
        out.append(("name", folded_name(name)))
    if fields.get("pinned") is True:
        out.append(("pinned", PINNED))
    adopts = body.get("adopts")
    if isinstance(adopts, bytes) and len(adopts) == RECORD_BYTES:
        out.append(("adopts", adopts.hex()))
    for what in ("channel", "root"):
        value = body.get(what)
        if isinstance(value, str) and value:
            out.append((what, value))
    return out


def owners_in(kind: str, body: Body) -> list[bytes]:
    """The records that a part belongs to."""
    if kind not in PART_KINDS:
        return []
    found = [body.get(key.removeprefix("body.")) for key in OWNER_KEYS]
    return [v for v in found if isinstance(v, bytes) and len(v) == RECORD_BYTES]


def compared_value(kind: str, text: str, body: Body) -> str:
    """What the fingerprint of a record is made of (R27): its text, within its place.

    Empty for kinds that are not compared. ``blue`` of one entity is not ``blue`` of another.
    """
    if kind not in COMPARED_KINDS or not text:
        return ""
    if kind in ("observation", "summary"):
        return text
    name = body.get("name")
    place = [owner.hex() for owner in owners_in(kind, body)]
    place += [folded_name(name)] if isinstance(name, str) else []
    return " ".join([*place, text])
