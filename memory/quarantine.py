"""Entries that are held and do not count: a person adopts, drops or settles them (R7, R24).

1. Adopting writes new entries of this device: a creation becomes a record of its own that names
   the old one in ``body.adopts``; an edit is made again where its record is now.
2. Dropping is a statement: what it names is listed no more. It undoes nothing: an entry that
   counts, or comes to count because a cut is replaced, is not touched by it.
3. Settling names the end of the branch of a forked log that counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from crdt.entry import Header, PayloadKind, Via, decode_header, is_derived
from crdt.facts import MARK, NEXT, TAG, Reason
from crdt.fingerprint import fingerprints
from crdt.payload import Op, Verb, decode_ops, put
from keys.errors import AmbiguousError, BadInput, NotFoundError, UsageError
from keys.ids import EntryHash, RecordId, prefix_range
from keys.signing import random_bytes
from memory.authoring import Author
from memory.notes import add_tag
from memory.shapes import COMPARED_KINDS, compared_value
from memory.store import AgentStore
from memory.tables import select_in
from memory.writing import (
    MARK_ID_BYTES,
    NotLiveError,
    TombstonedError,
    live_duplicate,
    refuse_returning,
)

SET_ASIDE_MAX: Final = 10_000
ADOPTED: Final = frozenset({Reason.FROZEN, Reason.NOT_ACCEPTED, Reason.PAST_CUT, Reason.WAITING})


@dataclass(frozen=True, slots=True)
class Aside:
    """One entry that does not count, and why."""

    header: Header
    payload: bytes | None
    reason: str


def dropped(store: AgentStore) -> set[bytes]:
    """The entries that valid statements drop."""
    return {bytes(e) for s in store.authority.valid("drop") for e in s.body["entries"]}


def set_aside(store: AgentStore) -> list[dict[str, Any]]:
    """Entries that are held and do not count, each with its reason (R5).

    Erased and dropped ones are not among them.
    """
    gone, out = dropped(store), []
    for data, reason in store.connection.execute(
        "SELECT header, reason FROM entry WHERE reason IS NOT NULL AND reason <> 'erased'"
        " ORDER BY entry.id LIMIT ?",
        (SET_ASIDE_MAX,),
    ):
        header = decode_header(data)
        if bytes(header.hash) not in gone:
            out.append(
                {
                    "entry": str(EntryHash(header.hash)),
                    "record": str(header.record),
                    "device": str(header.device),
                    "seq": header.seq,
                    "reason": reason,
                }
            )
    return out


def count_set_aside(store: AgentStore) -> int:
    """How many entries are held and do not count, erased and dropped ones aside."""
    found = store.connection.execute(
        "SELECT count(*) FROM entry WHERE reason IS NOT NULL AND reason <> 'erased'"
    ).fetchone()[0]
    named = dropped(store)
    if not found or not named:
        return int(found)
    listed = select_in(
        store.connection,
        "SELECT 1 FROM entry WHERE reason IS NOT NULL AND reason <> 'erased' AND hash IN",
        named,
    )
    return int(found) - sum(1 for _ in listed)


def aside_in(store: AgentStore, text: str) -> Aside:
    """The entry set aside that an id or an unambiguous prefix names.

    Raises ``UsageError``, ``NotFoundError`` or ``AmbiguousError``.
    """
    if len(text.strip()) == EntryHash.text_length():
        low = high = bytes(EntryHash.parse(text))
    else:
        low, high = prefix_range(EntryHash, text)
    rows = store.connection.execute(
        "SELECT header, payload, reason FROM entry WHERE reason IS NOT NULL"
        " AND reason <> 'erased' AND hash BETWEEN ? AND ? ORDER BY hash LIMIT 9",
        (low, high),
    ).fetchall()
    if not rows:
        raise NotFoundError(
            f"no entry that was set aside starts with {text[:32]!r}", hint="roost quarantine list"
        )
    if len(rows) > 1:
        found = [str(EntryHash(decode_header(r[0]).hash)) for r in rows]
        raise AmbiguousError("more than one entry starts so", candidates=found)
    data, payload, reason = rows[0]
    return Aside(decode_header(data), payload, reason)


# -- adopting ------------------------------------------------------------------------------------


def adopt(author: Author, aside: Aside, via: Via, now_us: int) -> tuple[RecordId, bool]:
    """Write an entry that does not count anew (R24): the record, and whether one was created.

    Its provenance stays, so that what waits for a person goes on waiting. Raises ``UsageError``
    where there is nothing to adopt, ``TombstonedError`` or ``NotLiveError`` as any write does.
    """
    store, header = author.store, aside.header
    if aside.reason not in ADOPTED or aside.payload is None:
        raise UsageError(f"an entry that is {aside.reason} cannot be adopted")
    if header.payload_kind != PayloadKind.OPS:
        raise UsageError("a forgetting or an opening is not adopted; forget it yourself")
    if store.folder.tables.is_erased(header.record):
        raise TombstonedError("its record was forgotten", record=str(header.record))
    try:
        ops = decode_ops(aside.payload).ops
    except BadInput as exc:
        raise UsageError("an entry that cannot be read is not adopted") from exc
    if header.deps:
        return _edit(author, header, ops, via, now_us), False
    if is_derived(header.record):
        raise UsageError("a record of a derived id is made again by what made it")
    return _create(author, header, ops, via, now_us)


def _create(
    author: Author, header: Header, ops: Iterable[Op], via: Via, now_us: int
) -> tuple[RecordId, bool]:
    store = author.store
    values = {op.key: op.value for op in ops if op.verb == Verb.PUT}
    kind, text = values.get("kind"), values.get("body.text")
    if not isinstance(kind, str):
        raise UsageError("an entry that cannot be read is not adopted")
    made = _adopted(store, header.record)
    if made is not None:
        return made, False
    if kind in COMPARED_KINDS and isinstance(text, str):
        body = {k[5:]: v for k, v in values.items() if k.startswith("body.")}
        value = compared_value(kind, text, body)
        macs = [p.mac for p in fingerprints(store.keys, value)] if value else []
        refuse_returning(store, macs)
        live = live_duplicate(store, macs, kind, now_us)
        if live is not None:
            return live, False
    kept = [op for op in ops if not op.key.startswith((MARK, NEXT, TAG, "body.adopts"))]
    tags = [add_tag(key[len(TAG) :]) for key in values if key.startswith(TAG)]
    with author.commit(via, now_us) as commit:
        record = commit.create([*kept, *tags, put("body.adopts", bytes(header.record))])
    return record, True


def _adopted(store: AgentStore, record: RecordId) -> RecordId | None:
    """The record, not erased, that was adopted from another."""
    found = store.connection.execute(
        "SELECT record FROM named JOIN record USING (n) WHERE what = 'adopts' AND value = ?"
        " AND own <> 'erased' ORDER BY record",
        (record.hex(),),
    ).fetchone()
    return RecordId(found[0]) if found else None


def _edit(author: Author, header: Header, ops: Iterable[Op], via: Via, now_us: int) -> RecordId:
    store, record = author.store, header.record
    if store.folder.tables.old(record).n is None:
        made = _adopted(store, record)
        if made is None:
            raise NotLiveError(
                "its record is not here",
                hint="adopt the entry that creates it first",
                record=str(record),
            )
        record = made
    with author.commit(via, now_us) as commit:
        commit.edit(record, [_again(op) for op in ops])
    return record


def _again(op: Op) -> Op:
    """An operation as a new one: facts and adds of tags are of their own (R11, R12)."""
    if op.verb == Verb.PUT and op.key.startswith(MARK):
        return put(f"{MARK}{random_bytes(MARK_ID_BYTES).hex()}", op.value)
    if op.verb == Verb.PUT and op.key.startswith(TAG):
        return add_tag(op.key[len(TAG) :])
    return op


# -- settling ------------------------------------------------------------------------------------


def branch_end(store: AgentStore, aside: Aside) -> dict[str, Any]:
    """The body of a ``settle`` by which the branch of an entry counts, to its end (R7).

    Raises ``UsageError`` where the log is not forked there, ``AmbiguousError`` where it forks
    again.
    """
    log = aside.header.log
    row = store.logs.row(log)
    assert row is not None, "an entry is of a log that is held"
    branch = store.logs.branch_entries(row) if row.fork_seq is not None else {}
    if aside.header.hash not in branch:
        raise UsageError("its log is not forked before it", hint="roost quarantine adopt or drop")
    ends = []
    for tip in store.logs.tips(row):
        at = tip.hash
        while at in branch and at != aside.header.hash:
            at = branch[at][1]
        if at == aside.header.hash:
            ends.append(tip)
    if len(ends) > 1:
        raise AmbiguousError(
            "the log forks again after it", candidates=[str(EntryHash(t.hash)) for t in ends]
        )
    end = store.logs.commit_end(row.id, ends[0])
    return {
        "device": bytes(log.device),
        "incarnation": bytes(log.incarnation),
        "seq": end.seq,
        "hash": bytes(end.hash),
    }
