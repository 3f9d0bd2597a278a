"""What a record of a kind carries beside its note when it is moved: its keys, and whose part it is.

One table says it for export and import alike; a key that is in no table would be lost, which a test
looks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from crdt.payload import Scalar
from keys.ids import RecordId
from keys.limits import RECORD_BYTES
from memory.query import Seen

TEXT: Final = "text"
WHOLE: Final = "whole"  # a whole number
FLAG: Final = "flag"
REF: Final = "ref"  # a record; in a field it may be none
REFS: Final = "refs"  # records, in their order

# A record by the id that the file has for it, or a text: the entity of that name.
Ref: TypeAlias = "RecordId | str"
Keys: TypeAlias = Mapping[str, tuple[str, str]]

_EVERY: Final[Keys] = {"pinned": ("field.pinned", FLAG), "no_intake": ("field.no_intake", FLAG)}
_CHANNEL: Final[Keys] = {"channel": ("body.channel", TEXT)}
_NAME: Final[Keys] = {"name": ("body.name", TEXT)}
_KEYS: Final[Mapping[str, Keys]] = {
    "entity": {"root": ("body.root", TEXT), "parent": ("field.parent", REF)},
    "property": {"entity": ("body.entity", REF), **_NAME},
    "relation": {"from": ("body.from", REF), "to": ("body.to", REF), **_NAME},
    "file": {"mutability": ("body.mutability", TEXT), "sections": ("field.sections", REFS)},
    "section": {"file": ("body.file", REF)},
    "session": {**_CHANNEL, "ended_at": ("field.ended_at", WHOLE)},
    "turn": {**_CHANNEL, "message": ("body.message", TEXT)},
    "summary": _CHANNEL,
    "diary": _CHANNEL,
    "skill": {"parameters": ("body.parameters", TEXT)},
    "perspective": _NAME,
    "identity": _NAME,
}


def keys_of(kind: str) -> Keys:
    """``{key of a row: (key of a record, type)}`` of a kind."""
    return {**_KEYS.get(kind, {}), **_EVERY}


@dataclass(frozen=True, slots=True)
class Carried:
    """The values and the references of one row."""

    values: tuple[tuple[str, str | int], ...] = ()
    refs: tuple[tuple[str, tuple[Ref, ...]], ...] = ()

    @property
    def needed(self) -> list[Ref]:
        """What the creation names: without it there is no record."""
        return [ref for key, refs in self.refs for ref in refs if key.startswith("body.")]


NOTHING: Final = Carried()


def carried_in(seen: Seen) -> dict[str, str | int | list[RecordId]]:
    """The row keys of a record with their values; references as ids here."""
    held: dict[str, Scalar] = {f"body.{k}": v for k, v in seen.detail.get("body", {}).items()}
    held |= {f"field.{k}": v for k, v in seen.detail.get("fields", {}).items()}
    out: dict[str, str | int | list[RecordId]] = {}
    for name, (key, kind) in keys_of(seen.kind).items():
        value = held.get(key)
        if kind in (REF, REFS):
            if isinstance(value, bytes) and value:
                out[name] = list(_split(value))
        elif isinstance(value, (str, int)):
            out[name] = value
    return out


def _split(packed: bytes) -> Iterable[RecordId]:
    if len(packed) % RECORD_BYTES:
        return []
    return [RecordId(packed[i : i + RECORD_BYTES]) for i in range(0, len(packed), RECORD_BYTES)]
