"""Vectors of runs: what a store takes, what becomes of it, and what is refused where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from crdt.chain import RawEntry
from crdt.entry import NO_PREV, NO_RECORD, PayloadKind, derived_id, tombstone_id
from crdt.payload import delete, encode_open, encode_ops, put
from keys import codec
from keys.ids import AgentId, EntryHash, RecordId
from keys.signing import STATEMENT_DOMAIN
from tests.support.author import seeded
from tests.vectors.cast import (
    AGENT,
    CERTIFICATES,
    FOUND,
    HEADS,
    LAPTOP,
    PHONE,
    SMALL_ORDER_KEY,
    SMALL_ORDER_SIGNATURE,
    VALUES,
    Writer,
    header_of,
    observation,
    salt,
)
from tests.vectors.forms import hexed
from tests.vectors.values import Suite, suite

Run = list[RawEntry]
Good = tuple[str, list[str], Run, dict[int, str], dict[str, str]]
Bad = tuple[str, str, Run]


def runs_suite() -> Suite:
    """Whole runs, in the order in which a store is given them."""
    cases: list[Suite] = []
    for name, after, run, reasons, states in good_runs():
        last = header_of(run[-1])
        cases.append({"name": name, "after": after, "entries": [_row(e) for e in run]})
        cases[-1]["tip"] = [last.seq, last.hash.hex()]
        cases[-1]["reasons"] = [[seq, reason] for seq, reason in reasons.items()]
        cases[-1]["states"] = [[record, state] for record, state in states.items()]
    held = ["opening", "a commit of three"]
    for stage, found in (("verify", bad_runs()), ("append", gaps())):
        for error, why, run in found:
            cases.append({"after": held if stage == "append" else []})
            cases[-1]["entries"] = [_row(e) for e in run]
            cases[-1] |= {"error": error, "why": why, "stage": stage}
    made = suite("runs", "runs as [header, payload or null, signature] per entry", cases)
    made["agent"] = AGENT.hex()
    made["statements"] = [[s.data.hex(), s.signature.hex()] for s in (FOUND, *CERTIFICATES)]
    made["fingerprint_key"] = VALUES.secret.hex()
    return made


def _row(entry: RawEntry) -> list[str | None]:
    payload = None if entry.payload is None else hexed(entry.payload)
    return [hexed(entry.header), payload, entry.signature.hex()]


# -- valid ----------------------------------------------------------------------------------------


def good_runs() -> list[Good]:
    """One log of good entries, and one whose chain holds and whose entries do not count."""
    w = Writer()
    opening = [w.open()]
    first = w.next_id()
    commit = [w.create("the key is under the mat", left=2)]
    created = w.prev
    second = w.next_id()
    commit.append(w.create("bees live on the roof", left=1))
    third = w.next_id()
    commit.append(w.create("rain on Tuesday", left=0))
    edits = [w.change(first, [created], [put("mark.0000000000000001", "deprecated moved")])]
    retired = w.prev
    edits.append(
        w.change(first, [created], [put("field.layer", "week"), delete("tag.vectors")], left=1)
    )
    moved = w.prev
    edits.append(w.change(first, [retired, moved], [put("field.weight", 2.0)]))
    erasure = [w.tombstone(second, left=1)]
    erasure.append(w.change(first, [w.made[-2]], [put("field.title", "a key")]))
    whole = [*opening, *commit, *edits, *erasure]
    singly = {PayloadKind.OPEN, PayloadKind.TOMBSTONE}
    sparse = [
        e
        if i == len(whole) - 1 or header_of(e).payload_kind in singly
        else replace(e, signature=b"")
        for i, e in enumerate(whole)
    ]
    stub = [replace(e, payload=None) if header_of(e).record == second else e for e in sparse]
    states = {first.hex(): "deprecated", second.hex(): "erased", third.hex(): "new"}
    told = {3: "erased"}
    return [
        ("opening", [], opening, {}, {}),
        (
            "a commit of three",
            ["opening"],
            commit,
            {},
            {first.hex(): "new", second.hex(): "new", third.hex(): "new"},
        ),
        (
            "two commits that edit one record",
            ["opening", "a commit of three"],
            edits,
            {},
            {first.hex(): "deprecated"},
        ),
        (
            "an erasure inside a commit",
            ["opening", "a commit of three", "two commits that edit one record"],
            erasure,
            told,
            states,
        ),
        ("the whole log in one run", [], sparse, told, states),
        ("the whole log, the erased payload not sent", [], stub, told, states),
        _set_aside(),
    ]


def _set_aside() -> Good:
    """R5: entries whose place is proven and that do not materialise."""
    w = Writer(PHONE, "set aside")
    run = [w.open()]
    good = w.next_id()
    run.append(w.create("the good one"))
    made = w.prev
    reasons: dict[int, str] = {}

    def bad(reason: str, entry: RawEntry) -> None:
        run.append(entry)
        reasons[w.seq] = reason

    note = observation("x")
    no_kind = [op for op in note if op.key != "kind"]
    layer = derived_id(AGENT, "layer", b"day")
    nothing = encode_ops(salt("no effect"), [delete("tag.none")], seeded("no effect"))
    wrong = encode_ops(salt("wrong hash"), [put("field.weight", 9.0)], seeded("wrong hash"))
    bad("needs_upgrade", w.entry(b"a kind of a later version", kind=3, record=good))
    bad("needs_upgrade", w.entry(codec.pack([2, "an engine"]), record=good, deps=[made]))
    bad("malformed", w.entry(b"not operations", record=good, deps=[made]))
    bad("malformed", w.create("another place", record=RecordId(seeded("elsewhere", 16))))
    bad("malformed", w.create("a derived id without its key", record=layer))
    bad("malformed", w.change(w.next_id(), [], no_kind))
    bad("malformed", w.change(w.next_id(), [], [*no_kind, put("kind", "")]))
    bad("malformed", w.change(w.next_id(), [], [*note, put("next.x", "")]))
    bad("malformed", w.entry(nothing, record=good, deps=[made]))
    bad("mismatch", w.entry(wrong, record=good, deps=[made]))
    bad("waiting", w.entry(wrong, record=good, deps=[EntryHash(seeded("not here"))]))
    bad("payload_nowhere", w.entry(wrong, record=good, deps=[made], send=None))
    for ops in (
        [put("kind", "turn")],
        [put("body.text", "rewritten")],
        [put(f"next.{'0' * 31}x", "not hex digits")],
        [put("mark.0000000000000001", 1)],
        [delete("mark.0000000000000001")],
        [delete("body.text")],
    ):
        payload = encode_ops(salt("edit"), list(ops), seeded("edit"))
        bad("malformed", w.entry(payload, record=good, deps=[made]))
    run.append(w.change(good, [made], [put("field.weight", 2.0)]))
    edited = w.prev
    later = encode_ops(salt("later"), [put("field.weight", 3.0)], seeded("later"))
    bad("malformed", w.entry(later, record=good, deps=[made, edited]))
    bad("waiting", w.entry(later, record=good, deps=[EntryHash(bytes(w.prev))]))
    return "entries that are set aside", [], run, reasons, {good.hex(): "new"}


# -- refused --------------------------------------------------------------------------------------


def gaps() -> Iterator[Bad]:
    """Runs that verify and do not follow what is held."""
    w = Writer()
    w.open()
    for n in range(4):
        w.create(f"not sent {n}")
    yield "BadChain", "gap", [w.create("after a gap")]
    w = Writer()
    w.open(wall_ms=0)
    yield "BadChain", "another opening", [w.create("on another opening")]
    w = Writer(PHONE)
    w.open()
    yield "BadChain", "no opening", [w.create("on a log that is not here")]
    w = Writer()
    w.open()
    w.create("the key is under the mat", left=2)  # as in the commit that is held
    yield "BadChain", "begins inside a commit", [w.create("another second entry")]


def bad_runs() -> Iterator[Bad]:
    """Runs that do not verify, each with one thing wrong."""
    yield "BadChain", "no entry", []
    yield from _bad_openings()
    yield from _bad_sequences()
    yield from _bad_commits()
    yield from _bad_payloads()
    yield from _bad_signatures()
    yield from _bad_tombstones()


def _bad_openings() -> Iterator[Bad]:
    yield "BadChain", "opening not first", [Writer().create("no opening")]
    w = Writer()
    yield "BadChain", "opening not first", [w.open(), w.open()]
    w = Writer()
    w.open()
    yield "BadChain", "opening not first", [w.open()]
    yield "BadChain", "opening with a record", [Writer().open(record=seeded("record", 16))]
    yield "BadChain", "opening with deps", [Writer().open(deps=[bytes(32)])]
    w = Writer()
    yield "BadChain", "opening in a commit", [w.open(commit_left=1), w.create("more")]
    yield "BadChain", "opening without payload", [Writer().open(send=None)]
    w = Writer()
    bad = encode_open(HEADS) + b"\0"
    yield "BadEncoding", "opening malformed", [w.entry(bad, kind=PayloadKind.OPEN)]


def _bad_sequences() -> Iterator[Bad]:
    yield "BadChain", "prev of a first entry", [Writer().open(prev=seeded("prev"))]
    w = Writer()
    w.open()
    yield "BadChain", "no prev", [w.create("x", prev=bytes(NO_PREV))]
    w = Writer()
    run = [w.open(), w.create("one")]
    yield "BadChain", "seq", [*run, w.create("two", seq=4)]
    w = Writer()
    run = [w.open(), w.create("one")]
    yield "BadChain", "seq", [*run, w.create("two", seq=2)]
    others: list[tuple[str, dict[str, Any]]] = [
        ("prev", {"prev": seeded("prev")}),
        ("two logs", {"incarnation": seeded("other", 8)}),
        ("two logs", {"device": bytes(PHONE.device)}),
        ("two agents", {"agent": seeded("another agent")}),
    ]
    for why, other in others:
        w = Writer()
        run = [w.open(), w.create("one")]
        yield "BadChain", why, [*run, w.create("two", **other)]
    w = Writer()
    yield "BadChain", "another agent", [w.open(agent=seeded("another agent"))]
    w = Writer()
    run = [w.open(), w.create("one"), w.create("two")]
    yield "BadChain", "order", [run[0], run[2], run[1]]
    yield "BadChain", "missing entry", [run[0], run[2]]
    yield "BadChain", "repeated entry", [run[0], run[1], run[1]]


def _bad_commits() -> Iterator[Bad]:
    for left in ([2, 0], [1, 1, 0], [0, 1], [3, 2, 1], [1, 2, 1, 0], [1]):
        w = Writer()
        run = [w.open()]
        for i, n in enumerate(left):
            run.append(w.create(f"note {i}", left=n, signed=True))
        yield "BadChain", "commit countdown", run
    w = Writer()
    run = [w.open(), w.create("one", left=511), w.create("two", left=510, signed=True)]
    yield "BadChain", "commit countdown", run


def _bad_payloads() -> Iterator[Bad]:
    for why, sent in (("payload", b"another payload"), ("payload", b""), ("payload length", b"x")):
        w = Writer()
        run = [w.open(), w.create("one")]
        yield "BadChain", why, [run[0], replace(run[1], payload=sent)]
    w = Writer()
    yield "BadChain", "payload length", [w.open(), w.create("one", payload_len=1)]
    w = Writer()
    run = [w.open(), w.create("one"), w.create("two")]
    swapped = [replace(run[1], payload=run[2].payload), replace(run[2], payload=run[1].payload)]
    yield "BadChain", "payloads exchanged", [run[0], *swapped]


def _bad_signatures() -> Iterator[Bad]:
    def last(change: Callable[[RawEntry, RawEntry], bytes]) -> Run:
        w = Writer()
        opening, entry = w.open(), w.create("one")
        return [opening, replace(entry, signature=change(opening, entry))]

    yield "BadSignature", "no signature", last(lambda _o, _e: b"")
    yield "BadSignature", "short", last(lambda _o, e: e.signature[:-1])
    yield "BadSignature", "long", last(lambda _o, e: e.signature + b"\0")
    yield "BadSignature", "of another entry", last(lambda o, _e: o.signature)
    yield "BadSignature", "zeros", last(lambda _o, _e: bytes(64))
    w = Writer()
    yield "BadSignature", "another domain", [w.open(), w.create("one", domain=STATEMENT_DOMAIN)]
    w = Writer()
    other = Writer(PHONE)
    other.log, other.seq, other.prev = w.log, 1, EntryHash(header_of(w.open()).hash)
    forged = other.create("one", device=bytes(LAPTOP.device))
    yield "BadSignature", "another key", [Writer().open(), forged]
    w = Writer()
    unsigned = replace(w.open(), signature=b"")
    yield "BadSignature", "opening not signed", [unsigned, w.create("one")]
    w = Writer()
    weak: dict[str, Any] = {"device": SMALL_ORDER_KEY}
    run = [w.open(**weak), w.create("one", **weak)]
    yield (
        "BadSignature",
        "small-order key",
        [replace(entry, signature=SMALL_ORDER_SIGNATURE) for entry in run],
    )


def _bad_tombstones() -> Iterator[Bad]:
    record = RecordId(seeded("vectors, record", 16))
    other = tombstone_id(AgentId(seeded("another agent")), record)
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("BadEncoding", "tombstone id", {"record": record}),
        ("BadEncoding", "tombstone id", {"record": NO_RECORD}),
        ("BadEncoding", "tombstone id", {"record": other}),
        ("BadChain", "tombstone with deps", {"deps": [bytes(32)]}),
        ("BadChain", "tombstone without payload", {"send": None}),
        ("BadSignature", "tombstone not signed", {"signed": False}),
        ("BadSignature", "another domain", {"domain": STATEMENT_DOMAIN}),
    ]
    for error, why, changed in wrong:
        w = Writer()
        opening = w.open()
        yield error, why, [opening, w.tombstone(record, **changed), w.create("one")]
    w = Writer()
    opening = w.open()
    malformed = codec.pack([bytes(record), 99, []])
    given: dict[str, Any] = {"kind": PayloadKind.TOMBSTONE, "record": tombstone_id(AGENT, record)}
    yield "BadEncoding", "tombstone malformed", [opening, w.entry(malformed, **given)]
