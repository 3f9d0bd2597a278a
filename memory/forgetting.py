"""Forget: what an erasure reaches, and writing its tombstones in one run (R31)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crdt.entry import LogId, Via
from crdt.fingerprint import normalise
from crdt.log import Tip
from keys.errors import UsageError
from keys.ids import DeviceId, EntryHash, Incarnation, RecordId
from memory.authoring import Author
from memory.notes import check_reason
from memory.query import get
from memory.scope import Scope
from memory.store import AgentStore


@dataclass(frozen=True, slots=True)
class Reach:
    """What forgetting would erase.

    The records named with those of the same value, what was derived from them, and the sources
    that hold the words (erased only when asked).
    """

    named: tuple[RecordId, ...]
    derived: tuple[RecordId, ...]
    sources: tuple[RecordId, ...]


def reach_of(store: AgentStore, records: Iterable[RecordId]) -> Reach:
    """Follow derivation down and sources up; same values count as named."""
    named = _same_values(store, records)
    derived = _closure(store, named, down=True) - named
    holders = {
        record
        for record in _closure(store, named | derived, down=False) - named - derived
        if _holds_words(store, record, named)
    }
    return Reach(
        tuple(RecordId(r) for r in sorted(named)),
        tuple(RecordId(r) for r in sorted(derived)),
        tuple(RecordId(r) for r in sorted(holders)),
    )


def forget(
    author: Author,
    reach: Reach,
    *,
    with_sources: bool,
    reason: str,
    via: Via,
    now_us: int,
) -> list[RecordId]:
    """Write the tombstones of a reach; the records that are not erased afterwards.

    The files still hold the bytes until ``AgentStore.clean`` has run.
    """
    store = author.store
    check_reason(reason)
    wanted = [*reach.named, *reach.derived, *(reach.sources if with_sources else ())]
    with author.commit(via, now_us) as commit:
        for record in wanted:
            if not store.folder.tables.is_erased(record):
                commit.erase(record, "derived" if record in reach.derived else "person")
    return [r for r in wanted if not store.folder.tables.is_erased(r)]


def check_erasable(store: AgentStore, record: RecordId, now_us: int) -> None:
    """Raise unless ``record`` is one that a tombstone may name (R35)."""
    seen = get(store, Scope(store.agent, every_state=True), record, now_us=now_us)
    if seen.kind == "layer":
        raise UsageError("a layer cannot be forgotten", record=str(record))


def _same_values(store: AgentStore, records: Iterable[RecordId]) -> set[bytes]:
    found = {bytes(r) for r in records}
    for record in list(found):
        for mac in store.folder.tables.macs(record):
            found.update(
                r[0]
                for r in store.connection.execute(
                    "SELECT record FROM print JOIN record USING (n) WHERE mac = ?", (mac,)
                )
            )
    return found


def _closure(store: AgentStore, records: Iterable[bytes], *, down: bool) -> set[bytes]:
    tables = store.folder.tables
    seen: set[bytes] = set()
    stack = list(records)
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        stack += tables.linked(at, "source") if down else tables.targets(at, "source")
    return {r for r in seen if _exists(store, r)}


def _exists(store: AgentStore, record: bytes) -> bool:
    return (
        store.connection.execute(
            "SELECT 1 FROM record WHERE record = ? AND own <> 'erased'", (record,)
        ).fetchone()
        is not None
    )


def _holds_words(store: AgentStore, record: bytes, named: Iterable[bytes]) -> bool:
    """Whether a source's text holds the text of one of ``named``, as normalised."""
    text = normalise(_text(store, record))
    return any(words in text for n in named if (words := normalise(_text(store, n))))


def _text(store: AgentStore, record: bytes) -> str:
    found = store.connection.execute(
        "SELECT text FROM record WHERE record = ?", (record,)
    ).fetchone()
    return str(found[0]) if found else ""


def is_clean(store: AgentStore, record: RecordId) -> bool:
    """Whether the bytes of an erased record have left the files here (R34)."""
    found = store.connection.execute("SELECT 1 FROM cleaning WHERE record = ?", (record,))
    return found.fetchone() is None


Place = tuple[LogId, Tip]


def tombstone_places(store: AgentStore, record: RecordId) -> list[Place]:
    """Where the effective tombstones of a record stand: who holds one has erased the record."""
    rows = store.connection.execute(
        "SELECT device, incarnation, seq, hash FROM tombstone"
        " WHERE record = ? AND effective = 1 ORDER BY hash",
        (record,),
    )
    return [
        (LogId(DeviceId(device), Incarnation(incarnation)), Tip(seq, EntryHash(entry)))
        for device, incarnation, seq, entry in rows
    ]
