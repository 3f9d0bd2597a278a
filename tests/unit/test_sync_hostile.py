"""What a faulty or hostile peer sends: refused, named by a reason, and the rest flows."""

import pytest

from crdt.chain import RawEntry
from crdt.entry import LogId
from crdt.log import Tip
from keys import codec
from keys.authority import Authority
from keys.errors import BadEncoding
from keys.ids import DeviceId, EntryHash, Incarnation
from keys.limits import LOGS_PER_AGENT_MAX, UNKNOWN_FRAMES_MAX
from sync.frames import (
    Ahead,
    Beat,
    End,
    Frame,
    Run,
    ServerVector,
    Totals,
    Unknown,
    pack,
)
from sync.messages import PullRequest
from sync.outcome import State
from sync.pull import Append, Broken, Expect, Phase, PullClient, Refuse, Whole, admission
from sync.reasons import Missing
from tests.support.author import Author, Family, device_key, grant, seeded
from tests.support.exchange import (
    answer,
    hash_at,
    keep,
    pull,
    receive,
    served,
    store_of,
    stream_of,
    written,
)
from tests.support.memory_log import MemoryLog


@pytest.fixture
def family() -> Family:
    """An owner with three devices."""
    return Family("a", "b", "c")


def test_every_flipped_byte_of_a_stream_leaves_only_true_entries(family: Family) -> None:
    """Damage anywhere costs at most entries, never truth: what is held, its author wrote."""
    a = store_of(family, written(family.author("a"), 1))
    whole = b"".join(stream_of(a, PullClient(a.agent, {}).request))
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
        b = MemoryLog(family.agent)
        done = receive(PullClient(b.agent, {}), b, [damaged])
        assert b.entries.keys() <= a.entries.keys()
        for found, entry in b.entries.items():
            assert entry.payload in (a.entries[found].payload, None)
        assert done.outcome.state != State.IN_SYNC or b.vector() == a.vector()


def test_X_32_any_flipped_bit_of_an_entry_is_refused(family: Family) -> None:
    """Every single bit of a header, a payload and a signature."""
    author = family.author("a")
    author.open()
    have = {author.log: [author.tip]}
    author.write("the marker")
    entry = author.raw[1]
    parts = {"header": entry.header, "payload": entry.payload or b"", "signature": entry.signature}
    flips = 0
    for name, value in parts.items():
        for bit in range(len(value) * 8):
            flipped = bytearray(value)
            flipped[bit // 8] ^= 1 << bit % 8
            bad = RawEntry(**{**parts, name: bytes(flipped)})
            client = PullClient(family.agent, have)
            effects = client.feed(pack(Totals(1, 0)) + pack(served([bad]))) + client.flush()
            assert [type(e) for e in effects] == [Expect, Refuse]
            flips += 1
    assert flips == 8 * sum(map(len, parts.values()))

    client = PullClient(family.agent, have)
    effects = client.feed(pack(Totals(1, 0)) + pack(served([entry]))) + client.flush()
    assert [type(e) for e in effects] == [Expect, Append]


def test_one_bad_run_does_not_stop_the_other_logs(family: Family) -> None:
    """The log of a bad run is named with its seq and passed over; the others flow."""
    good, bad = written(family.author("a"), 1, 1), written(family.author("b"), 1, 1)
    a, b = store_of(family, good, bad), MemoryLog(family.agent)
    broken = RawEntry(bad.raw[1].header, bad.raw[1].payload, bytes(64))
    frames: list[Frame] = [
        Totals(6, 0),
        served(bad.run(1, 1)),
        served([broken]),
        served(bad.run(3, 3)),
        served(good.run(1, 3)),
        ServerVector(a.vector()),
        End(False),
    ]
    done = answer(b, frames)
    assert {good.log: [good.tip], bad.log: [Tip(1, hash_at(bad, 1))]} == b.vector()
    assert [(Missing.QUARANTINED, bad.log, 2, "bad_signature")] == [
        (r.reason, r.log, r.seq, r.code) for r in done.refused
    ]
    assert [(bad.log, 2, Missing.QUARANTINED)] == [
        (m.log, m.entries, m.reason) for m in done.outcome.missing
    ]


def test_what_the_store_refuses_is_reported_and_the_rest_is_kept(family: Family) -> None:
    """A run that hangs together but does not follow what is held costs its own log only."""
    good, forged = written(family.author("a"), 1), written(family.author("b"), 1, 1)
    other = written(family.author("b"), 2)
    other_tail = other.clone()
    other_tail.write("elsewhere")
    b = store_of(family)
    keep(b, forged)
    a = store_of(family, good)
    frames: list[Frame] = [
        Totals(3, 0),
        served(other_tail.raw[3:]),
        served(good.run(1, 2)),
        ServerVector(a.vector()),
        End(False),
    ]
    done = answer(b, frames)
    assert good.log in b.vector()
    assert [(Missing.QUARANTINED, forged.log, 4, "bad_chain")] == [
        (r.reason, r.log, r.seq, r.code) for r in done.refused
    ]


def test_X_36_what_comes_after_a_gap_is_not_kept(family: Family) -> None:
    """Runs past a gap are dropped with a reason and come again with the next pull."""
    author = written(family.author("a"), *[1] * 20)
    a, b = store_of(family, author), MemoryLog(family.agent)
    frames: list[Frame] = [Totals(21, 0), served(author.run(1, 2))]
    frames += [served(author.run(i, i)) for i in range(4, 21)]
    client = PullClient(b.agent, {})
    done = receive(client, b, [pack(f) for f in [*frames, ServerVector(a.vector()), End(False)]])
    assert len(b.entries) == 2
    assert [(Missing.WAITING, author.log, 4)] == [(r.reason, r.log, r.seq) for r in done.refused]
    assert client.tally.passed_over == 16
    assert pull(b, a).outcome.state == State.IN_SYNC


def test_X_40_an_old_run_sent_again_changes_nothing(family: Family) -> None:
    """Known entries are counted as known, and no view moves back."""
    author = written(family.author("a"), 1, 1)
    b = store_of(family, author)
    before = b.vector()
    done = answer(
        b,
        [
            Totals(2, 0),
            served(author.run(1, 2)),
            ServerVector({author.log: [Tip(2, hash_at(author, 2))]}),
            End(False),
        ],
    )
    assert (done.new, done.known) == (0, 2)
    assert before == b.vector()
    assert (
        done.outcome.state,
        done.outcome.we_lack,
        done.outcome.they_lack,
    ) == (State.INCOMPLETE, 0, 1)


def test_X_60_entries_of_a_reader_are_refused_and_not_relayed(family: Family) -> None:
    """A device with ``read`` only cannot put a log into anybody's store."""
    reader = device_key("reader")
    only = grant(family.owner, family.agent, reader, ["read"], family.heads)
    family.statements.append(only)
    authority = Authority(family.agent, family.statements)
    intruder = written(Author(family.agent, reader, family.heads), 2)
    honest = written(family.author("a"), 1)
    a, b, c = store_of(family, intruder, honest), store_of(family), store_of(family)

    done = pull(b, a, admits=admission(authority))
    assert [(Missing.NOT_GRANTED, intruder.log)] == [(r.reason, r.log) for r in done.refused]
    assert [m.reason for m in done.outcome.missing] == [Missing.NOT_GRANTED]
    assert {honest.log} == b.vector().keys()
    pull(c, b)
    assert {honest.log} == c.vector().keys()


def test_a_log_whose_statements_are_not_here_yet_waits(family: Family) -> None:
    """An opening that cites an unknown statement is not taken for a stranger's."""
    authority = Authority(family.agent, family.statements[:1])
    a = store_of(family, written(family.author("a"), 1))
    done = pull(MemoryLog(family.agent), a, admits=admission(authority))
    assert [r.reason for r in done.refused] == [Missing.WAITING]


def test_tombstones_of_strangers_withhold_nothing(family: Family) -> None:
    """A tombstone ahead of its chain counts only if its log is admitted."""
    reader = device_key("reader")
    intruder = written(Author(family.agent, reader, family.heads), 1)
    intruder.forget(intruder.records[0])
    b = store_of(family)
    admits = admission(Authority(family.agent, family.statements))
    done = pull(b, store_of(family, intruder), admits=admits)
    assert {Missing.NOT_GRANTED} == {r.reason for r in done.refused}
    assert b.ahead == {}


def test_a_tombstone_with_the_opening_of_another_log_is_refused(family: Family) -> None:
    """The pair has to be of one log, and of the right kinds."""
    one, two = written(family.author("a"), 1), written(family.author("b"), 1)
    one.forget(one.records[0])
    for tombstone, opening in [
        (one.raw[2], two.raw[0]),
        (one.raw[2], one.raw[2]),
        (one.raw[0], one.raw[0]),
        (one.raw[1], one.raw[0]),
    ]:
        done = answer(MemoryLog(family.agent), [Totals(0, 1), Ahead(tombstone, opening)])
        assert [r.reason for r in done.refused] == [Missing.QUARANTINED]


ORDERS: list[list[Frame]] = [
    [Run(())],
    [ServerVector({})],
    [End(False)],
    [Totals(0, 0), Totals(0, 0)],
    [Totals(0, 0), End(False)],
    [Totals(0, 0), ServerVector({}), ServerVector({})],
    [Totals(0, 0), ServerVector({}), Totals(0, 0)],
    [Totals(0, 0), Beat()],
]


@pytest.mark.parametrize("frames", ORDERS, ids=range(len(ORDERS)))
def test_frames_out_of_order_break_the_stream(family: Family, frames: list[Frame]) -> None:
    """Each phase has the frames that may follow, and no others."""
    client = PullClient(family.agent, {})
    done = receive(client, MemoryLog(family.agent), [pack(f) for f in frames])
    assert done.outcome.state == State.CUT
    assert isinstance(done.effects[-1], Broken)
    assert done.outcome.error in ("bad_stream", "bad_encoding")
    assert client.phase is Phase.OVER


def test_runs_and_tombstones_do_not_come_after_their_phase(family: Family) -> None:
    """A tombstone after a run, a run after the vector: neither is taken."""
    author = written(family.author("a"), 1)
    author.forget(author.records[0])
    run, ahead = served(author.run(1, 1)), Ahead(author.raw[2], author.raw[0])
    late: list[list[Frame]] = [
        [Totals(1, 1), run, ahead],
        [Totals(1, 1), ServerVector({}), run],
    ]
    for frames in late:
        done = answer(MemoryLog(family.agent), frames)
        assert done.outcome.error == "bad_stream"


def test_more_than_was_announced_breaks_the_stream(family: Family) -> None:
    """Entries, tombstones and frames of unknown kinds are counted at n and n + 1."""
    author = written(family.author("a"), 1)
    author.forget(author.records[0])
    ahead = Ahead(author.raw[2], author.raw[0])
    runs = [served(author.run(i, i)) for i in (1, 2, 3)]
    cases: list[tuple[list[Frame], list[Frame]]] = [
        ([Totals(3, 0), *runs], [Totals(2, 0), *runs]),
        ([Totals(0, 1), ahead], [Totals(0, 0), ahead]),
        ([Unknown("x")] * UNKNOWN_FRAMES_MAX, [Unknown("x")] * (UNKNOWN_FRAMES_MAX + 1)),
    ]
    for fits, over in cases:
        assert answer(MemoryLog(family.agent), fits).outcome.error == "cut"
        assert answer(MemoryLog(family.agent), over).outcome.error == "bad_stream"


def test_what_follows_the_end_is_not_read(family: Family) -> None:
    """An ended stream takes nothing more, however much comes."""
    client = PullClient(family.agent, {})
    frames: list[Frame] = [Totals(0, 0), ServerVector({}), End(False)]
    whole = b"".join(map(pack, frames))
    assert [Expect(0, 0), Whole({}, False)] == client.feed(whole + b"\xff" * 100)
    assert [] == client.feed(b"\xff" * 100) == client.closed()


def test_one_log_more_than_an_agent_may_have_is_refused(family: Family) -> None:
    """At the bound the existing logs still grow; a new one is too large."""
    filler = {
        LogId(DeviceId(seeded(f"d{i}")), Incarnation(bytes(8))): [Tip(1, EntryHash(bytes(32)))]
        for i in range(LOGS_PER_AGENT_MAX)
    }
    author = written(family.author("a"), 1)
    for have, reasons in [(LOGS_PER_AGENT_MAX - 1, []), (LOGS_PER_AGENT_MAX, [Missing.TOO_LARGE])]:
        client = PullClient(family.agent, dict(list(filler.items())[:have]))
        effects = client.feed(pack(Totals(2, 0)) + pack(served(author.run(1, 2))))
        assert reasons == [e.reason for e in effects[1:]]  # type: ignore[union-attr]


def test_a_header_of_a_later_version_says_whose_upgrade_is_needed(family: Family) -> None:
    """Not quarantined as damage, but named for what it is."""
    author = written(family.author("a"), 1)
    value = codec.decode_small(author.raw[1].header)
    later = RawEntry(codec.encode([2, *value[1:]]), author.raw[1].payload, author.raw[1].signature)
    done = answer(
        MemoryLog(family.agent), [Totals(2, 0), served(author.run(1, 1)), served([later])]
    )
    assert [r.reason for r in done.refused] == [Missing.NEEDS_UPGRADE]


@pytest.mark.parametrize("seq", [0, -1, 2**40 + 1, 2**63, 2**64 - 1])
def test_X_37_an_impossible_seq_is_refused_before_anything_is_built(
    family: Family, seq: int
) -> None:
    """In a header as in a vector."""
    author = written(family.author("a"), 1)
    value = codec.decode_small(author.raw[1].header)
    value[4] = seq
    bad = RawEntry(codec.encode(value), author.raw[1].payload, author.raw[1].signature)
    done = answer(MemoryLog(family.agent), [Totals(2, 0), served(author.run(1, 1)), served([bad])])
    assert [r.reason for r in done.refused] == [Missing.QUARANTINED]

    row = [bytes(author.log.device), bytes(author.log.incarnation), [[seq, bytes(32)]]]
    with pytest.raises(BadEncoding):
        PullRequest.decode(codec.encode({"have": [row], "limit": 1, "skip": []}))
