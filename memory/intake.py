"""Intake: from diary lines, turns and sections to observations, once, by the device that wrote.

1. Each source gives at most one observation, whose id every run derives from the source: a crash, a
   second run or a restored file writes nothing twice.
2. What was forgotten or retired does not come back this way; an erased observation's id is dead.
3. Text that came out of a context block is not taken in again, nor is a source that is marked.
4. How far a device has come is a local mark in the agent's file, moved in the transaction that
   wrote the results; without it everything is looked at again, with the same outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from crdt.entry import Via, derived_id
from crdt.fingerprint import fingerprints
from crdt.payload import Op, Scalar, put
from keys.errors import RefusedError
from keys.ids import RecordId
from memory.authoring import Author, Commit
from memory.context import without_blocks
from memory.gist import gist
from memory.query import Seen, get_live
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import live_duplicate, refuse_returning

SOURCE_KINDS: Final = frozenset({"diary", "turn", "section"})
BATCH: Final = 200
_MARK: Final = "intake"


@dataclass(slots=True)
class Outcome:
    """What a run did; ``refused`` are sources whose value may not return."""

    looked_at: int = 0
    wrote: list[RecordId] = field(default_factory=list)
    known: int = 0
    refused: list[RecordId] = field(default_factory=list)
    more: bool = False


def take_in(author: Author, run: bytes, now_us: int) -> Outcome:
    """Take in at most ``BATCH`` sources that this device wrote since last time."""
    store = author.store
    out = Outcome()
    mark = _mark(store)
    entries = _written_since(store, author.device, mark)
    out.more = len(entries) == BATCH
    until = entries[-1][0] if out.more else _last_entry(store)
    if not entries:
        if until > mark:  # what others wrote is not walked over again
            with store.changing():
                _set_mark(store, until)
        return out
    values: dict[bytes, RecordId] = {}
    readers = Scope(store.agent, every_state=False)
    with author.commit(Via.CONSOLIDATOR, now_us) as commit:
        for record in dict.fromkeys(record for _, record in entries):
            seen = get_live(store, readers, RecordId(record), now_us=now_us)
            if seen is not None and seen.kind in SOURCE_KINDS:
                out.looked_at += 1
                _take(store, commit, seen, run, values, out, now_us)
        _set_mark(store, until)
    return out


def observation_id(store: AgentStore, source: RecordId) -> RecordId:
    """The id of the observation that intake makes of a source."""
    return derived_id(store.agent, "observation", _key(source))


def _key(source: RecordId) -> bytes:
    return b"intake" + source


def _take(  # noqa: PLR0913 - one source of one run
    store: AgentStore,
    commit: Commit,
    seen: Seen,
    run: bytes,
    values: dict[bytes, RecordId],
    out: Outcome,
    now_us: int,
) -> None:
    record = observation_id(store, seen.record)
    text = gist(without_blocks(seen.text))
    marked = seen.detail.get("fields", {}).get("no_intake") is True
    if not text or marked or _is_there(store, record):
        return
    macs = [p.mac for p in fingerprints(store.keys, text)]
    try:
        refuse_returning(store, macs)
    except RefusedError:
        out.refused.append(seen.record)
        return
    if any(m in values for m in macs) or live_duplicate(store, macs, "observation", now_us):
        out.known += 1
        return
    values.update((m, record) for m in macs)
    commit.create_derived(record, _creation(seen, text, run))
    out.wrote.append(record)


def _creation(seen: Seen, text: str, run: bytes) -> list[Op]:
    """The full set of keys, so that two creations are one of them whole (R10)."""
    keys: dict[str, Scalar] = {
        "kind": "observation",
        "body.category": "episode" if seen.kind == "diary" else "fact",
        "body.derived_from": bytes(seen.record),
        "body.key": _key(seen.record),
        "body.provenance": seen.provenance,  # trusted no more than where it comes from
        "body.run": run,
        "body.session": seen.session,
        "body.speaker": seen.speaker,
        "body.text": text,
        "body.valid_from": seen.valid_from or seen.created_ms * 1000,
        "field.layer": "day",
        "field.weight": seen.weight,
    }
    return [put(key, value) for key, value in sorted(keys.items())]


def _is_there(store: AgentStore, record: RecordId) -> bool:
    return store.folder.tables.old(record).n is not None or store.folder.tables.is_withheld(record)


def _mark(store: AgentStore) -> int:
    found = store.connection.execute("SELECT value FROM meta WHERE key = ?", (_MARK,)).fetchone()
    return int.from_bytes(found[0], "big") if found else 0


def _set_mark(store: AgentStore, entry: int) -> None:
    store.connection.execute(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)", (_MARK, entry.to_bytes(8, "big"))
    )


def _last_entry(store: AgentStore) -> int:
    return int(store.connection.execute("SELECT ifnull(max(id), 0) FROM entry").fetchone()[0])


def _written_since(store: AgentStore, device: bytes, after: int) -> list[tuple[int, bytes]]:
    """(local number, record) of this device's operations past ``after``, oldest first.

    ``CROSS JOIN`` keeps the walk in the order of numbers, so that it ends with the batch; by log
    first, SQLite would read and sort the whole log for each.
    """
    return store.connection.execute(
        "SELECT entry.id, entry.record FROM entry CROSS JOIN log ON log.id = entry.log"
        " WHERE entry.id > ? AND entry.payload_kind NOT IN (0, 2) AND log.device = ?"
        " ORDER BY entry.id LIMIT ?",
        (after, device, BATCH),
    ).fetchall()
