"""How results look: ids as text, times as ISO 8601 UTC, record time also in microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdt.entry import Via
from keys.ids import DeviceId, EntryHash, RecordId
from keys.limits import RECORD_BYTES
from memory.query import Seen, Version
from memory.when import read_when
from node.times import iso, iso_ms


def record_of(seen: Seen, now_us: int) -> dict[str, Any]:
    """A record as ``search``, ``list`` and ``show`` print it."""
    out: dict[str, Any] = {
        "record": str(seen.record),
        "kind": seen.kind,
        "text": seen.text,
        "state": seen.state_at(now_us),
        "category": seen.category,
        "layer": seen.layer,
        "tags": list(seen.tags),
        "weight": seen.weight,
        "provenance": seen.provenance,
        "source": seen.source,
        "valid_from": iso(seen.valid_from),
        "valid_to": iso(seen.valid_to),
        "recorded_at": iso_ms(seen.changed_ms),
        "recorded_at_us": seen.changed_ms * 1000,
    }
    if seen.state == "erased":
        return {k: out[k] for k in ("record", "state", "recorded_at", "recorded_at_us")}
    optional = {
        "speaker": seen.speaker,
        "session": seen.session,
        "title": seen.title,
        "expires": iso(seen.expires),
        "duplicate_of": str(RecordId(seen.duplicate)) if seen.duplicate else None,
    }
    out |= {k: v for k, v in optional.items() if v is not None}
    out |= shape_of(seen)
    successors = successors_of(seen)
    if successors:
        out["successor"] = successors[0]
        out["successors"] = successors
        out["conflict"] = len(successors) > 1
    keys = seen.detail.get("disputed", ())
    if keys or seen.rival:
        out |= {"conflict": True, "disputed": list(keys)}
    return out


_SHAPES: Final[Mapping[str, Sequence[str]]] = {
    "entity": ("root",),
    "property": ("entity", "name"),
    "relation": ("from", "to", "name"),
    "section": ("file",),
    "file": ("mutability",),
    "turn": ("channel", "message"),
    "summary": ("channel",),
    "session": ("channel",),
    "diary": ("channel",),
    "skill": ("parameters",),
    "perspective": ("name",),
    "identity": ("name",),
}


def shape_of(seen: Seen) -> dict[str, Any]:
    """What only records of its kind have: ids as text; a name for what is known by one."""
    body = seen.detail.get("body", {})
    out = {key: body[key] for key in _SHAPES.get(seen.kind, ()) if key in body}
    for key, value in out.items():
        if isinstance(value, bytes):
            out[key] = str(RecordId(value)) if len(value) == RECORD_BYTES else value.hex()
    if seen.kind in ("entity", "file", "session", "skill"):
        out["name"] = seen.title or seen.text
    return out


def successors_of(seen: Seen) -> list[str]:
    """The records that replace this one: more than one is a conflict that is shown."""
    facts = seen.detail.get("facts", ())
    return sorted(
        {str(RecordId(bytes.fromhex(key[5:]))) for _, key, _ in facts if key.startswith("next.")}
    )


def detail_of(seen: Seen, now_us: int) -> dict[str, Any]:
    """Everything about one record."""
    out = record_of(seen, now_us) | {"created_at": iso_ms(seen.created_ms)} | _when(seen)
    if seen.state == "erased":  # who created it, the history tells
        return out | {"tombstones": [str(EntryHash(h)) for h in seen.detail["tombstones"]]}
    return out | {
        "device": str(DeviceId(seen.device)),
        "via": via_name(seen.via),
        "heads": [str(EntryHash(h)) for h in seen.detail["heads"]],
        "derived_from": [str(RecordId(s)) for s in seen.detail["sources"]],
        "facts": [
            {"entry": str(EntryHash(entry)), "fact": _fact(key, value), "key": key}
            for entry, key, value in seen.detail["facts"]
        ],
    }


def shown_of(seen: Seen, now_us: int) -> dict[str, Any]:
    """A live record as an agent is shown it: where it came from, and no reasons or proposals."""
    return (
        record_of(seen, now_us)
        | _when(seen)
        | {
            "created_at": iso_ms(seen.created_ms),
            "device": str(DeviceId(seen.device)),
            "via": via_name(seen.via),
        }
    )


def _when(seen: Seen) -> dict[str, Any]:
    """What the relative dates of the text meant when it was written."""
    when = read_when(seen.detail.get("body", {}).get("when"))
    return {"when": when} if when else {}


def _fact(key: str, value: str) -> str:
    return f"superseded {value}" if key.startswith("next.") else value


def version_of(version: Version, number: int) -> dict[str, Any]:
    """A version as ``history`` prints it; ``number`` counts over the whole chain."""
    return {
        "version": number,
        "record": str(version.record),
        "text": version.text,
        "state": version.state,
        "by": DeviceId(version.device).short(),
        "via": via_name(version.via),
        "device": str(DeviceId(version.device)),
        "reason": version.reason,
        "recorded_at": iso_ms(version.time_ms),
        "recorded_at_us": version.time_ms * 1000,
        "entry": str(EntryHash(version.entry)),
        **version.content,
    }


def via_name(via: int) -> str:
    """The principal kind's word."""
    return Via(via).name.lower() if via in Via.__members__.values() else "unknown"
