"""Pulling one agent from one peer: statements, then runs, then wanted payloads.

1. Bytes are verified in a thread while the socket reads on; verified pages wait in a bounded queue
   for the store's thread, which appends and folds each in one transaction.
2. Whatever came whole before a stream broke is applied.
3. Entries of our own log that we lack are a sign that this home was restored: the doubt is noted
   in the hop that appends them, before any further write (S-A2).
4. A stream has a limit of bytes and of time; what is left comes with the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from crdt.chain import VerifiedRun
from crdt.log import Vector
from keys.address import Address
from keys.errors import RoostError, StoreError, UnreachableError
from keys.ids import AgentId
from keys.limits import PROOF_STATEMENTS_MAX, STATEMENTS_PER_AGENT_MAX, WANT_PAYLOADS_MAX
from keys.statements import Statement
from memory.store import AgentStore
from node.exchange import Exchange, Told
from node.handle import AgentHandle
from node.peerlink import PeerClient
from node.sharing import collect, keys_in_grants, open_boxes, take_keys
from sync.catchup import Absent, Found, PayloadClient, StatementsClient, StatementsPage
from sync.errors import BadStream
from sync.messages import (
    PAYLOADS_PATH,
    PULL_PATH,
    STATEMENTS_PATH,
    Signed,
    StatementsReply,
    path_of,
)
from sync.outcome import Applied, Outcome, Rounds, append, outcome_of
from sync.pull import Append, Broken, Effect, PullClient, Refuse, Whole, Withhold, admission
from sync.reasons import Missing

PAGES_WAITING_MAX: Final = 2
PULL_ENTRIES: Final = 100_000  # in one answer; then statements and rights are looked at again
PULL_BYTES_MAX: Final = 1024 * 1024 * 1024
PULL_S: Final = 900.0
STATEMENTS_S: Final = 120.0
WANTS_LOOKED_AT: Final = 4_096


class Source:
    """One peer as a source of one agent: where it answers, and what it could not give before."""

    def __init__(self, exchange: Exchange, client: PeerClient, told: Told) -> None:
        self.exchange, self.client, self.told = exchange, client, told
        self.rounds = Rounds()
        self.refused: set[bytes] = set()
        self.absent: set[bytes] = set()
        self.statements_at: bytes | None = None


async def first_statements(
    exchange: Exchange, client: PeerClient, address: Address, agent: AgentId
) -> StatementsPage:
    """The first page of statements of an agent that is not here: its founding comes first."""
    asking = StatementsClient(agent, ())
    return await _ask(exchange, client, address, asking)


async def _ask(
    exchange: Exchange, client: PeerClient, address: Address, asking: StatementsClient
) -> StatementsPage:
    path = path_of(STATEMENTS_PATH, asking.agent)
    body = await client.post(address, path, asking.request().encode())
    return await asyncio.to_thread(lambda: asking.take(StatementsReply.decode(body)))


async def pull_statements(
    source: Source, address: Address, handle: AgentHandle, *, proof: bool
) -> int:
    """Fetch the statements that the peer has more, and the keys that come with them; how many.

    With ``proof`` the peer does not know yet that we may read: we show it the statements.
    """
    exchange, agent = source.exchange, handle.agent
    ids, shown = await handle.read(lambda store: _have(store, proof=proof))
    room = STATEMENTS_PER_AGENT_MAX - len(ids)
    asking = StatementsClient(agent, [*ids, *sorted(source.refused)[:room]], shown)
    new = 0
    async with asyncio.timeout(STATEMENTS_S):
        while asking.wants_more:
            page = await _ask(exchange, source.client, address, asking)
            source.refused.update(bytes(i) for i in page.refused)
            source.told.forged.update(bytes(i) for i in page.refused)
            new += await _take_page(exchange, handle, page)
    return new


def _have(store: AgentStore, *, proof: bool) -> tuple[list[bytes], list[Signed]]:
    ids = store.statement_ids()
    shown = store.statements_missing(frozenset())[-PROOF_STATEMENTS_MAX:] if proof else []
    return ids, shown


async def _take_page(exchange: Exchange, handle: AgentHandle, page: StatementsPage) -> int:
    found: Sequence[Statement] = page.statements
    new = 0
    if found:
        new = await handle.receive(lambda store, now_us: store.add_statements(found, now_us))
        await collect(exchange.core, found)
    key = exchange.core.key
    keys = await asyncio.to_thread(
        lambda: [*open_boxes(key, page.keys), *keys_in_grants(key, found)]
    )
    if keys:
        await take_keys(exchange.core, handle, keys)
    return new


class Pull:
    """One answer to one pull request, applied as it comes."""

    def __init__(self, source: Source, address: Address, handle: AgentHandle) -> None:
        self._source, self._address, self._handle = source, address, handle
        self._exchange = source.exchange
        self._pages: asyncio.Queue[list[Effect] | None] = asyncio.Queue(PAGES_WAITING_MAX)
        self._failure: RoostError | None = None
        self.new = 0

    async def run(self) -> Outcome:
        """Pull once. Raises ``RoostError`` where the peer gave no answer, or the store fails."""
        have, authority = await self._handle.read(lambda s: (s.vector(), s.authority))
        self._have: Vector = have
        self._client = PullClient(
            self._handle.agent,
            have,
            admits=admission(authority),
            skip=self._source.rounds.skip,
            limit=PULL_ENTRIES,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(), name="pull read")
                while (effects := await self._pages.get()) is not None:
                    for effect in effects:
                        await self._carry_out(effect)
        except* StoreError as group:
            raise group.exceptions[0] from None
        if self._failure is not None and self._client.tally.expected == 0:
            raise self._failure
        return outcome_of(self._client, await self._handle.read(lambda store: store.vector()))

    async def _read(self) -> None:
        path = path_of(PULL_PATH, self._handle.agent)
        body = self._client.request.encode()
        turn = self._exchange.turn(self._handle.agent)
        size = 0
        try:
            async with (
                asyncio.timeout(PULL_S),
                self._source.client.stream(self._address, path, body) as chunks,
            ):
                async for chunk in chunks:
                    size += len(chunk)
                    if size > PULL_BYTES_MAX:
                        raise BadStream(f"an answer of more than {PULL_BYTES_MAX} bytes")
                    effects = await asyncio.to_thread(self._client.feed, chunk)
                    turn.moved()
                    if effects:
                        await self._pages.put(effects)
                    if self._client.over:
                        break
        except TimeoutError:
            self._failure = UnreachableError("the peer took too long")
        except RoostError as exc:
            self._failure = exc
        await self._pages.put(await asyncio.to_thread(self._client.closed))
        await self._pages.put(None)

    async def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Append(runs):
                applied = await self._handle.receive(
                    lambda store, now_us: self._append(store, runs, now_us)
                )
                self.new += applied.new
                self._exchange.counters.pulled += applied.new
                for refusal in applied.refused:
                    self._refused(refusal)
            case Withhold(tombstones):
                await self._handle.receive(lambda store, _now_us: store.add_ahead(tombstones))
            case Refuse():
                self._refused(effect)
            case Whole(vector):
                self._source.told.set_vector(vector)
                await self._exchange.compare_own(self._handle, vector)
            case Broken(code):
                self._exchange.core.journal.info("sync.cut", agent=self._handle.agent, code=code)
            case _:
                pass  # what is expected is in the client's tally

    def _append(self, store: AgentStore, runs: Sequence[VerifiedRun], now_us: int) -> Applied:
        for run in runs:
            last = run.first_seq + len(run.entries) - 1
            self._exchange.note_own(self._handle, store, run.log, last)
        return append(store, runs, now_us)

    def _refused(self, refusal: Refuse) -> None:
        """One bad log is set aside; the rest flows."""
        told = self._source.told
        if refusal.log is not None:
            self._client.refuse(refusal.log, refusal.reason)
            if told.refused.get(refusal.log) == refusal.reason:
                return
            told.refused[refusal.log] = refusal.reason
        self._exchange.core.journal.warning(
            "sync.refused",
            agent=self._handle.agent,
            log=str(refusal.log) if refusal.log else None,
            seq=refusal.seq,
            reason=refusal.reason.value,
            code=refusal.code,
        )


async def pull_payloads(source: Source, address: Address, handle: AgentHandle) -> int:
    """Ask for payloads that are nowhere here; how many came (R32)."""
    took = 0
    while True:
        wants = await handle.read(lambda store: store.wants(WANTS_LOOKED_AT))
        wanted = [w for w in wants if bytes(w.hash) not in source.absent][:WANT_PAYLOADS_MAX]
        if not wanted:
            return took
        source.absent.update(bytes(w.hash) for w in wanted)  # asked once per connection
        asking = PayloadClient(wanted)
        path = path_of(PAYLOADS_PATH, handle.agent)
        async with (
            asyncio.timeout(PULL_S),
            source.client.stream(address, path, asking.request.encode()) as chunks,
        ):
            async for chunk in chunks:
                for effect in asking.feed(chunk):
                    took += await _keep(handle, effect)
        for effect in asking.closed():
            took += await _keep(handle, effect)


async def _keep(handle: AgentHandle, effect: Found | Absent | Broken) -> int:
    if not isinstance(effect, Found):
        return 0
    found = effect.payloads
    return await handle.receive(lambda store, now_us: store.add_payloads(found, now_us))


def reason_of(outcome: Outcome) -> Missing | None:
    """The reason to show for what a pull left missing: that of the first gap."""
    return outcome.missing[0].reason if outcome.missing else None
