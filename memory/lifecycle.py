"""What a person does with memories as a whole: supersede, merge, pin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crdt.entry import Via
from crdt.facts import next_key
from crdt.fingerprint import fingerprints
from crdt.payload import put
from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from memory.authoring import Author
from memory.context import BUDGET, PINNED_MAX, SHARE, tokens_of
from memory.notes import Note, check_note, check_reason, creation_ops
from memory.query import Filters, Seen, get, get_live, weightiest
from memory.rows import LAYERS, LIVE_STATES, PROVENANCES
from memory.scope import Scope
from memory.shapes import COMPARED_KINDS
from memory.store import AgentStore
from memory.writing import (
    NotLiveError,
    Written,
    change,
    live_duplicate,
    live_successor,
    refuse_returning,
)

PINNED_TOKENS_MAX: Final = BUDGET // SHARE
MERGED_MAX: Final = 100
# From the most to the least trusted: what is made of several is trusted as the least of them.
_TRUST: Final = ("user", "agent", "file", "tool", "web", "import")


def supersede(
    author: Author, old: RecordId, new: RecordId, reason: str, *, via: Via, now_us: int
) -> None:
    """Say that one live record replaces another; raises ``UsageError``, ``RefusedError``."""
    reason = check_reason(reason)
    if old == new:
        raise UsageError("a record cannot replace itself", record=str(old))
    with author.commit(via, now_us) as commit:
        replaced = _live(author.store, old, now_us)
        _live(author.store, new, now_us)
        _refuse_gated(replaced)
        commit.edit(old, [put(next_key(new), reason)])


def merge(
    author: Author, records: Sequence[RecordId], text: str, reason: str, *, via: Via, now_us: int
) -> Written:
    """Make one record of several; each of them is superseded by it.

    It has the tags of all, the greatest weight, the oldest layer, and the trust of the least
    trusted: while that waits for a person the others stay as they are. Raises ``UsageError``,
    ``RefusedError``.
    """
    reason = check_reason(reason)
    distinct = list(dict.fromkeys(records))
    if not 2 <= len(distinct) <= MERGED_MAX:
        raise UsageError(f"merge takes 2 to {MERGED_MAX} different records")
    store = author.store
    with author.commit(via, now_us) as commit:
        held = [_live(store, record, now_us) for record in distinct]
        for seen in held:
            _refuse_gated(seen, even_current=False)
        if len({seen.kind for seen in held}) > 1:
            raise UsageError("records of one kind are merged")
        note = check_note(_merged(held, text))
        macs = [p.mac for p in fingerprints(store.keys, note.value)]
        live = None
        if note.kind in COMPARED_KINDS:
            refuse_returning(store, macs)
            live = live_duplicate(store, macs, note.kind, now_us)
        record = live or commit.create(creation_ops(note))
        for seen in held:
            if seen.record != record:
                commit.edit(seen.record, [put(next_key(record), reason)])
    return Written(record, created=live is None)


def _merged(held: Sequence[Seen], text: str) -> Note:
    first = held[0]
    body = first.detail.get("body", {})
    carried = tuple((f"body.{k}", v) for k, v in body.items() if k in _CARRIED)
    provenances = [s.provenance for s in held]
    categories = {s.category for s in held}
    starts = [s.valid_from for s in held if s.valid_from is not None]
    return Note(
        text=text,
        kind=first.kind,
        layer=max((s.layer for s in held), key=LAYERS.index),
        tags=tuple(dict.fromkeys(tag for s in held for tag in s.tags)),
        category=first.category if len(categories) == 1 else "fact",
        provenance=max(provenances, key=_trust),
        source=first.source if len({s.source for s in held}) == 1 else None,
        valid_from=min(starts) if len(starts) == len(held) else None,
        weight=max(s.weight for s in held),
        derived_from=tuple(s.record for s in held),
        extra=carried,
    )


_CARRIED: Final = frozenset({"entity", "name", "file", "from", "to", "channel", "root"})


def _trust(provenance: str) -> int:
    return _TRUST.index(provenance) if provenance in _TRUST else len(_TRUST)


def pin(author: Author, record: RecordId, *, pinned: bool, via: Via, now_us: int) -> None:
    """Keep a record in every context block, or no more.

    At most ``PINNED_MAX`` records and ``PINNED_TOKENS_MAX`` tokens; raises ``UsageError``.
    """
    store = author.store
    if pinned:
        seen = _live(store, record, now_us)
        readers = Scope(store.agent, every_state=False)
        held = weightiest(store, readers, Filters(pinned=True), PINNED_MAX + 1, now_us)
        if record not in {s.record for s in held}:
            _refuse_too_much([*held, seen])
    change(author, record, [put("field.pinned", pinned)], via=via, now_us=now_us)


def _refuse_too_much(wanted: Sequence[Seen]) -> None:
    hint = "unpin another one first: roost unpin AGENT RECORD"
    if len(wanted) > PINNED_MAX:
        raise UsageError(f"at most {PINNED_MAX} records are pinned", hint=hint)
    total = sum(tokens_of(s.text) for s in wanted)
    if total > PINNED_TOKENS_MAX:
        raise UsageError(
            f"what is pinned takes at most {PINNED_TOKENS_MAX} tokens, this makes {total}",
            hint=hint,
        )


def _live(store: AgentStore, record: RecordId, now_us: int) -> Seen:
    """A live record as it is in the transaction that builds on it (M-G6)."""
    everyone = Scope(store.agent, every_state=True)
    found = get_live(store, everyone, record, now_us=now_us)
    if found is not None:
        return found
    state = get(store, everyone, record, now_us=now_us).state_at(now_us)
    successor = live_successor(store, record, now_us)
    raise NotLiveError(
        f"the record is {state}",
        record=str(record),
        hint=f"its live successor is {successor}" if successor else None,
    )


def _refuse_gated(seen: Seen, *, even_current: bool = True) -> None:
    if seen.detail.get("gated") and (even_current or seen.state not in LIVE_STATES):
        raise RefusedError(
            "a person decides about this record",
            hint=f"roost review reject AGENT {seen.record}",
            record=str(seen.record),
        )


assert set(_TRUST) == set(PROVENANCES)
