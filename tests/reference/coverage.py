"""What worlds contain, counted, so that a generator that stops covering something is noticed."""

from __future__ import annotations

from collections import Counter

from crdt.entry import PayloadKind
from crdt.payload import decode_tombstone
from tests.reference.fold import Fold
from tests.reference.ledger import DEVICES, Ledger
from tests.reference.places import Held
from tests.reference.rights import Rights
from tests.reference.states import Believed

WANTED = (
    *(f"statement: {kind}" for kind in ("approve", "certify", "decertify", "grant", "lift")),
    *(f"statement: {kind}" for kind in ("policy", "reject", "revoke", "rotate", "settle")),
    "statement: refused",
    "statement: refused, of a device's key",
    "statement: waits for its past",
    "statement: void by the founder's removal",
    "statement: void by an admin's removal",
    "statement: void by a rotation",
    "policy: two in force at once",
    "policy: with a past one",
    "log: forked",
    "log: forked inside a commit",
    "log: with two openings",
    "log: not admitted",
    "log: of a device with two ways",
    "cut: at a commit's end",
    "cut: inside a commit",
    "cut: of an unknown entry",
    "cut: of a whole log",
    "cut: replaced",
    *(f"reason: {name}" for name in ("erased", "frozen", "malformed", "mismatch")),
    *(f"reason: {name}" for name in ("needs_upgrade", "not_accepted", "past_cut")),
    *(f"reason: {name}" for name in ("payload_nowhere", "waiting")),
    "entry: frozen, and withholds",
    "entry: current without review",
    "tombstone: kept beyond a cut",
    "tombstone: of a frozen branch",
    "tombstone: ahead of its chain",
    "tombstone: of what cannot be erased",
    "tombstone: lifted",
    "fact: lifted",
    *(f"state: {name}" for name in ("current", "deprecated", "erased", "new", "proposed")),
    *(f"state: {name}" for name in ("returning", "superseded", "withheld")),
    "record: duplicate",
    "record: approved in part",
    "record: with two creations",
    "record: superseded by a frozen one",
    "record: superseded by its own value",
)


def covered(ledger: Ledger, fold: Fold, believed: dict[bytes, Believed]) -> Counter[str]:
    """What one ledger contains, by name."""
    counts: Counter[str] = Counter()
    for part in (_statements(ledger, fold.rights), _logs(fold), _cuts(fold), _entries(fold)):
        counts.update(part)
    counts.update(_tombstones(fold))
    for record, shown in believed.items():
        counts.update(_record(fold, record, shown, believed))
    return counts


def _statements(ledger: Ledger, rights: Rights) -> list[str]:
    out = []
    devices = {d.public for d in DEVICES}
    removals = [r for r in rights.of("revoke") if rights.valid(r)]
    for s in rights.all.values():
        out.append(f"statement: {s.kind}" if rights.valid(s) else "statement: refused")
        if s.signer in devices and not rights.valid(s):
            out.append("statement: refused, of a device's key")
        turn = rights.turns.get(s.signer)
        if turn is not None and s.kind != "rotate" and s.id not in turn.body["keeps"]:
            out.append("statement: void by a rotation")
        for r in removals:
            if rights.takes_statements(r, s):
                by_founder = rights.owner_of(r.signer) == rights.founder
                who = "the founder's" if by_founder else "an admin's"
                out.append(f"statement: void by {who} removal")
    waits = len(ledger.statements) - len(ledger.absent) - len(rights.all)
    said = [s for s in rights.of("policy") if rights.valid(s)]
    held = [s for s in said if not any(s.id in rights.before(t) for t in said)]
    out += ["policy: two in force at once"] * (len(held) > 1)
    out += ["policy: with a past one"] * (len(held) < len(said))
    return out + ["statement: waits for its past"] * waits


def _logs(fold: Fold) -> list[str]:
    out = []
    for log, entries in fold.logs.items():
        fork = fold.fork_point(log)
        openings = [e for e in entries if e.header.seq == 1]
        if fork is not None:
            out.append("log: forked")
            first = min(s for s, n in Counter(e.header.seq for e in entries).items() if n > 1)
            if first - 1 > fork:
                out.append("log: forked inside a commit")
        if len(openings) > 1:
            out.append("log: with two openings")
        for opening in openings:
            seen = fold.seen(opening.payload or b"")
            ways = fold.rights.ways(log.device, "write", seen) if seen is not None else []
            out += ["log: not admitted"] * (not ways)
            out += ["log: of a device with two ways"] * (len(ways) > 1)
    return out


def _cuts(fold: Fold) -> list[str]:
    out = []
    for s in fold.rights.of("revoke", "decertify"):
        if not fold.rights.valid(s):
            continue
        for *_, incarnation, seq, entry in s.body["cuts"]:
            e = fold.all.get(entry)
            if e is None or (e.header.seq, e.header.incarnation) != (seq, incarnation):
                out.append("cut: of an unknown entry")
            elif e.header.commit_left:
                out.append("cut: inside a commit")
            else:
                out.append("cut: at a commit's end")
        out += ["cut: of a whole log"] * (not s.body["cuts"])
        out += ["cut: replaced" for t in fold.rights.of(s.kind) if fold.rights.replaces(t, s)]
    return out


def _entries(fold: Fold) -> list[str]:
    out = [f"reason: {reason}" for reason in fold.reasons.values() if reason]
    for entries in fold.records.values():
        for fact in fold.facts(entries):
            if fold.reasons[fact.entry] == "frozen":
                out.append("entry: frozen, and withholds")
            elif fact.word == "current" and not fact.counts:
                out.append("entry: current without review")
        out += ["fact: lifted"] * (fold.facts(entries) != fold.put_facts(entries))
    return out


def _tombstones(fold: Fold) -> list[str]:
    lifts = [s for s in fold.rights.of("lift") if fold.rights.valid(s)]
    lifted = {bytes(t) for s in lifts for t in s.body["tombstones"]}
    out = []
    for e in [*fold.all.values(), *fold.ahead]:
        if e.header.payload_kind != PayloadKind.TOMBSTONE:
            continue
        named = bytes(decode_tombstone(e.payload or b"").record)
        if named in fold.everlasting:
            out.append("tombstone: of what cannot be erased")
        elif any(e is stone for stone, _ in fold.tombstones):
            out += _effective(fold, e, lifted)
    return out


def _effective(fold: Fold, e: Held, lifted: set[bytes]) -> list[str]:
    place, out = fold.place(e), []
    if not place.inside:
        out.append("tombstone: kept beyond a cut")
    if place.reason == "frozen":
        out.append("tombstone: of a frozen branch")
    if e.opening is not None:
        out.append("tombstone: ahead of its chain")
    if e.hash in lifted:
        out.append("tombstone: lifted")
    return out


def _record(
    fold: Fold, record: bytes, shown: Believed, believed: dict[bytes, Believed]
) -> list[str]:
    out = [f"state: {shown.state}"]
    there = fold.materialised(record)
    if shown.duplicate is not None:
        out.append("record: duplicate")
    if len([e for e in there if not e.header.deps]) > 1:
        out.append("record: with two creations")
    if any(s.kind == "approve" for s in shown.acts) and not shown.proposal:
        heads = {
            bytes(h)
            for s in shown.acts
            if s.kind == "approve"
            for _, hs in s.body["items"]
            for h in hs
        }
        if not {e.hash for e in there} <= fold.causes(heads):
            out.append("record: approved in part")
    if shown.own == "superseded":
        named = {f.successor for f in shown.facts if f.successor}
        if named - believed.keys():
            out.append("record: superseded by a frozen one")
        if any(believed[r].prints & shown.prints for r in named & believed.keys()):
            out.append("record: superseded by its own value")
    return out
