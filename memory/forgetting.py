"""Forget: what an erasure reaches, and writing its tombstones in one run (R31)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crdt.entry import LogId, Via
from crdt.fingerprint import normalise
from crdt.log import Tip
from crdt.payload import put
from keys.errors import UsageError
from keys.ids import DeviceId, EntryHash, Incarnation, RecordId
from memory.authoring import Author
from memory.notes import check_reason
from memory.query import get
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import also_sources

# What may hold a text without saying where from; a text that is shorter names too much.
HOLDING_KINDS: Final = ("turn", "diary", "section")
HELD_CHARS_MIN: Final = 12
HELD_WORDS_MIN: Final = 3


@dataclass(frozen=True, slots=True)
class Reach:
    """What forgetting erases, and what it was made from.

    ``named``: the records with those of the same value. ``derived``: what was made from them.
    ``holders``: sources, turns, diary lines, sections and imports that hold the words.
    ``sources``: what they were made from in other words, erased only when asked.
    """

    named: tuple[RecordId, ...]
    derived: tuple[RecordId, ...]
    holders: tuple[RecordId, ...]
    sources: tuple[RecordId, ...]


def reach_of(store: AgentStore, records: Iterable[RecordId]) -> Reach:
    """Follow derivation down and sources up; same values count as named."""
    named = _same_values(store, records)
    derived = _closure(store, named, down=True) - named
    again = _said_again(store, named)
    above = (_closure(store, named | derived | again, down=False)) - named - derived
    values = [words for n in sorted(named) if (words := normalise(_text(store, n)))]
    holders = {r for r in above if _holds(normalise(_text(store, r)), values)}
    holders |= _holding(store, values) - named - derived
    derived |= _closure(store, holders, down=True) - named - holders
    sources = above - holders - derived - _owners(store, named)
    return Reach(
        tuple(RecordId(r) for r in sorted(named)),
        tuple(RecordId(r) for r in sorted(derived)),
        tuple(RecordId(r) for r in sorted(holders)),
        tuple(RecordId(r) for r in sorted(sources)),
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

    Sources in other words that stay are marked, so that no keeper takes them in again. The files
    still hold the bytes until ``AgentStore.clean`` has run.
    """
    store = author.store
    check_reason(reason)
    wanted = [*reach.named, *reach.derived, *reach.holders]
    wanted += reach.sources if with_sources else ()
    with author.commit(via, now_us) as commit:
        for record in wanted:
            if not store.folder.tables.is_erased(record):
                commit.erase(record, "derived" if record in reach.derived else "person")
        for record in () if with_sources else reach.sources:
            if _kind(store, record) in HOLDING_KINDS:
                commit.edit(record, [put("field.no_intake", value=True)])
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


def _said_again(store: AgentStore, named: Iterable[bytes]) -> set[bytes]:
    """The sources that only repeated a value (R29)."""
    everyone = Scope(store.agent, every_state=True)
    found: set[bytes] = set()
    for record in named:
        if _exists(store, record):
            seen = get(store, everyone, RecordId(record), now_us=0)
            found |= also_sources(seen.detail.get("fields", {}))
    return {r for r in found if _exists(store, r)}


def _exists(store: AgentStore, record: bytes) -> bool:
    return (
        store.connection.execute(
            "SELECT 1 FROM record WHERE record = ? AND own <> 'erased'", (record,)
        ).fetchone()
        is not None
    )


def _holds(text: str, values: Iterable[str]) -> bool:
    """Whether a normalised text holds one of the normalised values."""
    return any(words in text for words in values)


def _holding(store: AgentStore, values: Iterable[str]) -> set[bytes]:
    """Turns, diary lines, sections and imports that hold one of the values, linked or not."""
    wanted = [words for words in values if _tells(words)]
    found: set[bytes] = set()
    for words in wanted:
        # The longest plain word is looked for first: LIKE folds the case of ASCII and no other.
        plain = max((w for w in words.split() if w.isascii() and w.isalnum()), key=len, default="")
        rows = store.connection.execute(
            "SELECT record, text FROM record WHERE own <> 'erased' AND text LIKE ?"
            " AND (kind IN ('turn', 'diary', 'section') OR (kind = 'observation'"
            " AND provenance = 'import'))",
            (f"%{plain}%",),
        )
        found.update(record for record, text in rows if words in normalise(text))
    return found


def _tells(words: str) -> bool:
    """Whether a normalised text is long enough that another which holds it says the same."""
    spaced = len(words) >= HELD_CHARS_MIN and len(words.split()) >= HELD_WORDS_MIN
    return spaced or (not words.isascii() and " " not in words and len(words) >= HELD_CHARS_MIN)


def _owners(store: AgentStore, named: Iterable[bytes]) -> set[bytes]:
    """What the named are parts of: no source of theirs in the sense of an erasure."""
    tables = store.folder.tables
    return {bytes(owner) for record in named for owner in tables.targets(record, "owner")}


def _kind(store: AgentStore, record: bytes) -> str:
    found = store.connection.execute(
        "SELECT kind FROM record WHERE record = ?", (record,)
    ).fetchone()
    return str(found[0]) if found else ""


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
