"""Pulling: everything arrives, in pages, and a cut costs at most one run."""

from itertools import accumulate

import pytest

from crdt.chain import RawEntry, verify_run
from crdt.log import ServedEntry
from keys.limits import PAGE_ENTRIES
from sync.frames import (
    Ahead,
    End,
    Failure,
    Frame,
    Run,
    ServerVector,
    Totals,
    pack,
)
from sync.outcome import State
from sync.pull import Append, Expect, PullClient, Whole, Withhold
from sync.reasons import Missing
from tests.support.author import Family
from tests.support.exchange import (
    NOW_US,
    answer,
    batched,
    frames_in,
    keep,
    pull,
    pull_statements,
    receive,
    runs_in,
    served,
    small,
    store_of,
    stream_of,
    tiny,
    written,
)
from tests.support.memory_log import MemoryLog


@pytest.fixture
def family() -> Family:
    """An owner with three devices."""
    return Family("a", "b", "c")


def test_both_ways_makes_both_equal(family: Family) -> None:
    """After a pull in each direction the vectors, digests and payloads agree."""
    a, b = store_of(family, written(family.author("a"), 1, 5, 2)), MemoryLog(family.agent)
    keep(b, written(family.author("b"), 4))
    assert pull_statements(b, a) - 1 == 3

    first = pull(b, a)
    assert (
        first.outcome.state,
        first.outcome.we_lack,
        first.outcome.they_lack,
    ) == (State.INCOMPLETE, 0, 5)
    second = pull(a, b)
    assert (
        second.outcome.state,
        second.outcome.we_lack,
        second.outcome.they_lack,
    ) == (State.IN_SYNC, 0, 0)
    assert a.vector_digest() == b.vector_digest()
    assert a.statements_digest() == b.statements_digest()
    assert {h: e.payload for h, e in a.entries.items()} == {
        h: e.payload for h, e in b.entries.items()
    }


def test_S_A10_an_empty_vector_is_served_from_zero(family: Family) -> None:
    """What a server sends follows from the request alone, whatever it sent before."""
    a = store_of(family, written(family.author("a"), 3))
    b = MemoryLog(family.agent)
    assert pull(b, a).new == 4

    wiped = MemoryLog(family.agent)
    assert pull(wiped, a).new == 4
    assert wiped.vector() == a.vector()


def test_S_E1_lag_is_exact_on_both_sides(family: Family) -> None:
    """Equal logs lack nothing; unequal ones list exactly what is missing."""
    author = written(family.author("a"), 2, 3)
    a, b = store_of(family, author), MemoryLog(family.agent)
    pull(b, a)
    again = pull(b, a)
    assert (
        again.outcome.state,
        again.outcome.we_lack,
        again.outcome.they_lack,
        again.outcome.missing,
    ) == (State.IN_SYNC, 0, 0, ())

    author.write("x", "y")
    keep(a, author)
    client = PullClient(b.agent, b.vector())
    done = receive(
        client, b, [pack(Totals(2, 0)), pack(ServerVector(a.vector())), pack(End(False))]
    )
    assert done.outcome.state == State.INCOMPLETE
    assert 2 == done.outcome.we_lack == sum(m.entries for m in done.outcome.missing)


def test_S_E4_the_end_of_a_stream_is_not_taken_for_completeness(family: Family) -> None:
    """A server that sends less than its own vector leaves the pull incomplete, with a count."""
    author = written(family.author("a"), 2, 3)
    a, b = store_of(family, author), MemoryLog(family.agent)
    frames: list[Frame] = [
        Totals(6, 0),
        served(author.run(1, 3)),
        ServerVector(a.vector()),
        End(False),
    ]
    done = answer(b, frames)
    assert (done.outcome.state, done.outcome.we_lack) == (State.INCOMPLETE, 3)
    assert [m.reason for m in done.outcome.missing] == [Missing.WAITING]


def test_S_E6_news_travels_on_through_the_middle(family: Family) -> None:
    """A to B to C, with A gone: signatures of A are enough for C."""
    a = small(family)
    b, c = MemoryLog(family.agent), MemoryLog(family.agent)
    pull(b, a)
    done = pull(c, b)
    assert done.outcome.state == State.IN_SYNC
    assert c.vector() == a.vector()


@pytest.mark.parametrize("target", [1, 10_000])
def test_S_E12_a_cut_at_any_byte_repeats_at_most_one_run(family: Family, target: int) -> None:
    """Whole runs are kept wherever the stream ends; the rest follows and the result is equal."""
    a = tiny(family)
    whole = b"".join(stream_of(a, PullClient(a.agent, {}).request, bytes_target=target))
    lengths = accumulate(len(pack(frame)) for frame in frames_in(whole))
    kinds = [type(frame) for frame in frames_in(whole)]
    ends = [end for end, kind in zip(lengths, kinds, strict=True) if kind is Run]
    finished: dict[bytes, int] = {}
    for at in range(len(whole)):
        b = MemoryLog(family.agent)
        first = receive(PullClient(b.agent, {}), b, [whole[:at]])
        arrived = sum(end <= at for end in ends)
        assert (first.outcome.state, first.outcome.error) == (State.CUT, "cut")
        assert arrived == sum(len(e.runs) for e in first.effects if isinstance(e, Append))
        held = b.vector_digest()
        if held not in finished:
            rest = PullClient(b.agent, b.vector())
            again = b"".join(stream_of(a, rest.request, bytes_target=target))
            assert receive(rest, b, [again]).outcome.state == State.IN_SYNC
            assert (b.vector(), b.erased) == (a.vector(), a.erased)
            finished[held] = runs_in(again)
    assert len(finished) == runs_in(whole) + 1
    assert sorted(finished.values()) == list(range(runs_in(whole) + 1))


def test_the_result_is_the_same_however_the_stream_is_chunked(family: Family) -> None:
    """Frames are cut out of chunks of any size."""
    a = small(family)
    whole = b"".join(stream_of(a, PullClient(a.agent, {}).request))
    for size in (1, 2, 3, 7, 100, len(whole)):
        b = MemoryLog(family.agent)
        chunks = [whole[i : i + size] for i in range(0, len(whole), size)]
        assert receive(PullClient(b.agent, {}), b, chunks).outcome.state == State.IN_SYNC


def test_tombstones_come_before_any_run(family: Family) -> None:
    """What is forgotten is known before what it names arrives."""
    done = pull(MemoryLog(family.agent), small(family))
    kinds = [type(e) for e in done.effects]
    assert [Expect, Withhold] == kinds[:2]
    assert kinds.count(Withhold) == 1
    assert kinds[-1] is Whole


def test_a_stub_without_a_tombstone_is_payload_nowhere(family: Family) -> None:
    """R31: ``erased`` needs a tombstone's id; anything else goes on the want-list."""
    author = written(family.author("a"), 2)
    gone, erased = author.raw[1], author.raw[2]
    entries = (
        ServedEntry(author.raw[0], b""),
        ServedEntry(RawEntry(gone.header, None, gone.signature), b""),
        ServedEntry(RawEntry(erased.header, None, erased.signature), bytes(32)),
    )
    b = MemoryLog(family.agent)
    client = PullClient(b.agent, {})
    receive(client, b, [pack(Totals(3, 0)), pack(Run(entries))])
    assert (client.tally.nowhere, client.tally.erased) == (1, 1)
    assert len(b.wants(10)) == 2


def test_a_server_that_says_why_it_stops_is_quoted_by_its_code(family: Family) -> None:
    """What came before is kept."""
    author = written(family.author("a"), 1)
    b = MemoryLog(family.agent)
    done = answer(b, [Totals(2, 0), served(author.run(1, 1)), Failure("not_found")])
    assert (done.outcome.state, done.outcome.error, len(b.entries)) == (State.CUT, "not_found", 1)


def test_a_long_log_is_handed_over_in_pages(family: Family) -> None:
    """A page ends by itself, so that memory stays flat and the store works while bytes come."""
    author = written(family.author("a"), *[64] * (PAGE_ENTRIES // 64 + 2))
    a, b = store_of(family), MemoryLog(family.agent)
    for run in [author.raw[:1], *batched(author.raw[1:], 64)]:
        a.append_runs([verify_run(a.agent, run)], NOW_US)
    done = pull(b, a, bytes_target=16_384)
    pages = [e.entries for e in done.effects if isinstance(e, Append)]
    assert len(pages) == 2
    assert PAGE_ENTRIES <= pages[0] <= PAGE_ENTRIES + 512
    assert done.outcome.state == State.IN_SYNC


def test_a_limit_ends_the_stream_at_a_run_and_promises_more(family: Family) -> None:
    """Asking again goes on where it ended, until nothing more is promised."""
    a, b = small(family), MemoryLog(family.agent)
    rounds = 0
    while True:
        done = pull(b, a, limit=2)
        rounds += 1
        assert done.outcome.received <= 4
        if not done.outcome.more:
            break
        assert done.new > 0
    assert rounds > 1
    assert done.outcome.state == State.IN_SYNC


def test_a_fork_is_pulled_branch_by_branch(family: Family) -> None:
    """Both branches arrive, and the vectors agree with two tips."""
    stem = written(family.author("a"), 1)
    twin = stem.clone()
    stem.write("one")
    for text in ("two", "three", "four"):
        twin.write(text)
    a, b = store_of(family, stem), MemoryLog(family.agent)
    a.append_runs([verify_run(a.agent, twin.raw[2:])], NOW_US)
    done = pull(b, a, bytes_target=1)
    assert done.refused == []
    assert {stem.log: sorted([stem.tip, twin.tip])} == b.vector()
    assert done.outcome.state == State.IN_SYNC


def test_the_frames_of_a_stream_are_in_the_order_of_the_specification(family: Family) -> None:
    """Totals, tombstones, runs, vector, end."""
    whole = b"".join(stream_of(small(family), PullClient(family.agent, {}).request))
    order = [type(f) for f in frames_in(whole)]
    assert [Totals, Ahead] == order[:2]
    assert [ServerVector, End] == order[-2:]
    assert {Run} == set(order[2:-2])


@pytest.mark.parametrize("first", ["longer", "shorter"])
def test_a_fork_between_two_stores_reaches_both(family: Family, first: str) -> None:
    """Each holds one branch, of different lengths; whoever pulls first, both end with both."""
    stem = written(family.author("a"), 1)
    twin = stem.clone()
    for text in ("one", "two", "three"):
        stem.write(text)
    twin.write("other")
    longer, shorter = store_of(family, stem), store_of(family, twin)
    order = [(longer, shorter), (shorter, longer)]
    for store, source in (order if first == "longer" else order[::-1]) * 2:
        pull(store, source)
    assert longer.vector() == shorter.vector() == {stem.log: sorted([stem.tip, twin.tip])}
