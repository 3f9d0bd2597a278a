"""What a ``lift`` must name so that a value may return (R11, R27), and the note it leaves."""

from __future__ import annotations

from dataclasses import dataclass

from crdt.entry import Via
from crdt.fingerprint import fingerprints
from crdt.payload import put
from keys.ids import RecordId
from keys.signing import random_bytes
from memory.authoring import Author
from memory.query import get
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import MARK_ID_BYTES


@dataclass(frozen=True, slots=True)
class LiftTarget:
    """One lift statement: the facts on a record, or the tombstones of it, that it ends."""

    record: RecordId
    facts: tuple[tuple[bytes, str], ...]
    tombstones: tuple[bytes, ...]


def lift_targets(store: AgentStore, record: RecordId) -> list[LiftTarget]:
    """What refuses a record's value: its own facts, those of its equals, and tombstones."""
    return _targets(store, {bytes(record)}, store.folder.tables.macs(record))


def lift_targets_of(store: AgentStore, text: str) -> list[LiftTarget]:
    """What refuses a text."""
    return _targets(store, set(), [p.mac for p in fingerprints(store.keys, text)])


def _targets(store: AgentStore, refusers: set[bytes], macs: list[bytes]) -> list[LiftTarget]:
    tombstones: set[tuple[bytes, bytes]] = set()
    for mac in macs:
        refusers.update(
            r[0]
            for r in store.connection.execute(
                "SELECT record FROM print JOIN record USING (n) WHERE mac = ? AND refuses = 1",
                (mac,),
            )
        )
        tombstones.update(
            store.connection.execute(
                "SELECT record, hash FROM tombstone_print JOIN tombstone ON tombstone = hash"
                " WHERE mac = ?",
                (mac,),
            ).fetchall()
        )
    targets = []
    for refuser in sorted(refusers):
        facts = _withholding(store, RecordId(refuser))
        if facts:
            targets.append(LiftTarget(RecordId(refuser), tuple(facts), ()))
    for erased in sorted({r for r, _ in tombstones}):
        entries = tuple(sorted(h for r, h in tombstones if r == erased))
        targets.append(LiftTarget(RecordId(erased), (), entries))
    return targets


def _withholding(store: AgentStore, record: RecordId) -> list[tuple[bytes, str]]:
    found = store.connection.execute(
        "SELECT 1 FROM record WHERE record = ? AND own IN ('deprecated', 'superseded')", (record,)
    ).fetchone()
    if found is None:
        return []
    seen = get(store, Scope(store.agent, every_state=True), record, now_us=0)
    return [
        (entry, key)
        for entry, key, value in seen.detail["facts"]
        if key.startswith("next.") or value.partition(" ")[0] == "deprecated"
    ]


def note_lift(
    store: AgentStore, author: Author, record: RecordId, reason: str, now_us: int
) -> tuple[RecordId, str]:
    """Keep the reason as a fact on the record, where it dies with it (R33); the state now."""
    scope = Scope(store.agent, every_state=True)
    seen = get(store, scope, record, now_us=now_us)
    if seen.state != "erased":
        with author.commit(Via.LOCAL, now_us) as commit:
            key = f"mark.{random_bytes(MARK_ID_BYTES).hex()}"
            commit.edit(record, [put(key, f"lifted {reason}")])
    return record, get(store, scope, record, now_us=now_us).state_at(now_us)
