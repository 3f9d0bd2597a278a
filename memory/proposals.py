"""What waits for a person: proposed records, and edits of approved ones (R21).

Nothing here decides anything; the fold does, from the approvals.
"""

from __future__ import annotations

from dataclasses import dataclass

from crdt.entry import decode_header
from crdt.facts import FIELD, TAG, Fact, Stored
from crdt.fold import fold_record
from crdt.payload import Scalar
from keys.ids import RecordId
from memory.query import Filters, Seen, get, list_records
from memory.scope import Scope
from memory.store import AgentStore
from memory.tables import select_in


@dataclass(frozen=True, slots=True)
class Change:
    """One key of an approved record: what it shows, and what it would show once approved again.

    None where it has no such key. The key is ``field.*``, ``tag.NAME``, ``mark`` or ``next``.
    """

    key: str
    shown: Scalar
    proposed: Scalar


def waiting(store: AgentStore, scope: Scope, *, limit: int, now_us: int) -> list[Seen]:
    """Proposed records, newest first, then approved ones with edits that nobody approved yet."""
    page = list_records(
        store, scope, Filters(states=("proposed",)), limit=limit, cursor=None, now_us=now_us
    )
    edited = [get(store, scope, RecordId(r), now_us=now_us) for r in _approved(store)]
    return [*page.records, *(s for s in edited if is_edited(s))][:limit]


def _approved(store: AgentStore) -> list[bytes]:
    """The records here that somebody approved and that are not erased."""
    acts = store.authority.acts
    named = sorted(r for r, about in acts.items() if any(s.kind == "approve" for s in about))
    rows = select_in(
        store.connection, "SELECT record FROM record WHERE own <> 'erased' AND record IN", named
    )
    return sorted(record for (record,) in rows)


def is_edited(seen: Seen) -> bool:
    """Whether an approved record has entries beyond what was approved."""
    detail = seen.detail
    return not detail.get("proposal", True) and detail.get("heads") != detail.get("shown_heads")


def changes(store: AgentStore, seen: Seen) -> list[Change]:
    """What approving an edited record again would change, by key; facts come as they were put."""
    if not is_edited(seen):
        return []
    stored = [
        Stored(decode_header(data), payload, time_ms)
        for _, data, payload, time_ms, _ in store.folder.tables.entries(seen.record)
    ]
    whole = fold_record(store.agent, seen.record, stored, store.folder.judge)
    past = _past(stored, seen.detail["shown_heads"])
    chosen = [s for s in stored if s.header.hash in past]
    shown = fold_record(store.agent, seen.record, chosen, store.folder.judge)
    before, after = _values(shown.values), _values(whole.values)
    out = [
        Change(key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
    return out + [_fact(f) for f in whole.facts if f not in shown.facts]


def _past(stored: list[Stored], heads: list[bytes]) -> set[bytes]:
    deps = {s.header.hash: s.header.deps for s in stored}
    found: set[bytes] = set()
    stack = [h for h in deps if h in heads]
    while stack:
        at = stack.pop()
        if at in deps and at not in found:
            found.add(at)
            stack += deps[at]
    return found


def _values(values: dict[str, Scalar]) -> dict[str, Scalar]:
    """Fields as they are; of a tag only that it is there."""
    return {k: True if k.startswith(TAG) else v for k, v in values.items() if _is_shown(k)}


def _is_shown(key: str) -> bool:
    return key.startswith((FIELD, TAG))


def _fact(fact: Fact) -> Change:
    if fact.successor is not None:
        return Change("next", None, f"{fact.successor} {fact.value}")
    return Change("mark", None, fact.value)


def replaced_by(store: AgentStore, record: RecordId) -> list[RecordId]:
    """The records that say that this one replaces them; they do so once it counts (R11)."""
    return sorted(RecordId(r) for r in store.folder.tables.linked(record, "next"))


def other_bytes(store: AgentStore) -> list[RecordId]:
    """Records here of which an approval that counts names a head that is no entry of them."""
    named = {
        (bytes(record), bytes(head))
        for s in store.authority.valid("approve")
        for record, heads in s.body["items"]
        for head in heads
    }
    here = set(
        select_in(
            store.connection,
            "SELECT record, hash FROM entry WHERE hash IN",
            sorted({head for _, head in named}),
        )
    )
    odd = sorted({record for record, _ in named - here})
    found = select_in(
        store.connection, "SELECT record FROM record WHERE own <> 'erased' AND record IN", odd
    )
    return sorted(RecordId(record) for (record,) in found)
