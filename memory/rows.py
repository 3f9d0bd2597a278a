"""From the fold of one record to its row: own state, versions, fingerprints, links.

The own state is what the record's own facts and the statements about it give (R11, R21):
``deprecated > superseded > proposed > current > new``. What other records do to it (a returning
value, an erased source, a duplicate) is decided in ``standing.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import keys.codec as codec
from crdt.facts import FIELD, TAG, Fact, RecordFold, Step, Stored
from crdt.fold import fold_record
from crdt.payload import Scalar
from keys.authority import Authority
from keys.ids import RecordId
from keys.policy import Policy
from keys.statements import Statement
from memory.concurrent import disputed
from memory.shapes import Body, compared_value

LAYERS: Final = ("day", "week", "month", "year", "decade", "century", "millennium")
CATEGORIES: Final = ("fact", "preference", "rule", "context", "episode")
PROVENANCES: Final = ("user", "agent", "tool", "file", "web", "import")
LIVE_STATES: Final = frozenset({"new", "current"})
TIME_US_MAX: Final = 2**62 - 1  # and as far before 1970: a record shows no time beyond


class VersionRow(NamedTuple):
    """One version: who made it, when, and the values after it (``content`` empty once erased)."""

    entry: bytes
    time_ms: int
    state: str
    device: bytes
    via: int
    reason: str
    content: bytes


@dataclass(slots=True)
class Row:
    """A record as the read model holds it."""

    record: RecordId
    kind: str = ""
    own: str = "new"
    text: str = ""
    category: str = ""
    provenance: str = ""
    source: str | None = None
    speaker: str | None = None
    session: str | None = None
    layer: str = ""
    weight: float = 0.0
    title: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    expires: int | None = None
    seq: int = 0  # of its creation
    created_ms: int = 0
    changed_ms: int = 0
    device: bytes = bytes(32)
    via: int = 0
    tags: list[str] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    successors: list[bytes] = field(default_factory=list)  # in force, present or not
    lifted: list[bytes] = field(default_factory=list)  # successors that a lift ended: in versions
    sources: list[bytes] = field(default_factory=list)
    origin: bytes | None = None  # the id it had where it was imported from
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> Body:
        """``body.*`` as put by its creation, without the prefix and without the columns."""
        body: Body = self.detail.get("body", {})
        return body

    @property
    def fields(self) -> Body:
        """``field.*`` as they read now, without the prefix and without the columns."""
        fields: Body = self.detail.get("fields", {})
        return fields

    @property
    def value(self) -> str:
        """What its fingerprint is made of; empty where it is not compared (R27)."""
        return compared_value(self.kind, self.text, self.body)


def build_row(
    fold: RecordFold,
    entries: Sequence[Stored],
    agent: bytes,
    authority: Authority,
    exists: Callable[[bytes], bool],
) -> Row:
    """The row of a materialised record. ``exists`` tells whether a successor counts (R11)."""
    acts = authority.acts.get(fold.record, [])
    policy = authority.policy
    shown = what_shows(fold, entries, agent, acts, policy)
    row = Row(fold.record, kind=fold.kind)
    _fill(row, shown.fold)
    row.sources = sorted(fold.sources)
    judge = _States(shown.gated and is_gated(fold, policy), shown.proposal, exists)
    row.versions = _versions(shown.fold, acts, judge, authority.times)
    facts = [] if shown.proposal else _in_force(shown.fold.facts, acts)
    row.own = judge.state(facts, acts)
    row.successors = _successors(facts)
    if shown.fold.facts:
        row.lifted = sorted(set(_successors(shown.fold.facts)).difference(row.successors))
    row.created_ms = row.versions[0].time_ms
    row.changed_ms = max([v.time_ms for v in row.versions])
    row.detail = _detail(fold, shown, facts)
    if len(shown.fold.heads) > 1 or len(shown.fold.creations) > 1:
        keys = disputed(agent, shown.fold, entries)
        row.detail |= {"disputed": keys} if keys else {}
    return row


@dataclass(frozen=True, slots=True)
class Shown:
    """What a record shows: all of it, or its document at the approved heads (R21).

    ``proposal``: it is gated and nothing approved of it is here; its facts are proposals too.
    """

    fold: RecordFold
    gated: bool
    proposal: bool


def what_shows(
    fold: RecordFold,
    entries: Sequence[Stored],
    agent: bytes,
    acts: Sequence[Statement],
    policy: Policy,
) -> Shown:
    """What a materialised record shows under the statements about it (R21)."""
    approvals = [s for s in acts if s.kind == "approve"]
    if not approvals:
        gated = is_gated(fold, policy)
        return Shown(fold, gated, gated)
    approved = _approved_entries(approvals, entries)
    chosen = [e for e in entries if e.header.hash in approved]
    verdicts = fold.verdicts
    shown = fold_record(agent, fold.record, chosen, lambda h: verdicts[h.hash])
    return Shown(shown if shown.materialised else fold, True, not shown.materialised)


def is_gated(fold: RecordFold, policy: Policy) -> bool:
    """R21: whether kind, category, provenance or an import makes a record wait for a person.

    The policy is the one in force now, whenever the record was written; its versions follow it.
    """
    body = fold.body
    return policy.gates(
        fold.kind,
        body.get("body.category"),
        body.get("body.provenance"),
        imported=isinstance(body.get("body.imported"), bytes),
    )


def _approved_entries(
    approvals: Iterable[Statement], entries: Sequence[Stored]
) -> frozenset[bytes]:
    """The entries in the past of the heads that valid approvals name (R21)."""
    by_hash = {e.header.hash: e.header for e in entries}
    record = entries[0].header.record if entries else b""
    stack = [
        head
        for s in approvals
        for named, heads in s.body["items"]
        if named == record
        for head in heads
    ]
    found: set[bytes] = set()
    while stack:
        header = by_hash.get(stack.pop())
        if header is not None and header.hash not in found:
            found.add(header.hash)
            stack.extend(header.deps)
    return frozenset(found)


def _successors(facts: Collection[Fact]) -> list[bytes]:
    if not facts:
        return []
    return sorted({bytes(f.successor) for f in facts if f.successor is not None})


def _in_force(facts: Iterable[Fact], acts: Iterable[Statement]) -> list[Fact]:
    """The facts that no lift about this record names (R11)."""
    lifted = {(e, k) for s in acts if s.kind == "lift" for e, k in s.body["facts"]}
    return [f for f in facts if (f.entry, f.key) not in lifted] if lifted else list(facts)


class _States:
    """Own states from facts and statements (R11, R21)."""

    def __init__(self, gated: bool, proposal: bool, exists: Callable[[bytes], bool]) -> None:
        self.gated, self.proposal, self.exists = gated, proposal, exists

    def state(self, facts: Collection[Fact], acts: Iterable[Statement]) -> str:
        """The strongest of the facts in force."""
        decided = [s.kind for s in acts if s.kind in ("approve", "reject")]
        if not facts and not decided:
            return "proposed" if self.gated else "new"
        waits = self.proposal if "approve" in decided else self.gated
        counted = [] if waits else list(facts)
        words = {f.word for f in counted if f.counts and f.successor is None}
        if "deprecated" in words or "reject" in decided:
            return "deprecated"
        if any(f.successor is not None and self.exists(f.successor) for f in counted):
            return "superseded"
        if waits:
            return "proposed"
        return "current" if "current" in words or "approve" in decided else "new"


def _versions(
    fold: RecordFold, acts: Sequence[Statement], judge: _States, times: Mapping[bytes, int]
) -> list[VersionRow]:
    """The fold over the prefixes: entries and statements by record time (R14).

    A statement earlier than the record makes no version of its own.
    """
    events: list[tuple[int, int, bytes, Step | Statement]] = [
        (step.time_ms, i, step.header.hash, step) for i, step in enumerate(fold.steps)
    ]
    last = len(events)
    events += [(times[s.id], last, s.id, s) for s in acts]
    if len(events) > 1:
        events.sort(key=lambda e: e[:3])
    versions: list[VersionRow] = []
    facts: list[Fact] = []
    seen: list[Statement] = []
    values: dict[str, Scalar] = {}
    device: bytes
    for time_ms, _, event_id, event in events:
        if isinstance(event, Step):
            facts += event.facts
            values = event.values
            device, via = event.header.device, event.header.via
            reason = event.facts[0].reason if event.facts else ""
        else:
            seen.append(event)
            if not versions:
                continue
            device, via, reason = event.signer, 1, event.kind
        state = judge.state(_in_force(facts, seen), seen)
        versions.append(VersionRow(event_id, time_ms, state, device, via, reason, content(values)))
    return versions


def content(values: dict[str, Scalar]) -> bytes:
    """The values of a version: fields, and the names of the tags."""
    fields, tags = {}, []
    for key, value in values.items():
        if key.startswith(FIELD):
            fields[key[len(FIELD) :]] = value
        elif key.startswith(TAG):
            tags.append(key[len(TAG) :])
    return codec.pack({"fields": fields, "tags": tags})


def _fill(row: Row, fold: RecordFold) -> None:
    body, values = fold.body, fold.values
    row.title = _text(values.get("field.title"))
    row.text = _text(body.get("body.text")) or ""
    if row.kind == "entity" and row.title:
        row.text = row.title  # what it is called now is what it is found by
    row.category = _word(body.get("body.category"), CATEGORIES, "fact")
    row.provenance = _word(body.get("body.provenance"), PROVENANCES, "import")
    row.source = _text(body.get("body.source"))
    row.speaker = _text(body.get("body.speaker"))
    row.session = _text(body.get("body.session"))
    row.valid_from = _int(body.get("body.valid_from"))
    origin = body.get("body.origin")
    row.origin = origin if isinstance(origin, bytes) else None
    row.layer = _word(values.get("field.layer"), LAYERS, "day")
    weight = values.get("field.weight")
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    row.weight = float(weight) if is_number and weight is not None else 1.0
    row.valid_to = _int(values.get("field.valid_to"))
    row.expires = _int(values.get("field.expires_at"))
    row.tags = sorted([k[len(TAG) :] for k in values if k.startswith(TAG)])
    row.device, row.seq = fold.creations[0].device, fold.creations[0].seq
    row.via = fold.creations[0].via


def _detail(fold: RecordFold, shows: Shown, facts: list[Fact]) -> dict[str, Any]:
    """All the rest that the digest covers and that `show` prints."""
    shown = shows.fold
    return {
        "creations": [h.hash for h in fold.creations],
        "heads": fold.heads,
        "shown_heads": shown.heads,
        "facts": [f[:3] for f in facts],
        "gated": shows.gated,
        "proposal": shows.proposal,
        "sources": sorted(fold.sources),
        "body": {k[5:]: v for k, v in shown.body.items() if k not in _COLUMNS},
        "fields": {
            k[6:]: v for k, v in shown.values.items() if k.startswith(FIELD) and k not in _COLUMNS
        },
    }


_COLUMNS: Final = frozenset(
    {
        "body.text",
        "body.category",
        "body.provenance",
        "body.source",
        "body.speaker",
        "body.session",
        "body.valid_from",
        "body.derived_from",
        "field.layer",
        "field.weight",
        "field.title",
        "field.valid_to",
        "field.expires_at",
    }
)


def _text(value: Scalar) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Scalar) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= TIME_US_MAX
    return value if fits and isinstance(value, int) else None


def _word(value: Scalar, allowed: tuple[str, ...], default: str) -> str:
    return value if isinstance(value, str) and value in allowed else default
