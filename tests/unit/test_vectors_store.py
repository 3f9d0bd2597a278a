"""The published runs, payloads and statements, through everything that keeps them.

What is refused leaves no trace: the store is compared as a whole, table by table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crdt.chain import RawEntry, verify_run, verify_single
from crdt.entry import PayloadKind, decode_header, tombstone_id
from crdt.fingerprint import FingerprintKey
from crdt.log import AheadTombstone
from keys import codec, statements
from keys.authority import Authority
from keys.errors import BadChain, BadInput
from keys.ids import AgentId, RecordId, hash256
from keys.statements import OWNER_KINDS, parse, parse_stored, sign
from memory.audit import verify_log
from memory.door import open_connection
from memory.store import AgentStore
from tests.support.memory_log import MemoryLog
from tests.support.vectors import invalid, load, refused, valid
from tests.vectors.cast import OWNER, RECOVERY, Writer
from tests.vectors.forms import read, shown, unhexed

Case = dict[str, Any]
RUNS = load("runs")
AGENT = AgentId(bytes.fromhex(RUNS["agent"]))
BY_NAME = {case["name"]: case for case in RUNS["cases"] if "name" in case}
NOW_US = 1_700_000_100_000_000
RUN_BYTES = 1024 * 1024


def entries_of(case: Case) -> list[RawEntry]:
    """The entries of a case, as they travel."""
    return [
        RawEntry(unhexed(header), None if payload is None else unhexed(payload), unhexed(signature))
        for header, payload, signature in case["entries"]
    ]


def dump(store: AgentStore) -> str:
    """Everything in the file."""
    return "\n".join(store.connection.iterdump())


def served(store: AgentStore) -> list[RawEntry]:
    """All entries, as the store sends them to a node that has nothing."""
    out: list[RawEntry] = []
    for stretch in store.plan({}):
        rest = stretch
        while rest is not None:
            run, rest = store.read_run(rest, RUN_BYTES)  # type: ignore[assignment]
            verify_run(AGENT, [e.raw for e in run.entries])
            out += [e.raw for e in run.entries]
    return out


def reasons(store: AgentStore) -> dict[int, str]:
    """Per seq why an entry does not materialise."""
    rows = store.connection.execute("SELECT seq, reason FROM entry WHERE reason IS NOT NULL")
    return dict(rows.fetchall())


def states(store: AgentStore) -> dict[str, str]:
    """Per record its state."""
    rows = store.connection.execute("SELECT record, state FROM record").fetchall()
    return {record.hex(): state for record, state in rows}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    """An agent's file with the statements that let its two devices write."""
    made = AgentStore(
        open_connection(tmp_path / "agent.db"),
        AGENT,
        [FingerprintKey(bytes.fromhex(RUNS["fingerprint_key"]))],
    )
    made.add_statements([parse(*map(bytes.fromhex, pair)) for pair in RUNS["statements"]])
    yield made
    made.connection.close()


@pytest.mark.parametrize("case", valid("runs"))
def test_a_run_is_taken_and_given_on_as_it_came(store: AgentStore, case: Case) -> None:
    """The log, the reasons and the states of the vector; the same bytes to the next node."""
    for name in case["after"]:
        store.append_runs([verify_run(AGENT, entries_of(BY_NAME[name]))], NOW_US)
    raw = entries_of(case)

    done = store.append_runs([verify_run(AGENT, raw)], NOW_US)

    (tips,) = store.vector().values()
    assert [(t.seq, t.hash.hex()) for t in tips] == [tuple(case["tip"])]
    assert done.new == len(raw)
    assert store.append_runs([verify_run(AGENT, raw)], NOW_US).new == 0
    assert reasons(store) == dict(case["reasons"])
    assert states(store).items() >= dict(case["states"]).items()
    assert verify_log(store).problems == []
    assert store.rebuild()[0] == store.rebuild()[1]
    given = served(store)[-len(raw) :]
    assert [e.header for e in given] == [e.header for e in raw]
    gone = {seq for seq, reason in case["reasons"] if reason == "erased"}
    for i, (out, sent) in enumerate(zip(given, raw, strict=True)):
        header = decode_header(sent.header)
        assert out.payload == (None if header.seq in gone else sent.payload)
        singly = header.payload_kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        assert out.signature == (sent.signature if singly or i == len(raw) - 1 else b"")


@pytest.mark.parametrize("case", valid("runs"))
def test_a_run_folds_to_the_same_whatever_the_order_of_runs(
    store: AgentStore, tmp_path: Path, case: Case
) -> None:
    """The log that arrived run by run reads as the one that arrived at once."""
    for name in [*case["after"], case["name"]]:
        store.append_runs([verify_run(AGENT, entries_of(BY_NAME[name]))], NOW_US)
    piecewise = store.digest_text()
    whole = AgentStore(open_connection(tmp_path / "whole.db"), AGENT, store.keys)
    whole.add_statements(store.statements())
    whole.append_runs([verify_run(AGENT, served(store))], NOW_US)
    assert whole.digest_text() == piecewise
    whole.connection.close()


@pytest.mark.parametrize("case", invalid("runs"))
def test_a_bad_run_is_refused_and_leaves_no_trace(store: AgentStore, case: Case) -> None:
    """By verification, or by the store where only it can tell."""
    for name in case["after"]:
        store.append_runs([verify_run(AGENT, entries_of(BY_NAME[name]))], NOW_US)
    before, raw = dump(store), entries_of(case)
    if case["stage"] == "verify":
        with refused(case):
            verify_run(AGENT, raw)
    else:
        run = verify_run(AGENT, raw)
        with refused(case):
            store.append_runs([run], NOW_US)
        with pytest.raises(BadChain):
            MemoryLog(AGENT).append_runs([run], NOW_US)
    assert dump(store) == before


def test_a_bad_run_takes_the_good_ones_beside_it_back_out(store: AgentStore) -> None:
    """One transaction: all of a page, or nothing of it."""
    good = verify_run(AGENT, entries_of(BY_NAME["opening"]))
    gap = verify_run(AGENT, entries_of(BY_NAME["two commits that edit one record"]))
    before = dump(store)
    with pytest.raises(BadChain):
        store.append_runs([good, gap], NOW_US)
    assert dump(store) == before


def log_with(kind: str, data: bytes, erased: str | None = None) -> list[RawEntry]:
    """A log whose last entry has a payload of this kind and these bytes."""
    writer = Writer()
    if kind == "open":
        return [writer.entry(data, kind=PayloadKind.OPEN)]
    run = [writer.open(), writer.create("a good one")]
    record, created = decode_header(run[1].header).record, writer.prev
    if kind == "ops":
        return [*run, writer.entry(data, record=record, deps=[created])]
    named = tombstone_id(AGENT, RecordId(bytes.fromhex(erased)) if erased else record)
    return [*run, writer.entry(data, kind=PayloadKind.TOMBSTONE, record=named)]


@pytest.mark.parametrize("case", invalid("payloads"))
def test_a_malformed_payload_counts_for_nothing(store: AgentStore, case: Case) -> None:
    """An opening or a tombstone stops its run; operations are kept, and set aside with a reason."""
    data = unhexed(case["bytes"])
    run = log_with(case["kind"], data)
    before = dump(store)
    if case["kind"] != "ops" or not data:
        with pytest.raises(BadInput):
            verify_run(AGENT, run)
        assert dump(store) == before
        return
    store.append_runs([verify_run(AGENT, run[:2])], NOW_US)
    digest = store.digest_text()
    store.append_runs([verify_run(AGENT, run)], NOW_US)
    later = case["why"] == "later engine"
    assert reasons(store) == {3: "needs_upgrade" if later else "malformed"}
    assert store.digest_text() == digest
    assert served(store)[-1].payload == data


@pytest.mark.parametrize("case", [p for p in valid("payloads") if p.values[0]["kind"] != "open"])
def test_a_payload_travels_unchanged(store: AgentStore, case: Case) -> None:
    """What the operations may do where they stand is the fold's question, not the chain's."""
    run = log_with(case["kind"], unhexed(case["bytes"]), case.get("record"))
    store.append_runs([verify_run(AGENT, run)], NOW_US)
    assert [e.payload for e in served(store)] == [e.payload for e in run]


@pytest.mark.parametrize("case", valid("statements"))
def test_a_statement_is_kept_and_given_on_as_it_came(store: AgentStore, case: Case) -> None:
    """Its bytes, its id, its signature; signed again by the same key it is the same."""
    data, signature = unhexed(case["data"]), unhexed(case["signature"])
    found = parse(data, signature)
    assert parse_stored(data, signature) == found
    assert found.id == hash256(data)
    assert (found.id.hex(), found.kind, found.agent.hex()) == (
        case["id"],
        case["kind"],
        case["agent"],
    )
    assert [a.hex() for a in found.after] == case["after"]
    assert (shown(found.body), found.signer.hex()) == (case["body"], case["signer"])
    value = [1, found.agent, found.signer, list(found.after), found.kind, found.body]
    assert codec.encode(value) == data
    key = RECOVERY if found.signer == RECOVERY.public else OWNER
    again = sign(key, found.kind, read(case["body"]), agent=found.agent, after=list(found.after))
    assert again == found

    held = store.statement_ids()
    new = store.add_statements([found])

    assert new == int(found.id not in held)
    assert store.add_statements([found]) == 0
    assert (data, signature) in store.statements_missing(frozenset())
    assert verify_log(store).problems == []
    Authority(AGENT, store.statements())


@pytest.mark.parametrize("case", invalid("statements"))
def test_a_bad_statement_is_refused_and_leaves_no_trace(case: Case) -> None:
    """Parsing is the only way in; what it refuses never is a ``Statement``."""
    with refused(case):
        parse(unhexed(case["data"]), unhexed(case["signature"]))


@pytest.mark.parametrize("case", invalid("statements"))
def test_form_is_checked_again_when_a_statement_is_read_back(case: Case) -> None:
    """A file that somebody wrote into gives no other statement than the network does."""
    data, signature = unhexed(case["data"]), unhexed(case["signature"])
    if case["error"] == "BadEncoding":
        with refused(case):
            parse_stored(data, signature)
    else:
        assert parse_stored(data, signature).data == data


def test_a_damaged_signature_in_the_file_is_found_by_the_audit(store: AgentStore) -> None:
    """Statements are read from the file without verifying; the audit verifies."""
    bad = next(c.values[0] for c in invalid("statements") if c.values[0]["why"] == "flipped bit")
    data, signature = unhexed(bad["data"]), unhexed(bad["signature"])
    values = (hash256(data), data, signature, NOW_US)
    store.connection.execute("INSERT INTO statement VALUES (?, ?, ?, ?)", values)
    assert len(verify_log(store).problems) == 1


def test_statements_of_another_agent_are_not_kept(store: AgentStore) -> None:
    """Those of owners belong to every set, those of an agent to its own."""
    other = AgentId(hash256(b"another agent"))
    body = {"run": bytes(16), "wall_ms": 1}
    foreign = sign(OWNER, "undo", body, agent=other, after=[])
    found = sign(OWNER, "found", {**_founding(), "name": "another"}, agent=b"", after=[])
    before = dump(store)
    assert store.add_statements([foreign, found]) == 0
    assert dump(store) == before


def _founding() -> dict[str, Any]:
    case = next(c.values[0] for c in valid("statements", kind="found"))
    return dict(read(case["body"]))


def test_every_kind_of_statement_has_vectors() -> None:
    """Valid and invalid ones, and one of a kind that is not known yet."""
    good = {p.values[0]["kind"] for p in valid("statements")}
    assert good == statements.BODIES.keys() | {"later"}
    assert good > OWNER_KINDS


def test_a_single_entry_is_verified_like_a_run() -> None:
    """Ahead of its chain nothing passes that would not pass in it (R30)."""
    for raw in (raw for case in RUNS["cases"] for raw in entries_of(case)):
        try:
            found = verify_single(AGENT, raw)
        except BadInput:
            continue
        assert found.header.payload_kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        assert found.signature == raw.signature


def test_a_tombstone_ahead_of_its_chain_withholds_and_erases_later(store: AgentStore) -> None:
    """R30: its record is not shown, its payload not taken; the chain then proves its place."""
    opening, commit = entries_of(BY_NAME["opening"]), entries_of(BY_NAME["a commit of three"])
    edits = entries_of(BY_NAME["two commits that edit one record"])
    erasure = entries_of(BY_NAME["an erasure inside a commit"])
    ahead = AheadTombstone(verify_single(AGENT, erasure[0]), verify_single(AGENT, opening[0]))
    record = decode_header(commit[1].header).record.hex()

    assert store.add_ahead([ahead]) == 1
    store.append_runs([verify_run(AGENT, [*opening, *commit])], NOW_US)
    assert states(store).get(record, "withheld") == "withheld"
    store.append_runs([verify_run(AGENT, [*edits, *erasure])], NOW_US)
    assert states(store)[record] == "erased"
    assert verify_log(store).problems == []
