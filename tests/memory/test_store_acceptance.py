"""What every log store keeps, whatever is behind its door (crdt.log.LogStore)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdt.chain import RawEntry, VerifiedRun, verify_run, verify_single
from crdt.log import AheadTombstone, ServedRun, Tip, Want
from keys.errors import BadChain
from keys.ids import AgentId
from tests.support.author import Author, grant
from tests.support.log_ports import NOW_US, KeyedFamily, Opener, Port, opener_of, served

DURABLE = ("inline", "aio")


@pytest.fixture
def family() -> KeyedFamily:
    """An owner with three devices."""
    return KeyedFamily("a", "b", "c")


@pytest.fixture(params=("memory", *DURABLE))
def open_port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens stores of one kind."""
    opened: list[Port] = []
    with asyncio.Runner() as runner:
        yield opener_of(request.param, tmp_path, runner, opened)
        for port in opened:
            port.close()


@pytest.fixture
def port(open_port: Opener, family: KeyedFamily) -> Port:
    """One store of the family's agent."""
    return open_port(family)


def written(author: Author, *sizes: int) -> list[VerifiedRun]:
    """The runs of a log: its opening, then a commit of each size."""
    name = str(author.log)
    runs = [author.open()]
    for i, size in enumerate(sizes):
        runs.append(author.write(*(f"{name} {i} {j}" for j in range(size))))
    return runs


def entries_of(runs: list[ServedRun]) -> list[RawEntry]:
    """Their entries."""
    return [entry.raw for run in runs for entry in run.entries]


def test_what_is_appended_is_served_byte_for_byte(
    open_port: Opener, port: Port, family: KeyedFamily
) -> None:
    """Headers, payloads and the signatures of run ends come out as they went in."""
    author = family.author("a")
    port.append(*written(author, 1, 3, 2))
    runs = port.do(lambda store: served(store, 1))
    assert [len(run.entries) for run in runs] == [1, 1, 3, 2]
    assert entries_of(runs) == author.raw
    other = open_port(family, "other")
    for run in runs:
        other.append(verify_run(family.agent, [e.raw for e in run.entries]))
    assert other.vector() == port.vector()
    digests = [p.do(lambda store: store.vector_digest()) for p in (port, other)]
    assert digests[0] == digests[1]


def test_a_run_ends_at_the_first_held_signature_past_the_target(
    port: Port, family: KeyedFamily
) -> None:
    """R4: with a large target everything is one run that ends with a signature."""
    author = family.author("a")
    port.append(*written(author, 1, 3, 2))
    runs = port.do(lambda store: served(store, 10**9))
    assert [len(run.entries) for run in runs] == [7]
    assert entries_of(runs)[-1].signature == author.raw[-1].signature != b""


def test_appending_twice_changes_nothing(port: Port, family: KeyedFamily) -> None:
    """Known entries are counted and not stored again, alone or in front of new ones."""
    author = family.author("a")
    runs = written(author, 2, 1)
    assert port.append(*runs) == (4, 0)
    before = port.vector()
    assert port.append(*runs) == (0, 4)
    assert port.vector() == before
    author.write("more")
    assert port.append(verify_run(family.agent, author.run(2, 5))) == (1, 3)


def test_a_gap_is_refused_and_what_came_with_it_is_not_kept(
    port: Port, family: KeyedFamily
) -> None:
    """``BadChain`` undoes the whole append: the store is as before."""
    a, b = family.author("a"), family.author("b")
    runs, others = written(a, 1, 1), written(b, 1)
    port.append(runs[0])
    before = port.vector(), port.do(lambda store: store.vector_digest())
    with pytest.raises(BadChain):
        port.append(*others, runs[2])
    assert (port.vector(), port.do(lambda store: store.vector_digest())) == before
    with pytest.raises(BadChain):
        port.append(others[1])
    assert port.append(*runs[1:], *others) == (4, 0)


def test_only_what_is_lacking_is_planned(port: Port, family: KeyedFamily) -> None:
    """Per log what follows the last tip that both know; nothing for equal vectors."""
    a, b = family.author("a"), family.author("b")
    first, rest = written(a, 1), written(b, 2, 2)
    port.append(*first)
    have = port.vector()
    later = a.write("later")
    port.append(later, *rest)
    missing = port.do(lambda store: store.missing_entries(have))
    stretches = port.do(lambda store: store.plan(have))
    assert missing == 1 + 5
    assert {s.log: (s.after.seq, s.until.seq) for s in stretches} == {a.log: (2, 3), b.log: (0, 5)}
    assert port.do(lambda store: store.plan(store.vector())) == []


def test_a_fork_keeps_both_branches_as_proof(
    open_port: Opener, port: Port, family: KeyedFamily
) -> None:
    """R7, X-33: whichever came first, both are held, named by their tips and served."""
    author = family.author("a")
    trunk = written(author, 1)
    twin = author.clone()
    left, right = author.write("left"), twin.write("right", "further")
    port.append(*trunk, left)
    port.append(right)
    other = open_port(family, "other")
    other.append(*trunk, right, left)
    tips = sorted([Tip(3, author.tip.hash), Tip(4, twin.tip.hash)])
    assert port.vector() == other.vector() == {author.log: tips}
    empty = open_port(family, "empty")
    for run in port.do(lambda store: served(store, 1)):
        empty.append(verify_run(family.agent, [e.raw for e in run.entries]))
    assert empty.vector() == port.vector()


def test_a_ninth_branch_is_refused(port: Port, family: KeyedFamily) -> None:
    """R7: eight branches are proof enough."""
    author = family.author("a")
    port.append(*written(author, 1))
    twins = [author.clone() for _ in range(9)]
    for i, twin in enumerate(twins[:8]):
        port.append(twin.write(f"branch {i}"))
    with pytest.raises(BadChain):
        port.append(twins[8].write("one too many"))
    assert len(port.vector()[author.log]) == 8


def test_S_E15_what_was_erased_is_served_as_a_stub_with_its_tombstone(
    open_port: Opener, port: Port, family: KeyedFamily
) -> None:
    """The chain still verifies; the stub names the tombstone, and nothing else is a stub."""
    author = family.author("a")
    runs = written(author, 2, 1)
    port.append(*runs)
    have = port.vector()
    tombstone = author.forget(author.records[0])
    port.append(tombstone)
    (run,) = port.do(lambda store: served(store, 10**9))
    stubs = [e.tombstone for e in run.entries]
    assert stubs == [b"", tombstone.entries[0].header.hash, b"", b"", b""]
    assert [e.raw.payload is None for e in run.entries] == [bool(s) for s in stubs]
    other = open_port(family, "other")
    assert other.append(verify_run(family.agent, [e.raw for e in run.entries])) == (5, 0)
    assert other.vector() == port.vector() != have
    assert other.do(lambda store: store.wants(9)) == []


def test_a_payload_that_is_nowhere_is_wanted_and_taken_when_it_comes(
    port: Port, family: KeyedFamily
) -> None:
    """R32, S-E5: only the payload that the header names is taken, and only once."""
    author = family.author("a")
    runs = written(author, 2)
    bare = [
        RawEntry(e.header, None if i == 1 else e.payload, e.signature)
        for i, e in enumerate(author.raw)
    ]
    port.append(verify_run(family.agent, bare))
    (want,) = port.do(lambda store: store.wants(9))
    assert (want.log, want.seq) == (author.log, 2)
    assert port.do(lambda store: store.payloads([want])) == []
    payload = author.raw[1].payload
    assert payload is not None
    found = [(want, payload[:-1] + b"\1"), (want, payload), (want, payload)]
    assert port.do(lambda store: store.add_payloads(found, NOW_US)) == 1
    assert port.do(lambda store: store.wants(9)) == []
    assert port.do(lambda store: store.payloads([want])) == [(want, payload)]
    assert port.payloads_held(runs) == [True] * 3


def test_S_H2_the_payload_of_a_forgotten_record_is_never_taken_again(
    port: Port, family: KeyedFamily
) -> None:
    """Neither in the old entry nor as a wanted payload, before or after its own entry is here."""
    author = family.author("a")
    runs = written(author, 1, 1)
    tombstone = author.forget(author.records[0])
    port.append(*runs, tombstone)
    assert port.payloads_held(runs) == [True, False, True]
    port.append(*runs)
    entry = runs[1].entries[0]
    assert entry.payload is not None
    want = Want(author.log, 2, entry.header.hash)
    payload = entry.payload
    assert port.do(lambda store: store.add_payloads([(want, payload)], NOW_US)) == 0
    assert port.payloads_held(runs) == [True, False, True]


def test_R30_a_tombstone_ahead_of_its_chain_keeps_payloads_out(
    open_port: Opener, port: Port, family: KeyedFamily
) -> None:
    """It travels with the opening of its log, is passed on, and is known once the chain is here."""
    author = family.author("a")
    runs = written(author, 1)
    tombstone = author.forget(author.records[0])
    port.append(*runs, tombstone)
    pairs = port.do(lambda store: store.tombstones_beyond({}, 9))
    ahead = [
        AheadTombstone(verify_single(family.agent, t), verify_single(family.agent, o))
        for t, o in pairs
    ]
    assert [a.tombstone.header.hash for a in ahead] == [tombstone.entries[0].header.hash]
    other = open_port(family, "other")
    assert other.do(lambda store: store.add_ahead(ahead)) == 1
    assert other.do(lambda store: store.add_ahead(ahead)) == 0
    assert other.do(lambda store: store.tombstones_beyond({}, 9)) == pairs
    other.append(*runs)
    assert other.payloads_held(runs) == [True, False]
    assert other.do(lambda store: store.wants(9)) == []
    other.append(tombstone)
    assert other.do(lambda store: store.tombstones_beyond(store.vector(), 9)) == []


def test_statements_come_after_their_past_and_only_those_that_lack(
    open_port: Opener, port: Port, family: KeyedFamily
) -> None:
    """R16: the set is the same in whatever order it arrived."""
    late = grant(family.owner, family.agent, family.devices["a"], ["read"], family.heads)
    statements = [*family.statements, late]
    assert port.do(lambda store: store.add_statements(statements)) == 1
    ids = port.do(lambda store: store.statement_ids())
    assert ids == sorted(bytes(s.id) for s in statements)
    missing = port.do(lambda store: store.statements_missing(frozenset()))
    assert missing == [(s.data, s.signature) for s in statements]
    held = frozenset(bytes(s.id) for s in family.statements)
    assert port.do(lambda store: store.statements_missing(held)) == missing[-1:]
    other = open_port(family, "other")
    for statement in reversed(statements):
        other.do(lambda store, s=statement: store.add_statements([s]))  # type: ignore[misc]
    digests = [p.do(lambda store: store.statements_digest()) for p in (port, other)]
    assert digests[0] == digests[1]


def test_statements_of_another_agent_do_not_enter(port: Port, family: KeyedFamily) -> None:
    """A founding or an act about somebody else's agent is not this agent's."""
    before = port.do(lambda store: store.statement_ids())
    other = AgentId(bytes(32))
    stranger = grant(family.owner, other, family.devices["a"], ["read"], family.heads)
    assert port.do(lambda store: store.add_statements([stranger])) == 0
    assert port.do(lambda store: store.statement_ids()) == before


def test_a_store_opened_again_is_as_it_was_left(tmp_path: Path, family: KeyedFamily) -> None:
    """Every door closes its file; what was appended is there for the next, whichever it is."""
    author = family.author("a")
    runs = written(author, 3, 2)
    with asyncio.Runner() as runner:
        left = None
        for i, kind in enumerate((*DURABLE, *DURABLE)):
            opened: list[Port] = []
            port = opener_of(kind, tmp_path, runner, opened)(family)
            if left is not None:
                assert port.vector() == left
            port.append(*runs[: i + 1])
            left = port.vector()
            port.close()
    assert left == {author.log: [author.tip]}
