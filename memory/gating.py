"""What a change of an agent's policy does to records that are here (R21)."""

from __future__ import annotations

import sqlite3
from typing import Final

import keys.codec as codec
from keys.authority import Authority
from keys.policy import SAYING_KINDS, Policy
from memory.rows import LIVE_STATES

_KIND: Final = "kind."


def effect(connection: sqlite3.Connection, after: Policy) -> tuple[int, int]:
    """How many records would no longer wait for a person under a policy, and how many newly.

    What a person has approved or rejected is not among them: that decides whatever the policy says.
    """
    released = withheld = 0
    for kind, category, provenance, own, packed in connection.execute(
        "SELECT kind, category, provenance, own, detail FROM record"
        " WHERE own IN ('proposed', 'new', 'current')"
    ):
        detail = codec.unpack(packed)
        imported = isinstance(detail["body"].get("imported"), bytes)
        gated = after.gates(kind, category, provenance, imported=imported)
        released += own == "proposed" and detail["proposal"] and not gated
        withheld += own in LIVE_STATES and not detail["gated"] and gated
    return released, withheld


def gated_otherwise(
    connection: sqlite3.Connection, before: Authority, after: Authority
) -> list[bytes]:
    """The records, of whatever state, whose gate may differ between two sets of statements."""
    words = before.policy.settings
    changed = {k for k, word in after.policy.settings.items() if words[k] != word}
    kinds = {k.removeprefix(_KIND) for k in changed if k.startswith(_KIND)}
    if any(k.startswith(("provenance.", "category.")) for k in changed):
        kinds |= SAYING_KINDS
    if "provenance.import" in changed:  # an import is of every kind
        kinds |= {r[0] for r in connection.execute("SELECT DISTINCT kind FROM record")}
    return [
        record
        for kind in sorted(kinds)
        for (record,) in connection.execute(
            "SELECT record FROM record WHERE kind = ? AND own <> 'erased' ORDER BY record", (kind,)
        )
    ]
