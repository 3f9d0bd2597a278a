"""Rounds: any one message may be lost, and what cannot progress stops with an error."""

import pytest

from crdt.log import Tip
from keys.ids import EntryHash
from sync.errors import StalledError
from sync.frames import Run, pack
from sync.outcome import MissingEntries, Outcome, Rounds, State
from sync.pull import Broken, PullClient
from sync.reasons import SENTENCES, Missing
from tests.support.author import Family
from tests.support.exchange import frames_in, receive, small, stream_of
from tests.support.memory_log import MemoryLog

FAMILY = Family("a", "b")
LOG = FAMILY.author("a").log
DIGESTS = (b"mine", b"theirs")


def lacking(*seqs: int, reason: Missing = Missing.WAITING, more: bool = False) -> Outcome:
    """A whole pull that left a branch missing up to each of these seqs."""
    missing = tuple(
        MissingEntries(LOG, Tip(seq, EntryHash(bytes(32))), seq, True, reason) for seq in seqs
    )
    state = State.INCOMPLETE if missing else State.IN_SYNC
    return Outcome(state, missing, sum(seqs), 0, 0, more, None)


def broken(code: str) -> Outcome:
    """A pull whose stream ended early."""
    return Outcome(State.CUT, (), 3, 0, 0, False, code)


def test_S_D2_any_lost_message_is_made_up_for() -> None:
    """Drop each single frame of a transfer in turn: the next rounds converge."""
    a = small(FAMILY)
    frames = frames_in(b"".join(stream_of(a, PullClient(a.agent, {}).request)))
    for dropped in range(len(frames)):
        b = MemoryLog(FAMILY.agent)
        rounds = Rounds()
        sent = [pack(f) for i, f in enumerate(frames) if i != dropped]
        first = receive(PullClient(b.agent, {}), b, sent)
        rounds.finished(first.outcome, first.new, (b.vector_digest(), a.vector_digest()))
        lost_a_run = isinstance(frames[dropped], Run)
        assert not lost_a_run or first.outcome.state == State.INCOMPLETE
        for _ in range(2):
            if not rounds.may_pull(b.vector_digest(), a.vector_digest()):
                break
            client = PullClient(b.agent, b.vector(), skip=rounds.skip)
            done = receive(client, b, stream_of(a, client.request))
            rounds.finished(done.outcome, done.new, (b.vector_digest(), a.vector_digest()))
        assert b.vector() == a.vector()


def test_S_D2_two_rounds_without_progress_raise_an_error_instead_of_a_third() -> None:
    """And until something changes no other round is begun."""
    rounds = Rounds()
    assert rounds.may_pull(*DIGESTS)
    rounds.finished(lacking(3), 0, DIGESTS)
    assert rounds.may_pull(*DIGESTS)
    with pytest.raises(StalledError) as caught:
        rounds.finished(lacking(3), 0, DIGESTS)
    assert caught.value.details["logs"] == [str(LOG)]
    assert caught.value.details["reasons"] == ["waiting"]
    assert not rounds.may_pull(*DIGESTS)
    assert rounds.may_pull(b"mine", b"newer")
    rounds.changed()
    assert rounds.may_pull(*DIGESTS)


def test_progress_of_either_kind_begins_the_count_anew() -> None:
    """Entries that came, another missing set, or nothing missing at all."""
    rounds = Rounds()
    for outcome, new in [
        (lacking(3), 0),
        (lacking(3), 1),
        (lacking(3), 0),
        (lacking(4), 0),
        (lacking(), 0),
        (lacking(4), 0),
    ]:
        rounds.finished(outcome, new, DIGESTS)


def test_a_stream_that_breaks_the_same_way_twice_is_stalled() -> None:
    """A cut is the network's and counts for nothing; a bad answer is the peer's."""
    rounds = Rounds()
    for _ in range(5):
        rounds.finished(broken("cut"), 0, DIGESTS)
    rounds.finished(broken("bad_stream"), 0, DIGESTS)
    with pytest.raises(StalledError) as caught:
        rounds.finished(broken("bad_stream"), 0, DIGESTS)
    assert caught.value.details["error"] == "bad_stream"


@pytest.mark.parametrize(
    "reason",
    [Missing.QUARANTINED, Missing.NOT_GRANTED, Missing.TOO_LARGE, Missing.NEEDS_UPGRADE],
)
def test_what_is_missing_for_good_is_not_asked_for_again(reason: Missing) -> None:
    """No error and no other round, but for something new; the log is left out with its reason."""
    rounds = Rounds()
    rounds.finished(lacking(3, reason=reason), 0, DIGESTS)
    assert not rounds.may_pull(*DIGESTS)
    assert rounds.may_pull(b"mine", b"newer")
    assert rounds.skip == {LOG: reason}
    client = PullClient(FAMILY.agent, {}, skip=rounds.skip)
    assert client.refused == {LOG: reason}
    assert client.request.skip == {LOG}


def test_more_to_come_is_asked_for_at_once() -> None:
    """A limit is no stall, and nothing is given up because of one bad log."""
    rounds = Rounds()
    rounds.finished(lacking(3, reason=Missing.QUARANTINED, more=True), 5, DIGESTS)
    assert rounds.may_pull(*DIGESTS)


def test_equal_digests_need_no_pull() -> None:
    """R8."""
    assert not Rounds().may_pull(b"same", b"same")


def test_every_reason_has_a_sentence() -> None:
    """A person reads a sentence, a program a code."""
    assert SENTENCES.keys() == set(Missing)
    assert len(set(SENTENCES.values())) == len(Missing)
    assert Broken("cut").code == "cut"
