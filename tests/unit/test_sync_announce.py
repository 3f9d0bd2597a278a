"""Announcements: passed on, ignored by those who have it, bounded for those who are slow."""

import pytest

from crdt.entry import LogId
from crdt.log import Tip
from keys.errors import BadInput
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation
from keys.limits import UNKNOWN_FRAMES_MAX, WATCH_FRAME_BYTES_MAX
from sync.announce import News, Outbox, Turns, Watcher, beat, is_news, news
from sync.frames import Announce, End, StatementsChanged, Unknown, pack
from tests.support.author import Family, seeded
from tests.support.exchange import pull, small
from tests.support.memory_log import MemoryLog

AGENT, OTHER = AgentId(seeded("agent")), AgentId(seeded("other"))


def log(name: str) -> LogId:
    """A log of a name."""
    return LogId(DeviceId(seeded(name)), Incarnation(bytes(8)))


def tip(seq: int) -> Tip:
    """A tip at a seq."""
    return Tip(seq, EntryHash(seeded(str(seq))))


def announce(name: str, seq: int, agent: AgentId = AGENT) -> Announce:
    """An announcement."""
    return Announce(agent, log(name), tip(seq))


def read(data: bytes) -> list[News]:
    """What a watcher makes of bytes."""
    return Watcher().feed(data)


def test_S_E6_what_a_pull_brought_is_announced_further() -> None:
    """News is the difference of two vectors, whoever wrote it."""
    family = Family("a", "b")
    a, b = small(family), MemoryLog(family.agent)
    before = b.vector()
    pull(b, a)
    told = news(family.agent, before, b.vector())
    assert {n.log for n in told if isinstance(n, Announce)} == a.vector().keys()
    assert all(is_news(n, before, b"") for n in told)
    assert not any(is_news(n, a.vector(), b"") for n in told)
    assert news(family.agent, b.vector(), b.vector()) == []


def test_who_has_it_does_nothing() -> None:
    """R8, X-40: the held tip and older ones are no news, another branch is."""
    held = {log("a"): [tip(5)]}
    assert not is_news(announce("a", 5), held, b"")
    assert not is_news(announce("a", 3), held, b"")
    assert is_news(announce("a", 6), held, b"")
    assert is_news(announce("b", 1), held, b"")
    assert is_news(Announce(AGENT, log("a"), Tip(5, EntryHash(bytes(32)))), held, b"")
    assert not is_news(StatementsChanged(AGENT, b"x" * 32), held, b"x" * 32)
    assert is_news(StatementsChanged(AGENT, b"x" * 32), held, b"y" * 32)


def test_of_one_log_only_the_newest_waits() -> None:
    """A slow watcher costs one frame for each log and each set of statements."""
    box = Outbox()
    for seq in range(1, 50):
        box.put(announce("a", seq))
        box.put(StatementsChanged(AGENT, seeded(str(seq))))
    assert len(box) == 2
    assert read(box.take(lambda _: True)) == [
        announce("a", 49),
        StatementsChanged(AGENT, seeded("49")),
    ]
    assert box.take(lambda _: True) == b""


def test_a_watcher_that_is_too_far_behind_is_cut_off() -> None:
    """At n it is not, at n + 1 it is; a newer frame about the same log still takes its place."""
    box = Outbox(frames_max=2)
    box.put(announce("a", 1))
    box.put(announce("b", 1))
    box.put(announce("a", 2))
    assert (box.overrun, len(box)) == (False, 2)
    box.put(announce("c", 1))
    assert (box.overrun, len(box)) == (True, 2)
    assert len(box) == 2


def test_X_63_what_may_not_be_read_any_more_is_not_announced() -> None:
    """The right is asked for when the frame leaves, not when it was queued."""
    box = Outbox()
    box.put(announce("a", 1))
    box.put(announce("a", 1, OTHER))
    assert read(box.take(lambda agent: agent == OTHER)) == [announce("a", 1, OTHER)]


def test_a_watch_is_read_in_any_chunks() -> None:
    """Byte by byte, with beats and later kinds between."""
    sent = beat() + pack(announce("a", 1)) + pack(Unknown("later")) + pack(announce("b", 2))
    watcher = Watcher()
    found = [n for i in range(len(sent)) for n in watcher.feed(sent[i : i + 1])]
    assert found == [announce("a", 1), announce("b", 2)]


@pytest.mark.parametrize(
    "sent",
    [
        pack(End(True)),
        pack(Unknown("x")) * (UNKNOWN_FRAMES_MAX + 1),
        (WATCH_FRAME_BYTES_MAX + 1).to_bytes(4, "big"),
        b"\0\0\0\1\xc1",
    ],
)
def test_what_is_no_announcement_ends_the_watch(sent: bytes) -> None:
    """Frames of a pull, too many unknown ones, too large a frame, no frame."""
    with pytest.raises(BadInput):
        read(sent)


def test_unknown_frames_are_counted_between_two_beats() -> None:
    """An endless watch may have any number of them over time."""
    watcher = Watcher()
    for _ in range(3):
        assert watcher.feed(pack(Unknown("x")) * UNKNOWN_FRAMES_MAX + beat()) == []


def test_of_one_agent_one_pull_runs_at_a_time() -> None:
    """What is announced meanwhile is pulled afterwards, once."""
    turns = Turns()
    turns.want(AGENT)
    turns.want(OTHER)
    turns.want(AGENT)
    assert turns.begin() == AGENT
    turns.want(AGENT)
    turns.want(AGENT)
    assert turns.begin() == OTHER
    assert turns.begin() is None
    turns.done(AGENT)
    turns.done(OTHER)
    assert turns.begin() == AGENT
    turns.done(AGENT)
    assert turns.begin() is None
