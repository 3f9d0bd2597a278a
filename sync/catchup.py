"""Pulling what travels beside the runs: statements before them, wanted payloads after them.

1. A statement leaves this module only verified, and only if it belongs into the agent's set.
2. A page of statements that brings nothing new although more is promised is an error, not a loop.
3. A payload leaves only if it was asked for; whether it is the right one the store compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crdt.log import Want
from keys.errors import BadInput
from keys.ids import AgentId, StatementId, hash256
from keys.limits import PAGE_BYTES, STATEMENTS_PER_AGENT_MAX, UNKNOWN_FRAMES_MAX
from keys.statements import Statement, parse
from sync.errors import BadStream, StalledError
from sync.frames import End, Failure, Frame, FrameReader, PayloadFrame, Unknown
from sync.frames import parse as parse_frame
from sync.messages import KeyBox, PayloadsRequest, Signed, StatementsReply, StatementsRequest
from sync.pull import CUT, Broken
from sync.serve import is_of


@dataclass(frozen=True, slots=True)
class StatementsPage:
    """Verified statements for ``LogStore.add_statements``, sealed keys, ids that were refused."""

    statements: tuple[Statement, ...]
    keys: tuple[KeyBox, ...]
    refused: tuple[StatementId, ...]


class StatementsClient:
    """Asks until nothing more comes: ``while client.wants_more: page = client.take(reply)``."""

    def __init__(self, agent: AgentId, have: Iterable[bytes], proof: Sequence[Signed] = ()) -> None:
        self.agent = agent
        self.wants_more = True
        self._seen = {bytes(i) for i in have}
        self._proof = tuple(proof)

    def request(self) -> StatementsRequest:
        """The next request. What was refused counts as had: it is not asked for again."""
        return StatementsRequest(tuple(sorted(self._seen)), self._proof)

    def take(self, reply: StatementsReply) -> StatementsPage:
        """Verify a reply. Raises ``StalledError`` when it promises more and brings nothing."""
        taken: list[Statement] = []
        refused: list[StatementId] = []
        before = len(self._seen)
        for data, signature in reply.statements:
            found = StatementId(hash256(data))
            if found in self._seen or len(self._seen) >= STATEMENTS_PER_AGENT_MAX:
                continue
            self._seen.add(bytes(found))
            statement = self._verified(data, signature)
            if statement is None:
                refused.append(found)
            else:
                taken.append(statement)
        if reply.more and len(self._seen) == before:
            raise StalledError("a peer promises more statements and sends none")
        self.wants_more = reply.more
        return StatementsPage(tuple(taken), reply.keys, tuple(refused))

    def _verified(self, data: bytes, signature: bytes) -> Statement | None:
        try:
            statement = parse(data, signature)
        except BadInput:
            return None
        return statement if is_of(statement, self.agent) else None


@dataclass(frozen=True, slots=True)
class Found:
    """Payloads for ``LogStore.add_payloads``."""

    payloads: tuple[tuple[Want, bytes], ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """The stream is whole; the peer did not have these."""

    wants: tuple[Want, ...]


PayloadEffect: TypeAlias = Found | Absent | Broken


class PayloadClient:
    """Takes the answer to one want-list apart; ``feed`` and ``closed`` as in ``PullClient``."""

    def __init__(self, wanted: Sequence[Want]) -> None:
        self.request = PayloadsRequest(tuple(wanted))
        self._over = False
        self._left = dict.fromkeys(wanted)
        self._unknown = 0
        self._reader = FrameReader()
        self._page: list[tuple[Want, bytes]] = []
        self._size = 0

    @property
    def over(self) -> bool:
        """Whether the stream has ended, whole or broken."""
        return self._over

    def feed(self, chunk: bytes) -> list[PayloadEffect]:
        """Take bytes of the stream. Raises nothing."""
        effects: list[PayloadEffect] = []
        if not self._over:
            self._reader.feed(chunk)
        try:
            while not self.over and (body := self._reader.next_body()) is not None:
                effects += self._take(parse_frame(body))
        except BadInput as exc:
            effects += self._end(Broken(exc.code))
        return effects

    def closed(self) -> list[PayloadEffect]:
        """The peer sends no more."""
        return [] if self.over else self._end(Broken(CUT))

    def _take(self, frame: Frame) -> list[PayloadEffect]:
        match frame:
            case PayloadFrame(want, payload) if want in self._left:
                del self._left[want]
                self._page.append((want, payload))
                self._size += len(payload)
                return self._flush() if self._size >= PAGE_BYTES else []
            case End():
                return self._end(Absent(tuple(self._left)))
            case Failure(code):
                return self._end(Broken(code))
            case Unknown() if self._unknown < UNKNOWN_FRAMES_MAX:
                self._unknown += 1
                return []
            case _:
                raise BadStream(f"{type(frame).__name__} is no answer to a want-list")

    def _end(self, last: PayloadEffect) -> list[PayloadEffect]:
        self._over = True
        return [*self._flush(), last]

    def _flush(self) -> list[PayloadEffect]:
        page, self._page, self._size = self._page, [], 0
        return [Found(tuple(page))] if page else []
