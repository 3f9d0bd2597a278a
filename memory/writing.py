"""Verbs that write: remember, revise, retire, keep, tag, move. Each is one transaction.

The refusals here are the writer's courtesy; what readers see is decided by the fold (R27).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from crdt.entry import Via, tombstone_id
from crdt.facts import TAG, next_key
from crdt.fingerprint import fingerprints
from crdt.payload import Op, delete, put
from keys.errors import BadInput, RefusedError, RoostError, UsageError
from keys.ids import RecordId
from keys.limits import RECORD_BYTES
from keys.signing import random_bytes
from memory.authoring import Author, Commit
from memory.notes import (
    Note,
    add_tag,
    check_note,
    check_reason,
    check_tags,
    clean,
    creation_ops,
    dated,
)
from memory.query import Seen, get
from memory.rows import LIVE_STATES, PROVENANCES
from memory.scope import Scope
from memory.shapes import COMPARED_KINDS
from memory.store import AgentStore

MARK_ID_BYTES = 8
ALSO: Final = "field.also."
ALSO_MAX: Final = 64


class TombstonedError(RefusedError):
    """The value was forgotten; only a person may let it return."""

    code = "tombstoned"


class RetiredError(RefusedError):
    """The value was retired or replaced; a person may let it return."""

    code = "retired"


class NotLiveError(RefusedError):
    """The record is not live any more; its live successor is named where there is one."""

    code = "not_live"
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Written:
    """The record that now holds the value, and whether it is a new one."""

    record: RecordId
    created: bool


@dataclass(slots=True)
class BatchResult:
    """What a batch wrote; ``refused`` pairs the place in the batch with the error."""

    written: list[Written] = field(default_factory=list)
    refused: list[tuple[int, RoostError]] = field(default_factory=list)


def remember(author: Author, note: Note, via: Via, now_us: int) -> Written:
    """Write one note; raises ``UsageError``, or ``RefusedError`` where it may not return."""
    result = remember_batch(author, [note], via, now_us)
    if result.refused:
        raise result.refused[0][1]
    return result.written[0]


def remember_batch(author: Author, notes: Sequence[Note], via: Via, now_us: int) -> BatchResult:
    """Write notes in one commit; what is refused is reported and the rest is written."""
    result = BatchResult()
    seen: dict[tuple[bytes, str], RecordId] = {}
    with author.commit(via, now_us) as commit:
        for place, note in enumerate(notes):
            try:
                written = _remember(author.store, commit, check_note(note), seen, now_us)
            except (UsageError, RefusedError, BadInput) as exc:
                result.refused.append((place, exc))
            else:
                result.written.append(written)
    return result


def _remember(
    store: AgentStore,
    commit: Commit,
    note: Note,
    seen: dict[tuple[bytes, str], RecordId],
    now_us: int,
) -> Written:
    if note.kind in COMPARED_KINDS:
        macs = [p.mac for p in fingerprints(store.keys, note.value)]
        live = next((seen[m, note.kind] for m in macs if (m, note.kind) in seen), None)
        if live is None:
            refuse_returning(store, macs)
            live = live_duplicate(store, macs, note.kind, now_us)
        if live is not None:
            _reinforce(store, commit, live, note, now_us)
            return Written(live, created=False)
        record = commit.create(creation_ops(dated(note, now_us)))
        seen.update({(m, note.kind): record for m in macs})
        return Written(record, created=True)
    return Written(commit.create(creation_ops(dated(note, now_us))), created=True)


def refuse_returning(store: AgentStore, macs: Iterable[bytes]) -> None:
    """Raise when a value may not be written again (the writer's side of R27)."""
    for mac in macs:
        erased = store.connection.execute(
            "SELECT record FROM tombstone_print JOIN tombstone ON tombstone = hash WHERE mac = ?",
            (mac,),
        ).fetchone()
        if erased:
            record = RecordId(erased[0])
            raise TombstonedError(
                "this value was forgotten and may not return",
                hint=f"a person may allow it: roost lift AGENT {record} --reason …",
                tombstone=str(tombstone_id(store.agent, record)),
                record=str(record),
            )
        retired = store.connection.execute(
            "SELECT record, state FROM print JOIN record USING (n) WHERE mac = ? AND refuses = 1",
            (mac,),
        ).fetchone()
        if retired:
            record = RecordId(retired[0])
            raise RetiredError(
                f"this value was {retired[1]} and may not return by itself",
                hint=f"a person may allow it: roost reinstate AGENT {record} --reason …",
                record=str(record),
            )


def live_duplicate(
    store: AgentStore, macs: Iterable[bytes], kind: str, now_us: int
) -> RecordId | None:
    """The live record that holds a value already."""
    for mac in macs:
        found = store.connection.execute(
            "SELECT record FROM print JOIN record USING (n) WHERE mac = ? AND kind = ?"
            " AND live = 1 AND (expires IS NULL OR expires > ?) ORDER BY record",
            (mac, kind, now_us),
        ).fetchone()
        if found:
            return RecordId(found[0])
    return None


def _reinforce(
    store: AgentStore, commit: Commit, record: RecordId, note: Note, now_us: int
) -> None:
    """R29: a local counter, and the union of new tags and sources; nothing else changes."""
    store.connection.execute(
        "INSERT INTO reinforced VALUES (?, 1, ?) ON CONFLICT (record) DO UPDATE"
        " SET times = times + 1, last_us = excluded.last_us",
        (record, now_us),
    )
    held = {
        r[0]
        for r in store.connection.execute(
            "SELECT tag FROM tag JOIN record USING (n) WHERE record = ?", (record,)
        )
    }
    ops = [add_tag(t) for t in note.tags if t not in held]
    ops += _source_ops(store, record, note, now_us)
    if ops:
        commit.edit(record, ops)


def _source_ops(store: AgentStore, record: RecordId, note: Note, now_us: int) -> list[Op]:
    """Puts of the sources that a record has now too; it stays when one of those is erased.

    At most ``ALSO_MAX`` of them: who repeats a value for ever adds nothing more (S-J1).
    """
    sources = [s for s in note.derived_from if s != record]
    if not sources and note.source is None:
        return []
    found = store.connection.execute("SELECT 1 FROM record WHERE record = ?", (record,)).fetchone()
    if found is None:
        return []  # made by this very commit: of a batch that says the same twice
    seen = get(store, Scope(store.agent, every_state=True), record, now_us=now_us)
    fields = seen.detail.get("fields", {})
    cited = {v for k, v in fields.items() if k.startswith("cited.")} | {seen.source}
    held = {*map(bytes, seen.detail.get("sources", ())), *also_sources(fields)}
    ops = [put(f"{ALSO}{s.hex()}", value=True) for s in sources if bytes(s) not in held]
    if note.source is not None and note.source not in cited:
        ops.append(put(f"field.cited.{random_bytes(MARK_ID_BYTES).hex()}", note.source))
    there = sum(k.startswith(("also.", "cited.")) for k in fields)
    return ops[: max(0, ALSO_MAX - there)]


def also_sources(fields: Mapping[str, object]) -> set[bytes]:
    """The records that said a value again, from the fields of the one that holds it."""
    keys = [k.removeprefix("also.") for k in fields if k.startswith("also.")]
    return {bytes.fromhex(k) for k in keys if len(k) == RECORD_BYTES * 2 and _is_hex(k)}


def _is_hex(text: str) -> bool:
    return set(text) <= set("0123456789abcdef")


def revise(  # noqa: PLR0913 - who writes is said, never guessed
    author: Author,
    record: RecordId,
    text: str,
    reason: str,
    *,
    via: Via,
    now_us: int,
    by_agent: bool = False,
) -> Written:
    """Replace a live record's text by a new record; the old one is superseded.

    The words of a person are trusted as such. An agent's are not: what came from a tool stays so.
    """
    store = author.store
    reason = check_reason(reason)
    old = _live(store, record, now_us)
    note = check_note(
        Note(
            text=text,
            kind=old.kind,
            layer=old.layer,
            tags=old.tags,
            category=old.category,
            provenance=_revised_provenance(old.provenance, by_agent=by_agent),
            source=old.source,
            speaker=old.speaker,
            session=old.session,
            title=old.title,
            valid_from=old.valid_from,
            valid_to=old.valid_to,
            expires=old.expires,
            weight=old.weight,
            derived_from=tuple(RecordId(s) for s in old.detail.get("sources", ())),
        )
    )
    macs = [p.mac for p in fingerprints(store.keys, note.value)]
    if set(macs) & set(store.folder.tables.macs(record)):
        raise UsageError("the new text is the same value", record=str(record))
    with author.commit(via, now_us) as commit:
        if old.kind in COMPARED_KINDS:
            refuse_returning(store, macs)
        live = live_duplicate(store, macs, old.kind, now_us) if old.kind in COMPARED_KINDS else None
        successor = live or commit.create(creation_ops(dated(note, now_us)))
        commit.edit(record, [put(next_key(successor), reason)])
    return Written(successor, created=live is None)


def _revised_provenance(old: str, *, by_agent: bool) -> str:
    untrusted = old in PROVENANCES[2:]
    if by_agent:
        return old if untrusted else "agent"
    return "user" if untrusted else old


def mark(
    author: Author,
    record: RecordId,
    word: str,
    reason: str,
    *,
    via: Via,
    now_us: int,
) -> str:
    """Add a fact (``deprecated`` or ``current``) with its reason; the state afterwards."""
    store = author.store
    reason = check_reason(reason) if word == "deprecated" else clean(reason).strip()
    seen = get(store, Scope(store.agent, every_state=True), record, now_us=now_us)
    if seen.state == "erased":
        raise NotLiveError("the record is erased", record=str(record))
    if seen.detail.get("gated"):
        raise RefusedError(
            "a person decides about this record",
            hint=f"roost review {'reject' if word == 'deprecated' else 'approve'} AGENT {record}",
            record=str(record),
        )
    if word == "current" and not author.may_review:
        raise RefusedError(
            "this device may not review this agent",
            hint="ask its owner: roost grant AGENT DEVICE review",
            record=str(record),
        )
    if seen.state == word:
        return seen.state
    with author.commit(via, now_us) as commit:
        commit.edit(record, [put(f"mark.{random_bytes(MARK_ID_BYTES).hex()}", f"{word} {reason}")])
    return get(store, Scope(store.agent, every_state=True), record, now_us=now_us).state


def change(
    author: Author,
    record: RecordId,
    ops: Sequence[Op],
    *,
    via: Via,
    now_us: int,
) -> None:
    """Write operations on a live record."""
    store = author.store
    _live(store, record, now_us)
    with author.commit(via, now_us) as commit:
        commit.edit(record, ops)


def tag_ops(tags: Iterable[str], held: Iterable[str]) -> list[Op]:
    """Adds of tags that a record does not have yet."""
    return [add_tag(t) for t in check_tags(tuple(tags)) if t not in set(held)]


def untag_ops(tags: Iterable[str], held: Iterable[str]) -> list[Op]:
    """Removals of tags that a record has."""
    return [delete(TAG + t) for t in check_tags(tuple(tags)) if t in set(held)]


def _live(store: AgentStore, record: RecordId, now_us: int) -> Seen:
    seen = get(store, Scope(store.agent, every_state=True), record, now_us=now_us)
    state = seen.state_at(now_us)
    if state in LIVE_STATES:
        return seen
    successor = live_successor(store, record, now_us)
    raise NotLiveError(
        f"the record is {state}",
        record=str(record),
        hint=f"its live successor is {successor}" if successor else None,
        **({"successor": str(successor)} if successor else {}),
    )


def live_successor(store: AgentStore, record: RecordId, now_us: int) -> RecordId | None:
    """The live record at the end of the chain of replacements, if there is one."""
    stack, seen = [bytes(record)], set[bytes]()
    while stack:
        at = stack.pop(0)
        if at in seen:
            continue
        seen.add(at)
        found = store.connection.execute(
            "SELECT live, expires FROM record WHERE record = ?", (at,)
        ).fetchone()
        if found and found[0] and (found[1] is None or found[1] > now_us) and at != record:
            return RecordId(at)
        stack += store.folder.tables.targets(at, "next")
    return None
