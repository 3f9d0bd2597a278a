"""States written out: what each record reads, from the entries that materialise (R10-R31).

What RULES.md leaves open is decided as follows.

1. What withholds for an erasure (a source, a fingerprint) goes before the record's own state; a
   value that another record refuses reads ``returning`` only where it would be live.
2. A gated record of which nothing approved is here is ``proposed``: its facts are proposals and it
   does not count as a successor, not even when a person has rejected it.
3. A successor that is frozen still supersedes: freezing makes nothing readable (R7).
4. The text of an entity is what it is called now.
5. A part whose owner is here and not live, as the owner's own facts say, is withheld; values are
   compared within their owners and names.
6. What is derived, at any distance, from a record that is proposed is proposed, unless it was
   approved itself.
7. An erased successor has the fingerprints that its tombstones list.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from crdt.fingerprint import fingerprints
from crdt.payload import Scalar
from keys.limits import RECORD_BYTES
from keys.statements import Statement
from tests.reference.fold import OWNER_KEYS, Fact, Fold, owners
from tests.reference.gates import is_gated
from tests.reference.places import Held

COMPARED = ("observation", "perspective", "property", "relation", "summary")
LIVE = ("new", "current")


@dataclass
class Believed:
    """What a record reads."""

    state: str = "erased"
    own: str = "erased"
    kind: str = ""
    values: dict[str, Scalar] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    owners: set[bytes] = field(default_factory=set)
    duplicate: bytes | None = None
    proposal: bool = False
    prints: frozenset[bytes] = frozenset()
    facts: list[Fact] = field(default_factory=list)
    acts: list[Statement] = field(default_factory=list)
    created_ms: int = 0
    changed_ms: int = 0

    @property
    def text(self) -> str:
        """The text that it shows."""
        text = self.values.get("body.text")
        title = self.values.get("field.title")
        if self.kind == "entity" and isinstance(title, str) and title:
            return title
        return text if isinstance(text, str) else ""


def believe(fold: Fold) -> dict[bytes, Believed]:
    """Every record that exists or is erased."""
    out = {r: erased_record(fold, r) for r in fold.erased}
    for record in fold.records:
        if record not in fold.erased and fold.canonical(fold.materialised(record)):
            out[record] = shown_record(fold, record)
    for shown in out.values():
        if shown.own != "erased":
            shown.own = own_state(fold, shown, out)
    refused = {record: refused_by(fold, record, shown, out) for record, shown in out.items()}
    for record, shown in out.items():
        shown.state = standing(fold, record, shown, out, refused)
    for record, shown in out.items():
        same = [
            r
            for r, other in out.items()
            if other.state in LIVE and other.kind == shown.kind and other.prints & shown.prints
        ]
        if shown.state in LIVE and same and min(same) != record:
            shown.duplicate = min(same)
    return out


def erased_record(fold: Fold, record: bytes) -> Believed:
    """What remains of an erased record: times from headers, fingerprints of its tombstones."""
    stones = [(e, s) for e, s in fold.tombstones if s.record == record and fold.erases(e)]
    prints = frozenset(p.mac for _, stone in stones for p in stone.prints)
    placed = [
        e
        for e in fold.records.get(record, ())
        if e.header.payload_kind == 1 and fold.place(e).reason is None
    ]
    made = [*placed, *(e for e, _ in stones)]
    times = [fold.times.get(e.hash, e.header.wall_ms) for e in made]  # one ahead has its stamp
    return Believed(prints=prints, created_ms=min(times), changed_ms=max(times))


def shown_record(fold: Fold, record: bytes) -> Believed:
    """What a record shows (R10, R21)."""
    entries = fold.records[record]
    acts = [s for s in fold.rights.of("approve", "reject", "lift") if _about(s, record)]
    acts = [s for s in acts if fold.rights.valid(s)]
    approvals = [s for s in acts if s.kind == "approve"]
    first = fold.canonical(fold.materialised(record))
    gated = is_gated(fold.rights, first) or bool(approvals)
    shown, proposal = entries, False
    if gated:
        heads = [
            h for s in approvals for named, hs in s.body["items"] if named == record for h in hs
        ]
        past = fold.causes(map(bytes, heads))
        approved = [e for e in entries if e.hash in past]
        proposal = not fold.canonical(e for e in approved if fold.reasons[e.hash] is None)
        shown = entries if proposal else approved
    there = [e for e in shown if fold.reasons[e.hash] is None]
    merged, body = fold.merged(there), fold.canonical(there)
    values = {k: v for k, v in merged.items() if k.startswith("field.")}
    values |= {k: v for k, v in body.items() if k.startswith("body.")}
    value = _compared(first["kind"], body)
    facts = fold.facts(shown)
    frozen = {f.entry for f in fold.put_facts(shown)} - {e.hash for e in there}
    made = [*there, *(e for e in shown if e.hash in frozen)]
    born = min(fold.times[e.hash] for e in there)
    times = [*(fold.times[e.hash] for e in made), *(fold.rights.times[s.id] for s in acts)]
    return Believed(
        own="",
        kind=str(first["kind"]),
        values=values,
        tags=sorted(k[4:] for k in merged if k.startswith("tag.")),
        proposal=proposal,
        prints=frozenset(p.mac for p in fingerprints(fold.keys, value)) if value else frozenset(),
        owners=owners({**body, "kind": first["kind"]}),
        facts=[] if proposal else facts,
        acts=acts,
        created_ms=born,
        changed_ms=max([born, *times]),
    )


def _compared(kind: Scalar, body: dict[str, Scalar]) -> str:
    """R27: the value of a record, within its place."""
    text, name = body.get("body.text"), body.get("body.name")
    if kind not in COMPARED or not isinstance(text, str) or not text:
        return ""
    if kind in ("observation", "summary"):
        return text
    place = [body.get(key) for key in OWNER_KEYS] if kind in ("property", "relation") else []
    words = [v.hex() for v in place if isinstance(v, bytes) and len(v) == RECORD_BYTES]
    if isinstance(name, str):
        words.append(" ".join(unicodedata.normalize("NFKC", name).casefold().split()))
    return " ".join([*words, text])


def _about(s: Statement, record: bytes) -> bool:
    if s.kind == "lift":
        return bool(s.body["record"] == record)
    return any(named == record for named, _ in s.body["items"])


def own_state(fold: Fold, shown: Believed, out: dict[bytes, Believed]) -> str:
    """The strongest of the facts in force."""
    kinds = {s.kind for s in shown.acts}
    if "reject" in kinds or any(f.word == "deprecated" for f in shown.facts):
        return "deprecated"
    if successors(fold, shown, out):
        return "superseded"
    if shown.proposal:
        return "proposed"
    kept = any(f.counts and f.word == "current" for f in shown.facts)
    return "current" if kept or "approve" in kinds else "new"


def successors(fold: Fold, shown: Believed, out: dict[bytes, Believed]) -> set[bytes]:
    """R11: what ``next.*`` names and counts."""
    named = {f.successor for f in shown.facts if f.successor is not None}
    return {
        r
        for r in named
        if (r in out and not out[r].proposal)
        or (r not in out and any(_frozen(fold, e) for e in fold.records.get(r, ())))
    }


def _frozen(fold: Fold, e: Held) -> bool:
    place = fold.place(e)
    return place.reason == "frozen" and place.inside


def refused_by(
    fold: Fold, record: bytes, shown: Believed, out: dict[bytes, Believed]
) -> frozenset[bytes]:
    """R27: the fingerprints that a record refuses."""
    if shown.own == "deprecated":
        return shown.prints
    others = [out[r].prints if r in out else frozenset() for r in successors(fold, shown, out)]
    foreign = any(not prints & shown.prints for prints in others)
    return shown.prints if shown.own == "superseded" and foreign else frozenset()


def standing(
    fold: Fold,
    record: bytes,
    shown: Believed,
    out: dict[bytes, Believed],
    refused: dict[bytes, frozenset[bytes]],
) -> str:
    """What other records make of a record (R27, R30, R31)."""
    if shown.own == "erased":
        return "erased"
    if record in fold.named_ahead or source_erased(fold, record):
        return "withheld"
    lifts = [s for s in fold.rights.of("lift") if fold.rights.valid(s)]
    lifted = {bytes(t) for s in lifts for t in s.body["tombstones"]}
    listed = {
        p.mac
        for e, stone in fold.tombstones
        if fold.erases(e) and e.hash not in lifted
        for p in stone.prints
    }
    if shown.prints & listed:
        return "returning"
    if shown.own not in LIVE:
        return shown.own
    if any(owner in out and out[owner].own not in LIVE for owner in shown.owners):
        return "withheld"
    approved = any(s.kind == "approve" for s in shown.acts)
    if not approved and any(out[r].own == "proposed" for r in ancestors(fold, record) if r in out):
        return "proposed"
    others = (refused[r] for r in out if r != record)
    return "returning" if any(prints & shown.prints for prints in others) else shown.own


def source_erased(fold: Fold, record: bytes) -> bool:
    """R31: whether something that a record was derived from, at any distance, is erased."""
    return not ancestors(fold, record).isdisjoint(fold.erased | fold.named_ahead)


def ancestors(fold: Fold, record: bytes) -> set[bytes]:
    """Everything that a record was derived from, at any distance."""
    seen: set[bytes] = set()
    todo = list(fold.sources(record))
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo += fold.sources(at)
    return seen
