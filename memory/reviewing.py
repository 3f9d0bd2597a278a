"""Review of a layer by rules: what has its age moves on, what weighs nothing goes back.

1. A verdict that changes nothing writes nothing (R41). Nothing is ever erased here.
2. To retire is a person's: the verdict is a record of its own that names its target and waits. The
   target does not change until it is approved.
3. Age counts from when this node received a memory, so that a wrong clock elsewhere ages nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from crdt.entry import Via, derived_id
from crdt.payload import Op, Scalar, put
from keys.ids import RecordId
from keys.signing import random_bytes
from memory.authoring import Author
from memory.layers import layers
from memory.query import Seen, get_live
from memory.rows import LAYERS
from memory.scope import Scope
from memory.store import AgentStore

BATCH: Final = 500
LIGHT: Final = 0.2  # a memory of less weight goes back a layer when it is due
HEAVY: Final = 0.5  # a memory of at least this weight moves on
SECOND_US: Final = 1_000_000
MARK_ID_BYTES: Final = 8
NEVER_REVIEWED: Final = frozenset({"millennium"})


@dataclass(slots=True)
class Outcome:
    """What a review did, by verdict."""

    looked_at: int = 0
    promoted: list[RecordId] = field(default_factory=list)
    demoted: list[RecordId] = field(default_factory=list)
    proposed: list[RecordId] = field(default_factory=list)  # verdicts that wait for a person


def verdict_id(store: AgentStore, target: RecordId, word: str) -> RecordId:
    """The id of the verdict about a record: the same on every device."""
    return derived_id(store.agent, "verdict", word.encode() + target)


def review(author: Author, layer: str, run: bytes, now_us: int) -> Outcome:
    """Review what is due in one layer, at most ``BATCH`` memories; the oldest ids first."""
    store = author.store
    out = Outcome()
    if layer in NEVER_REVIEWED:
        return out
    readers = Scope(store.agent, every_state=False)
    held = {found.name: found for found in layers(store, readers, now_us)}
    place = LAYERS.index(layer)
    older = LAYERS[place + 1] if place + 1 < len(LAYERS) else None
    due_us = now_us - held[layer].min_age_s * SECOND_US
    due = _received_before(store, layer, due_us)
    if not due:
        return out
    with author.commit(Via.CONSOLIDATOR, now_us) as commit:
        for record, received_us in due:
            seen = get_live(store, readers, RecordId(record), now_us=now_us)
            if seen is None or _is_fixed(seen):
                continue
            out.looked_at += 1
            age_s = (now_us - received_us) // SECOND_US
            if seen.weight >= HEAVY and older and age_s >= held[older].min_age_s:
                ops = [put("field.layer", older)]
                if author.may_review and seen.state == "new":
                    mark = f"mark.{random_bytes(MARK_ID_BYTES).hex()}"
                    ops.append(put(mark, "current it has its age"))
                commit.edit(seen.record, ops)
                out.promoted.append(seen.record)
            elif seen.weight < LIGHT and place > 0:
                commit.edit(seen.record, [put("field.layer", LAYERS[place - 1])])
                out.demoted.append(seen.record)
            elif seen.weight < LIGHT and seen.state == "new":
                verdict = verdict_id(store, seen.record, "retire")
                if store.folder.tables.old(verdict).n is None:
                    commit.create_derived(verdict, _verdict(seen, "retire", run))
                    out.proposed.append(verdict)
    return out


def carry_out(author: Author, verdict: Seen, now_us: int) -> None:
    """Do what a verdict says, after a person approved it; what is not live any more stays so."""
    target = verdict.detail["body"].get("target")
    if not isinstance(target, bytes) or verdict.detail["body"].get("verdict") != "retire":
        return
    store = author.store
    readers = Scope(store.agent, every_state=False)
    seen = get_live(store, readers, RecordId(target), now_us=now_us)
    if seen is not None and not seen.detail.get("gated"):
        mark = f"mark.{random_bytes(MARK_ID_BYTES).hex()}"
        with author.commit(Via.PERSON, now_us) as commit:
            commit.edit(seen.record, [put(mark, "deprecated a person approved it")])


def _verdict(seen: Seen, word: str, run: bytes) -> list[Op]:
    keys: dict[str, Scalar] = {
        "kind": "verdict",
        "body.key": word.encode() + seen.record,
        "body.run": run,
        "body.target": bytes(seen.record),
        "body.text": f"{word}: it weighs {seen.weight:g} and is due for review",
        "body.verdict": word,
    }
    return [put(key, value) for key, value in sorted(keys.items())]


def _is_fixed(seen: Seen) -> bool:
    """What no review touches: rules, what a person decides about, and what is pinned."""
    fields = seen.detail.get("fields", {})
    return (
        seen.category == "rule" or seen.detail.get("gated") is True or fields.get("pinned") is True
    )


def heard_since(store: AgentStore, since_us: int) -> set[bytes]:
    """The devices of whose logs something came in since then, by this node's clock."""
    rows = store.connection.execute(
        "SELECT log.device FROM log JOIN entry ON entry.log = log.id AND entry.seq = log.tip_seq"
        " WHERE entry.received_us >= ?",
        (since_us,),
    )
    return {bytes(r[0]) for r in rows}


def _received_before(store: AgentStore, layer: str, due_us: int) -> list[tuple[bytes, int]]:
    """(record, when it was received here) of live observations of a layer, as old as that."""
    return store.connection.execute(
        "SELECT r.record, (SELECT min(received_us) FROM entry WHERE entry.record = r.record) AS at"
        " FROM record AS r WHERE r.kind = 'observation' AND r.layer = ? AND r.live = 1"
        " AND at <= ? ORDER BY r.record LIMIT ?",
        (layer, due_us, BATCH),
    ).fetchall()
