"""Serving: what a node answers to peers that ask for statements, entries and payloads.

1. Whether the asker may read is asked anew before every piece, so a revocation ends a running
   answer within one run.
2. The server remembers nothing of an asker: what to send follows from the request alone.
3. Order: totals, tombstones, runs, the server's own vector, end (PROTOCOL.md).
4. Every ``next_piece`` reads the store once, in one hop of the caller's, and holds nothing open
   between two of them. It returns whole frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from crdt.chain import RawEntry
from crdt.log import LogStore, Stretch, Want
from keys.errors import BadInput
from keys.ids import AgentId, hash256
from keys.limits import (
    AHEAD_TOMBSTONES_MAX,
    KEY_BOXES_MAX,
    RUN_BYTES_TARGET,
    STATEMENTS_PAGE_BYTES,
    STATEMENTS_PAGE_MAX,
)
from keys.statements import AGENTLESS_KINDS, Statement, parse
from sync.frames import Ahead, End, Failure, PayloadFrame, Run, ServerVector, Totals, pack
from sync.messages import (
    NOT_FOUND,
    KeyBox,
    PayloadsRequest,
    PullRequest,
    Signed,
    StatementsReply,
    StatementsRequest,
    code_of_refusal,
)
from sync.plan import clamped

MayRead = Callable[[], bool]
GONE: Final = code_of_refusal(NOT_FOUND.body)


class PullServer:
    """Answers one pull.

    ``next_piece`` gives the stream piece by piece and None after its end. When the first call gives
    None, nothing may be sent but ``NOT_FOUND``.
    """

    def __init__(
        self,
        store: LogStore,
        request: PullRequest,
        may_read: MayRead,
        *,
        bytes_target: int = RUN_BYTES_TARGET,
    ) -> None:
        self._store = store
        self._request = request
        self._bytes_target = bytes_target
        self._pieces = guarded(self._stream(), may_read)
        self.entries = 0

    def next_piece(self) -> bytes | None:
        """Whole frames, about one run's worth; None when there is nothing more to send."""
        return next(self._pieces, None)

    def _stream(self) -> Iterator[bytes]:
        have = clamped(self._request.have, self._store.vector())
        stretches = [s for s in self._store.plan(have) if s.log not in self._request.skip]
        tombstones = self._store.tombstones_beyond(have, AHEAD_TOMBSTONES_MAX)
        entries = sum(s.until.seq - s.after.seq for s in stretches)
        yield pack(Totals(entries, len(tombstones)))
        yield from _joined(map(_ahead, tombstones), self._bytes_target)
        for stretch in stretches:
            rest: Stretch | None = stretch
            while rest is not None and self.entries < self._request.limit:
                run, rest = self._store.read_run(rest, self._bytes_target)
                self.entries += len(run.entries)
                yield pack(Run(run.entries))
        yield pack(ServerVector(self._store.vector())) + pack(End(self.entries < entries))


class PayloadServer:
    """Answers one want-list, one payload at a time; otherwise as ``PullServer``."""

    def __init__(self, store: LogStore, request: PayloadsRequest, may_read: MayRead) -> None:
        self._store = store
        self._request = request
        self._pieces = guarded(self._stream(), may_read)

    def next_piece(self) -> bytes | None:
        """Whole frames; None when there is nothing more to send."""
        return next(self._pieces, None)

    def _stream(self) -> Iterator[bytes]:
        for want in self._request.want:
            found = self._one(want)
            if found is not None:
                yield found
        yield pack(End(more=False))

    def _one(self, want: Want) -> bytes | None:
        for found, payload in self._store.payloads([want]):
            return pack(PayloadFrame(found, payload))
        return None


def guarded(pieces: Iterator[bytes], may_read: MayRead) -> Iterator[bytes]:
    """The pieces for as long as ``may_read`` says so before each; then the end of the stream.

    An asker without the right from the start gets no piece; one that loses it is told what an
    unknown agent's asker is told.
    """
    begun = False
    while may_read():
        piece = next(pieces, None)
        if piece is None:
            return
        yield piece
        begun = True
    if begun:
        yield pack(Failure(GONE))


def answer_statements(
    store: LogStore,
    request: StatementsRequest,
    *,
    may_read: bool,
    removals: frozenset[bytes],
    boxes: Sequence[KeyBox],
) -> StatementsReply | None:
    """The reply to a request for statements; None means ``NOT_FOUND``.

    ``removals`` are the ids of the statements that took ``read`` from the asker, if any did: it may
    have those and nothing else (R25). ``boxes`` are the fingerprint keys sealed to it; they go with
    the last page.
    """
    if not may_read and not removals:
        return None
    missing = store.statements_missing(frozenset(request.have))
    if not may_read:
        missing = [pair for pair in missing if hash256(pair[0]) in removals]
    page = _page(missing)
    more = len(page) < len(missing)
    keys = tuple(boxes[:KEY_BOXES_MAX]) if may_read and not more else ()
    return StatementsReply(page, keys, more)


def proof_in(request: StatementsRequest, agent: AgentId) -> list[Statement]:
    """The statements of a request's proof that verify and are of this agent or of an owner.

    Verified before the agent is looked up, so that the work does not tell whether it exists. They
    may be stored only if together with those held they give the asker the right.
    """
    return [s for s in map(_verified, request.proof) if s is not None and is_of(s, agent)]


def is_of(statement: Statement, agent: AgentId) -> bool:
    """Whether a statement belongs into the set of ``agent``."""
    if statement.kind == "found":
        return bytes(statement.id) == bytes(agent)
    return statement.agent == agent or statement.kind in AGENTLESS_KINDS


def _verified(signed: Signed) -> Statement | None:
    try:
        return parse(*signed)
    except BadInput:
        return None


def _page(missing: Sequence[Signed]) -> tuple[Signed, ...]:
    page: list[Signed] = []
    size = 0
    for data, signature in missing:
        if size >= STATEMENTS_PAGE_BYTES or len(page) >= STATEMENTS_PAGE_MAX:
            break
        page.append((data, signature))
        size += len(data)
    return tuple(page)


def _ahead(pair: tuple[RawEntry, RawEntry]) -> bytes:
    tombstone, opening = pair
    return pack(Ahead(tombstone, opening))


def _joined(frames: Iterable[bytes], bytes_target: int) -> Iterator[bytes]:
    """Small frames gathered into pieces of about ``bytes_target``."""
    piece = bytearray()
    for frame in frames:
        piece += frame
        if len(piece) >= bytes_target:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
