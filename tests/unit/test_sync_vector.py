"""Vectors: one canonical form, digests that prove equality, and counts of what is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdt.entry import LogId
from crdt.log import Tip, Vector
from crdt.vector import rows_of, statements_digest, vector_digest, vector_of
from keys import codec
from keys.errors import BadEncoding
from keys.ids import DeviceId, EntryHash, Incarnation, hash256
from keys.limits import BRANCHES_MAX, LOGS_PER_AGENT_MAX, SEQ_MAX
from sync.plan import clamped, compare, entries_of, holds, lacking
from tests.support.author import seeded


def log(name: str) -> LogId:
    """A log of a name."""
    return LogId(DeviceId(seeded(name)), Incarnation(seeded(name, 8)))


def tip(seq: int, branch: str = "") -> Tip:
    """A tip at a seq."""
    return Tip(seq, EntryHash(seeded(f"{seq} {branch}")))


A, B = log("a"), log("b")
tips = st.builds(tip, st.integers(1, 6), st.sampled_from(["", "x", "y"]))
vectors = st.dictionaries(
    st.sampled_from([A, B, log("c")]), st.lists(tips, min_size=1, max_size=3, unique=True)
)


@given(vectors)
def test_rows_are_read_back_as_the_same_vector(vector: Vector) -> None:
    """``vector_of`` undoes ``rows_of``, whatever the order of logs and tips was."""
    assert vector_of(rows_of(vector)) == {k: sorted(v) for k, v in vector.items()}


@given(vectors, vectors)
def test_digests_are_equal_exactly_when_vectors_are(one: Vector, two: Vector) -> None:
    """R8: equality of digests is equality of what is held."""
    same = rows_of(one) == rows_of(two)
    assert (vector_digest(one) == vector_digest(two)) == same
    assert compare(one, two).equal == same


@given(vectors, vectors)
def test_one_lacks_what_the_other_has(one: Vector, two: Vector) -> None:
    """The comparison is the same from both sides, and every gap counts."""
    here, there = compare(one, two), compare(two, one)
    assert (here.we_lack, here.they_lack) == (there.they_lack, there.we_lack)
    assert all(gap.entries >= 1 for gap in here.we_lack + here.they_lack)


@given(vectors)
def test_nothing_lacks_anything_of_nothing(vector: Vector) -> None:
    """An empty vector lacks all of another, and the other nothing of it."""
    assert lacking(vector, {}) == ()
    assert {gap.tip for gap in lacking({}, vector)} == {t for tips in vector.values() for t in tips}


@given(st.integers(0, 50), st.integers(0, 50))
def test_S_E1_counts_of_unforked_logs_are_exact(mine: int, theirs: int) -> None:
    """Lag is the difference of heights, on the side that is behind."""
    gaps = lacking({A: [tip(mine)]} if mine else {}, {A: [tip(theirs)]} if theirs else {})
    assert entries_of(gaps) == max(0, theirs - mine)
    assert all(gap.exact for gap in gaps)


def test_two_branches_of_one_height_are_a_gap_on_both_sides() -> None:
    """A fork at the end is never taken for equality."""
    found = compare({A: [tip(5, "x")]}, {A: [tip(5, "y")]})
    assert (entries_of(found.we_lack), entries_of(found.they_lack)) == (1, 1)
    assert not found.we_lack[0].exact


def test_a_branch_that_is_not_here_counts_at_least_one() -> None:
    """Where branches part a vector does not say."""
    forked = {A: [tip(4, "x"), tip(9, "y")]}
    assert [(g.tip, g.entries, g.exact) for g in lacking({A: [tip(9, "y")]}, forked)] == [
        (tip(4, "x"), 1, False)
    ]
    assert [(g.tip, g.entries) for g in lacking({A: [tip(4, "x")]}, forked)] == [(tip(9, "y"), 1)]
    assert entries_of(lacking({}, forked)) == 10


def test_an_asker_that_is_ahead_is_taken_to_hold_all_there_is() -> None:
    """Of unforked logs only: where branches are, their tips have to be looked up."""
    own = {A: [tip(5)]}
    assert clamped({A: [tip(9)], B: [tip(1)]}, own) == {A: [tip(5)], B: [tip(1)]}
    for have in ({}, {A: [tip(3)]}, {A: [tip(5, "x")]}, {A: [tip(9), tip(4, "x")]}):
        assert clamped(have, own) == have
    forked = {A: [tip(5), tip(6, "x")]}
    assert clamped({A: [tip(9)]}, forked) == {A: [tip(9)]}


def test_X_40_an_announcement_of_what_is_held_asks_for_nothing() -> None:
    """The very tip, or an entry below the end of an unforked log."""
    held = {A: [tip(5)], B: [tip(3, "x"), tip(7, "y")]}
    assert holds(held, A, tip(5))
    assert holds(held, A, tip(2))
    assert holds(held, B, tip(3, "x"))
    assert not holds(held, A, tip(5, "other"))
    assert not holds(held, A, tip(6))
    assert not holds(held, B, tip(2, "z"))
    assert not holds({}, A, tip(1))


def test_the_digest_of_statements_is_of_their_set() -> None:
    """Order and repetition do not matter; one more does."""
    ids = [seeded("one"), seeded("two")]
    assert statements_digest(ids) == statements_digest([*reversed(ids), ids[0]])
    assert statements_digest(ids) != statements_digest(ids[:1])
    assert vector_digest({}) == statements_digest([]) == hash256(codec.encode([]))


def row(name: str, *seqs: int) -> list[object]:
    """A row of a vector."""
    return [seeded(name), seeded(name, 8), sorted([s, seeded(str(s))] for s in seqs)]


ROWS = sorted([row("a", 1), row("b", 1)])
WRONG: dict[str, object] = {
    "not a list": {},
    "unsorted": ROWS[::-1],
    "twice": [ROWS[0], ROWS[0]],
    "no tips": [row("a")],
    "short row": [ROWS[0][:2]],
    "short tip": [[*ROWS[0][:2], [[1]]]],
    "tips unsorted": [[*ROWS[0][:2], [[2, bytes(32)], [1, bytes(32)]]]],
    "tip twice": [[*ROWS[0][:2], [[1, bytes(32)], [1, bytes(32)]]]],
    "seq 0": [row("a", 0)],
    "seq -1": [row("a", -1)],
    "seq true": [[*ROWS[0][:2], [[True, bytes(32)]]]],
    "seq over": [row("a", SEQ_MAX + 1)],
    "seq 2^63": [row("a", 2**63)],
    "short hash": [[*ROWS[0][:2], [[1, bytes(31)]]]],
    "short device": [[bytes(31), bytes(8), [[1, bytes(32)]]]],
    "text": [["x" * 32, bytes(8), [[1, bytes(32)]]]],
    "branches": [row("a", *range(1, BRANCHES_MAX + 2))],
    "logs": sorted(row(str(i), 1) for i in range(LOGS_PER_AGENT_MAX + 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_X_37_rows_that_are_no_vector_are_refused(name: str) -> None:
    """Every bound and every form."""
    with pytest.raises(BadEncoding):
        vector_of(WRONG[name])


def test_rows_at_their_bounds_are_a_vector() -> None:
    """The most branches, the most logs and the highest seq."""
    assert len(vector_of([row("a", *range(1, BRANCHES_MAX + 1))])) == 1
    assert len(vector_of(sorted(row(str(i), 1) for i in range(LOGS_PER_AGENT_MAX)))) == (
        LOGS_PER_AGENT_MAX
    )
    assert vector_of([row("a", SEQ_MAX)])
