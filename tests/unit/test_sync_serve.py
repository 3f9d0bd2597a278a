"""Serving: in order, from the request alone, and only for as long as the asker may read."""

from collections.abc import Callable, Iterator

import pytest

from crdt.chain import verify_run
from crdt.entry import decode_header
from crdt.log import Stretch, Vector, Want
from keys.authority import Authority
from keys.limits import KEY_BOXES_MAX, STATEMENTS_PAGE_BYTES, STATEMENTS_PAGE_MAX
from keys.statements import Statement
from sync.catchup import Absent, Found, PayloadClient, StatementsClient
from sync.errors import StalledError
from sync.frames import (
    End,
    Failure,
    PayloadFrame,
    Run,
    ServerVector,
    Totals,
    Unknown,
    pack,
)
from sync.messages import (
    KeyBox,
    PayloadsRequest,
    PullRequest,
    StatementsReply,
    StatementsRequest,
)
from sync.outcome import State
from sync.pull import Broken, PullClient
from sync.serve import PayloadServer, PullServer, answer_statements, proof_in
from tests.support.author import Family, device_key, founding, grant, owner_key, revoke, seeded
from tests.support.exchange import (
    NOW_US,
    always,
    frames_in,
    pull,
    receive,
    runs_in,
    small,
    store_of,
    stream_of,
    written,
)
from tests.support.memory_log import MemoryLog


@pytest.fixture
def family() -> Family:
    """An owner with three devices."""
    return Family("a", "b", "c")


def for_pieces(count: int) -> Callable[[], bool]:
    """May read for so many questions, then no more."""
    answers: Iterator[bool] = iter([True] * count)
    return lambda: next(answers, False)


def test_without_the_right_nothing_is_read_or_sent(family: Family) -> None:
    """Not even the totals; the store is not touched."""
    store = small(family)
    server = PullServer(store, PullRequest({}), for_pieces(0))
    assert server.next_piece() is None
    assert server.next_piece() is None
    assert store.reads == 0
    want = Want(family.author("a").log, 1, next(iter(store.entries)))
    assert PayloadServer(store, PayloadsRequest((want,)), for_pieces(0)).next_piece() is None


@pytest.mark.parametrize("pieces", range(1, 8))
def test_X_63_a_revocation_cuts_a_running_answer_within_one_run(
    family: Family, pieces: int
) -> None:
    """After the right is gone not one more run is sent, and the reason names no right."""
    store = small(family)
    sent = stream_of(store, PullRequest({}), for_pieces(pieces), 1)
    assert len(sent) == pieces + 1
    assert runs_in(b"".join(sent)) == max(0, pieces - 2)
    assert frames_in(sent[-1]) == [Failure("not_found")]

    client = PullClient(family.agent, {})
    done = receive(client, MemoryLog(family.agent), sent)
    assert (done.outcome.state, done.outcome.error) == (State.CUT, "not_found")
    assert done.new == client.tally.received


def test_S_E15_what_is_erased_during_a_pull_is_sent_as_a_stub(family: Family) -> None:
    """The session completes, without the words, and with the tombstone's id."""
    author = written(family.author("a"), 1, 1)
    store = store_of(family, author)
    server = PullServer(store, PullRequest({}), always, bytes_target=1)
    sent = [server.next_piece() or b"", server.next_piece() or b""]
    tombstone = seeded("tombstone")
    for found, entry in store.entries.items():
        if entry.header.record == author.records[1]:
            store.erased[author.records[1]] = type(found)(tombstone)
            store.entries[found] = type(entry)(entry.header, None, entry.signature)
    sent += list(iter(server.next_piece, None))

    stubs = [e for f in frames_in(b"".join(sent)) if isinstance(f, Run) for e in f.entries][2:]
    assert [(e.raw.payload, e.tombstone) for e in stubs] == [(None, tombstone)]
    other = MemoryLog(family.agent)
    client = PullClient(family.agent, {})
    assert receive(client, other, sent).outcome.state == State.IN_SYNC
    assert client.tally.erased == 1


def test_logs_that_were_refused_before_are_left_out(family: Family) -> None:
    """``skip`` is honoured, in the totals too."""
    one, two = written(family.author("a"), 1), written(family.author("b"), 3)
    request = PullRequest({}, skip=frozenset({two.log}))
    frames = frames_in(b"".join(stream_of(store_of(family, one, two), request)))
    assert frames[0] == Totals(2, 0)
    logs = {
        decode_header(e.raw.header).log for f in frames if isinstance(f, Run) for e in f.entries
    }
    assert logs == {one.log}


def test_a_limit_is_kept_to_the_run(family: Family) -> None:
    """The stream ends with the first run that reaches it, and says that there is more."""
    store = store_of(family, written(family.author("a"), 1, 1, 1))
    frames = frames_in(b"".join(stream_of(store, PullRequest({}, limit=2), bytes_target=1)))
    assert runs_in(b"".join(map(pack, frames))) == 2
    assert frames[-1] == End(True)
    whole = frames_in(b"".join(stream_of(store, PullRequest({}, limit=4), bytes_target=1)))
    assert whole[-1] == End(False)


def test_an_asker_that_is_ahead_is_sent_nothing_of_what_it_has(family: Family) -> None:
    """A device that wrote while it was away does not get its own log back."""
    author = written(family.author("a"), 1, 1)
    author.forget(author.records[0])
    b = store_of(family, author)
    author.write("later")
    a = store_of(family, author)
    server = PullServer(Everything(b), PullRequest(a.vector()), always)
    frames = frames_in(b"".join(iter(server.next_piece, None)))
    assert frames == [Totals(0, 0), ServerVector(b.vector()), End(False)]


class Everything(MemoryLog):
    """A store that takes an unknown tip for somebody who has nothing of that log."""

    def __init__(self, store: MemoryLog) -> None:
        super().__init__(store.agent)
        self.entries = store.entries

    def plan(self, have: Vector) -> list[Stretch]:
        """All of a log with an unknown tip."""
        known = {k: tips for k, tips in have.items() if all(t.hash in self.entries for t in tips)}
        return super().plan(known)


def missing(family: Family, store: MemoryLog, **changes: object) -> StatementsReply | None:
    """Ask for all statements."""
    given: dict[str, object] = {"may_read": True, "removals": frozenset(), "boxes": ()}
    given |= changes
    return answer_statements(store, StatementsRequest(()), **given)  # type: ignore[arg-type]


def test_a_reader_gets_all_statements_past_first_and_the_keys(family: Family) -> None:
    """Each statement comes after what it builds on."""
    store = store_of(family)
    reply = missing(family, store, boxes=(KeyBox(bytes(32), b"box"),))
    assert reply is not None
    assert [s for s, _ in reply.statements] == [s.data for s in family.statements]
    assert (len(reply.keys), reply.more) == (1, False)


def test_a_removed_subject_gets_its_removal_and_nothing_else(family: Family) -> None:
    """R25; and without one, nothing at all."""
    reader = device_key("reader")
    given = grant(family.owner, family.agent, reader, ["read"], family.heads)
    family.statements.append(given)
    taken = revoke(family.owner, family.agent, reader, ["read"], family.heads)
    family.statements.append(taken)
    store = store_of(family)
    held = Authority(family.agent, family.statements).holds_device(reader.public, "read")
    assert (held.held, held.statement) == (False, taken.id)

    reply = missing(
        family,
        store,
        may_read=False,
        removals=frozenset({bytes(taken.id)}),
        boxes=(KeyBox(bytes(32), b"box"),),
    )
    assert reply == StatementsReply(((taken.data, taken.signature),), (), False)
    assert missing(family, store, may_read=False) is None


def test_statements_come_in_pages_of_bounded_size(family: Family) -> None:
    """Asking until nothing more is promised brings all of them."""

    class Many(MemoryLog):
        def statements_missing(self, have: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
            return [(b"%d" % i, bytes(64)) for i in range(STATEMENTS_PAGE_MAX + 1)]

    class Large(MemoryLog):
        def statements_missing(self, have: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
            return [(bytes(STATEMENTS_PAGE_BYTES // 4), bytes(64))] * 9

    boxes = [KeyBox(seeded(str(i)), b"b") for i in range(KEY_BOXES_MAX + 1)]
    many = missing(family, Many(family.agent), boxes=boxes)
    assert many is not None
    assert (len(many.statements), many.more, many.keys) == (STATEMENTS_PAGE_MAX, True, ())
    large = missing(family, Large(family.agent), boxes=boxes)
    assert large is not None
    assert (len(large.statements), large.more) == (4, True)
    last = missing(family, store_of(family), boxes=boxes)
    assert last is not None
    assert len(last.keys) == KEY_BOXES_MAX


def test_only_statements_of_the_agent_that_verify_are_taken(family: Family) -> None:
    """Damaged ones and those of another agent are named by id, and not asked for again."""
    other = founding(owner_key("mallory"))
    good = family.statements
    damaged = (good[1].data, bytes(64))
    alien = grant(family.owner, type(family.agent)(bytes(other.id)), device_key("x"), ["read"], [])
    reply = StatementsReply(
        (*_signed(good[:1]), damaged, *_signed([other, alien]), *_signed(good[2:])), (), False
    )
    client = StatementsClient(family.agent, [])
    page = client.take(reply)
    assert page.statements == (good[0], *good[2:])
    assert page.refused == (good[1].id, other.id, alien.id)
    assert not client.wants_more
    assert len(client.request().have) == len(good) + 2
    assert client.take(reply).statements == ()


def test_a_promise_of_more_that_brings_nothing_is_an_error(family: Family) -> None:
    """S-D2: no endless asking."""
    client = StatementsClient(family.agent, [])
    reply = StatementsReply(_signed(family.statements), (), True)
    client.take(reply)
    with pytest.raises(StalledError):
        client.take(reply)


def test_a_proof_is_verified_and_belongs_to_the_agent(family: Family) -> None:
    """What does not is dropped before anything is looked up."""
    other = founding(owner_key("mallory"))
    given = grant(family.owner, family.agent, device_key("x"), ["read"], family.heads)
    request = StatementsRequest((), (*_signed([other, given]), (given.data, bytes(64))))
    assert proof_in(request, family.agent) == [given]


def _signed(statements: list[Statement]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((s.data, s.signature) for s in statements)


def with_wants(family: Family) -> tuple[MemoryLog, MemoryLog, list[Want]]:
    """A store with everything, one that lacks two payloads, and what that one wants."""
    author = written(family.author("a"), 1, 1, 1)
    a, b = store_of(family, author), MemoryLog(family.agent)
    pull(b, a)
    for found, entry in list(b.entries.items()):
        if entry.header.record in author.records[1:]:
            b.entries[found] = type(entry)(entry.header, None, entry.signature)
    return a, b, b.wants(10)


def payloads(source: MemoryLog, client: PayloadClient) -> list[object]:
    """Ask for payloads; the effects."""
    request = PayloadsRequest.decode(client.request.encode())
    server = PayloadServer(source, request, always)
    effects: list[object] = []
    for piece in iter(server.next_piece, None):
        effects += client.feed(piece)
    return effects + list(client.closed())


def test_wanted_payloads_are_fetched_one_hop_each(family: Family) -> None:
    """R32: what is nowhere here is asked for, and taken when it matches."""
    a, b, wants = with_wants(family)
    reads = a.reads
    effects = payloads(a, PayloadClient(wants))
    assert a.reads - reads == len(wants) == 2
    assert [type(e) for e in effects] == [Found, Absent]
    for effect in effects:
        if isinstance(effect, Found):
            assert b.add_payloads(effect.payloads, NOW_US) == 2
    assert b.wants(10) == []


def test_payloads_that_are_nowhere_stay_wanted(family: Family) -> None:
    """The peer answers with what it has, and the rest is named."""
    a, b, wants = with_wants(family)
    a.entries[wants[0].hash] = b.entries[wants[0].hash]
    effects = payloads(a, PayloadClient(wants))
    assert effects[-1] == Absent((wants[0],))


def test_only_wanted_payloads_are_taken(family: Family) -> None:
    """One that was not asked for, or comes twice, breaks the stream; what came before is kept."""
    _, _, wants = with_wants(family)
    first = pack(PayloadFrame(wants[0], b"x"))
    for bad in (first, pack(PayloadFrame(wants[1], b"x")), pack(Totals(0, 0)), b"\xff" * 4):
        client = PayloadClient(wants[:1])
        effects = client.feed(first + bad) + client.closed()
        assert [type(e) for e in effects] == [Found, Broken]
        assert client.over
        assert client.feed(first) == []


def test_a_want_list_survives_unknown_frames_and_a_refusal(family: Family) -> None:
    """Frames of later kinds are passed over; an error ends the stream with its code."""
    _, _, wants = with_wants(family)
    client = PayloadClient(wants)
    assert client.feed(pack(Unknown("later"))) == []
    assert client.feed(pack(Failure("not_found"))) == [Broken("not_found")]
    assert PayloadClient(wants).closed() == [Broken("cut")]


def test_a_relay_ends_runs_at_signatures_it_holds(family: Family) -> None:
    """R4: inner commits of a foreign run have no signature here, and no run ends there."""
    author = written(family.author("a"), 1, 1, 1)
    a, b = MemoryLog(family.agent), MemoryLog(family.agent)
    a.append_runs([verify_run(family.agent, author.raw)], NOW_US)
    pull(b, a)
    ends = [
        f.entries[-1].raw
        for f in frames_in(b"".join(stream_of(b, PullRequest({}), bytes_target=1)))
        if isinstance(f, Run)
    ]
    assert [len(e.signature) for e in ends] == [64, 64]
