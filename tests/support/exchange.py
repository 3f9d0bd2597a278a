"""Two log stores that pull from each other through bytes in memory, with a hand on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crdt.chain import RawEntry, verify_run
from crdt.entry import decode_header
from crdt.log import LogStore, ServedEntry
from keys.errors import BadInput
from keys.ids import EntryHash
from sync.catchup import StatementsClient
from sync.frames import Frame, FrameReader, Run, pack, parse
from sync.messages import PullRequest, StatementsReply, StatementsRequest
from sync.outcome import Outcome, append, outcome_of
from sync.pull import Admits, Append, Effect, PullClient, Refuse, Withhold, anybody
from sync.serve import PullServer, answer_statements
from tests.support.author import Author, Family
from tests.support.memory_log import MemoryLog

NOW_US = 1_700_000_000_000_000


def always() -> bool:
    """May read."""
    return True


def stream_of(
    source: LogStore,
    request: PullRequest,
    may_read: Callable[[], bool] = always,
    bytes_target: int = 256,
) -> list[bytes]:
    """The pieces that a server sends."""
    server = PullServer(
        source, PullRequest.decode(request.encode()), may_read, bytes_target=bytes_target
    )
    return list(iter(server.next_piece, None))


def frames_in(data: bytes) -> list[Frame]:
    """The whole frames in a stream."""
    reader = FrameReader()
    reader.feed(data)
    return [parse(body) for body in iter(reader.next_body, None)]


def runs_in(data: bytes) -> int:
    """How many whole runs a stream holds."""
    return sum(isinstance(frame, Run) for frame in frames_in(data))


@dataclass
class Pulled:
    """What a pull did."""

    outcome: Outcome
    new: int = 0
    known: int = 0
    effects: list[Effect] = field(default_factory=list)

    @property
    def refused(self) -> list[Refuse]:
        """What was not taken."""
        return [e for e in self.effects if isinstance(e, Refuse)]


def carry_out(client: PullClient, store: LogStore, effects: Iterable[Effect], done: Pulled) -> None:
    """What a node does with effects."""
    for effect in effects:
        done.effects.append(effect)
        if isinstance(effect, Withhold):
            store.add_ahead(effect.tombstones)
        elif isinstance(effect, Append):
            applied = append(store, effect.runs, NOW_US)
            done.new += applied.new
            done.known += applied.known
            for refused in applied.refused:
                done.effects.append(refused)
                assert refused.log is not None
                client.refuse(refused.log, refused.reason)


def receive(client: PullClient, store: LogStore, chunks: Iterable[bytes]) -> Pulled:
    """Feed a client, carry its effects out, close."""
    done = Pulled(outcome_of(client, {}))
    for chunk in chunks:
        carry_out(client, store, client.feed(chunk), done)
    carry_out(client, store, client.closed(), done)
    done.outcome = outcome_of(client, store.vector())
    return done


def pull(
    store: LogStore,
    source: LogStore,
    *,
    admits: Admits = anybody,
    limit: int = 1_000_000,
    bytes_target: int = 256,
) -> Pulled:
    """One whole pull."""
    client = PullClient(store.agent, store.vector(), admits=admits, limit=limit)
    return receive(client, store, stream_of(source, client.request, bytes_target=bytes_target))


def pull_statements(store: LogStore, source: LogStore) -> int:
    """All statements of ``source``; how many were new."""
    client = StatementsClient(store.agent, store.statement_ids())
    new = 0
    while client.wants_more:
        request = StatementsRequest.decode(client.request().encode())
        reply = answer_statements(source, request, may_read=True, removals=frozenset(), boxes=())
        assert reply is not None
        new += store.add_statements(client.take(StatementsReply.decode(reply.encode())).statements)
    return new


def raises_bad_input_only(call: Callable[[], object]) -> bool:
    """Whether a call is refused; anything it raises but ``BadInput`` goes through."""
    try:
        call()
    except BadInput:
        return True
    return False


def store_of(family: Family, *authors: Author) -> MemoryLog:
    """A store that holds these logs and all statements."""
    store = MemoryLog(family.agent)
    store.add_statements(family.statements)
    for author in authors:
        keep(store, author)
    return store


def keep(store: MemoryLog, author: Author) -> None:
    """Append what an author wrote since the store last looked, commit by commit."""
    held = max((t.seq for t in store.vector().get(author.log, [])), default=0)
    commit: list[RawEntry] = []
    for entry in author.raw[held:]:
        commit.append(entry)
        if decode_header(entry.header).commit_left == 0:
            store.append_runs([verify_run(author.agent, commit)], NOW_US)
            commit = []


def written(author: Author, *commits: int) -> Author:
    """A log with an opening and one commit for each number of records."""
    author.open()
    for i, size in enumerate(commits):
        author.write(*(f"{author.log} {i} {j}" for j in range(size)))
    return author


def small(family: Family) -> MemoryLog:
    """A store with two logs, several runs and a tombstone."""
    one, two = written(family.author("a"), 1, 2, 1), written(family.author("b"), 3)
    one.forget(one.records[0])
    return store_of(family, one, two)


def tiny(family: Family) -> MemoryLog:
    """A store with two logs of two runs each and a tombstone, for exhaustive tests."""
    one, two = written(family.author("a")), written(family.author("b"), 1)
    one.forget(two.records[0])
    return store_of(family, one, two)


def batched(entries: list[RawEntry], size: int) -> list[list[RawEntry]]:
    """The entries in pieces of a size."""
    return [entries[i : i + size] for i in range(0, len(entries), size)]


def served(entries: list[RawEntry]) -> Run:
    """A run as a server would send it."""
    return Run(tuple(ServedEntry(entry, b"") for entry in entries))


def answer(store: MemoryLog, frames: list[Frame], have: MemoryLog | None = None) -> Pulled:
    """Give a client exactly these frames."""
    client = PullClient(store.agent, (have or store).vector())
    return receive(client, store, [pack(frame) for frame in frames])


def hash_at(author: Author, seq: int) -> EntryHash:
    return decode_header(author.raw[seq - 1].header).hash
