"""What is answered to a peer: hello, statements, pull, payloads, watch (PROTOCOL.md).

1. A request is read and decoded before its agent is looked up, and the right is asked of memory
   without a hop: no such agent, no right, no such path all get ``NOT_FOUND``, in the same time.
2. An answer is read from the store piece by piece, one hop each, and the right is asked before each
   (S-I5). Nothing is held open while a slow peer reads.
3. Who has this device's own key is a copy of it, and gets a hello without agents (S-A7).
4. A request is a receipt: what it says the peer holds is noted.
5. Bounded: the body, the time for it, the time for each piece to be taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from aiohttp import web

from crdt.vector import statements_digest
from keys.authority import Authority
from keys.errors import BadInput
from keys.ids import AgentId, DeviceId
from keys.limits import REQUEST_BYTES_MAX, WATCH_BEAT_S
from keys.recovery import recovery_hash
from keys.signing import seal
from keys.statements import Statement
from memory.store import AgentStore
from node.exchange import Exchange, removals
from node.handle import AgentHandle
from node.watching import Watch, WatchHub
from sync.announce import beat
from sync.errors import IncompatibleError
from sync.messages import (
    BAD_REQUEST,
    BUSY,
    CONTENT_TYPE,
    HELLO_PATH,
    NOT_FOUND,
    RECOVER_PATH,
    REQUEST_TOO_LARGE,
    WATCH_PATH,
    Hello,
    KeyBox,
    PayloadsRequest,
    PullRequest,
    Refusal,
    StatementsReply,
    StatementsRequest,
    agent_of_path,
    agreed_version,
)
from sync.recovery import RecoverReply, RecoverRequest
from sync.serve import PayloadServer, PullServer, answer_statements, proof_in

BODY_S: Final = 30.0
WRITE_S: Final = 60.0
# What the library would add tells the version of Python and the exact time; none of it is needed.
HEADERS: Final = {"Server": "roost", "Date": "Thu, 01 Jan 1970 00:00:00 GMT"}


class _Pieces(Protocol):
    """A stream that is read piece by piece."""

    def next_piece(self) -> bytes | None:
        """Whole frames; None when there is nothing more to send."""


class PeerApi:
    """Answers the requests of peers."""

    def __init__(self, exchange: Exchange, hub: WatchHub) -> None:
        self._exchange, self._hub = exchange, hub
        self._core = exchange.core

    async def answer(self, device: DeviceId, request: web.BaseRequest) -> web.StreamResponse:
        """The response to a request of a peer."""
        try:
            return await self._route(device, request)
        except _RefusedError as exc:
            return refused(exc.refusal)
        except BadInput as exc:
            self._core.journal.info("serve.bad_request", peer=device, code=exc.code)
            return refused(BAD_REQUEST)
        except (OSError, TimeoutError) as exc:
            raise ConnectionResetError("the peer is gone") from exc
        except Exception as exc:  # noqa: BLE001 - a border: one request's fault is not the node's end
            self._core.journal.error("serve.failed", exc, peer=device)
            return refused(BUSY)

    async def _route(self, device: DeviceId, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if device == self._core.device and path != HELLO_PATH:
            raise _RefusedError(NOT_FOUND)  # a copy of this device: to know of each other is all
        match request.method, path.split("/"):
            case "POST", _ if path == HELLO_PATH:
                return await self._hello(device, request)
            case "POST", _ if path == RECOVER_PATH:
                return await self._recover(device, request)
            case "GET", _ if path == WATCH_PATH:
                return await self._watch(device, request)
            case "POST", ["", "v1", "agents", agent, "statements"]:
                return await self._statements(device, request, agent)
            case "POST", ["", "v1", "agents", agent, "pull"]:
                return await self._pull(device, request, agent)
            case "POST", ["", "v1", "agents", agent, "payloads"]:
                return await self._payloads(device, request, agent)
        raise _RefusedError(NOT_FOUND)

    # -- one message -----------------------------------------------------------------------------

    async def _hello(self, device: DeviceId, request: web.BaseRequest) -> web.StreamResponse:
        now_ms = self._core.clock.now_us() // 1000
        hello = Hello.decode(await self._body(request))
        try:
            agreed_version(hello.versions)
        except IncompatibleError as exc:
            self._exchange.peer(device).error = exc.code  # it finds out from the answer, too
        else:
            await self._exchange.met(
                device, hello, hello.clock_ms - now_ms, at=None, caller=request.remote
            )
            self._exchange.on_hello(device, hello)
        return self._whole((await self._exchange.hello_for(device)).encode())

    async def _recover(self, device: DeviceId, request: web.BaseRequest) -> web.StreamResponse:
        """The statements of agents whose owner committed to the asker's recovery key (R20)."""
        asked = RecoverRequest.decode(await self._body(request))
        await asyncio.to_thread(asked.check, device, self._core.device)
        fits = recovery_hash(asked.public)
        found = []
        for handle in self._core.agents.all():
            if fits in handle.store.authority.recovery.values():
                signed = await handle.read(lambda store: store.statements_missing(frozenset()))
                found.append((handle.agent, tuple(signed)))
        if not found:
            raise _RefusedError(NOT_FOUND)
        self._core.journal.warning("recovery.asked", peer=device, agents=len(found))
        return self._whole(RecoverReply(tuple(found)).encode())

    async def _statements(
        self, device: DeviceId, request: web.BaseRequest, segment: str
    ) -> web.StreamResponse:
        asked = StatementsRequest.decode(await self._body(request))
        agent = agent_of_path(segment)
        proof = await asyncio.to_thread(proof_in, asked, agent) if agent and asked.proof else []
        handle = self._handle(agent)
        if proof and not self._exchange.may_read(handle, device):
            await self._take_proof(handle, device, proof)
        known = self._exchange.may_read(handle, device)
        if not known and not removals(handle.store.authority, device):
            raise _RefusedError(NOT_FOUND)  # without a hop (1.)
        now_ms = self._core.clock.now_us() // 1000

        def answer(store: AgentStore) -> bytes | None:
            reply = statements_for(store, device, asked, now_ms)
            return reply.encode() if reply else None

        body = await handle.read(answer)
        if body is None:
            raise _RefusedError(NOT_FOUND)
        if self._exchange.may_read(handle, device):
            told = self._exchange.peer(device).told(handle.agent)
            told.statements_digest = statements_digest(asked.have)
        return self._whole(body)

    async def _take_proof(
        self, handle: AgentHandle, device: DeviceId, proof: Sequence[Statement]
    ) -> None:
        """Statements that an asker brings are kept iff with them it may read (R25)."""
        now_ms = self._core.clock.now_us() // 1000

        def take(store: AgentStore, now_us: int) -> None:
            together = Authority(store.agent, [*store.statements(), *proof])
            if together.holds_device(device, "read", now_ms).held:
                store.add_statements(proof, now_us)

        await handle.receive(take)

    # -- streams ---------------------------------------------------------------------------------

    async def _pull(
        self, device: DeviceId, request: web.BaseRequest, segment: str
    ) -> web.StreamResponse:
        asked = PullRequest.decode(await self._body(request))
        handle = self._readable(device, segment)
        self._exchange.peer(device).told(handle.agent).set_vector(asked.have)
        await self._exchange.compare_own(handle, asked.have)
        server = PullServer(handle.store, asked, lambda: self._exchange.may_read(handle, device))
        try:
            return await self._stream(request, handle, server)
        finally:
            self._exchange.counters.served += server.entries

    async def _payloads(
        self, device: DeviceId, request: web.BaseRequest, segment: str
    ) -> web.StreamResponse:
        asked = PayloadsRequest.decode(await self._body(request))
        handle = self._readable(device, segment)
        server = PayloadServer(handle.store, asked, lambda: self._exchange.may_read(handle, device))
        return await self._stream(request, handle, server)

    async def _stream(
        self, request: web.BaseRequest, handle: AgentHandle, server: _Pieces
    ) -> web.StreamResponse:
        piece = await handle.read(lambda _store: server.next_piece())
        if piece is None:
            raise _RefusedError(NOT_FOUND)
        response = await self._begun(request)
        while piece is not None:
            await self._write(response, piece)
            piece = await handle.read(lambda _store: server.next_piece())
        await response.write_eof()
        return response

    async def _watch(self, device: DeviceId, request: web.BaseRequest) -> web.StreamResponse:
        watch = self._hub.open(device)  # before the first byte, which tells that it is open
        try:
            response = await self._begun(request)
            await self._write(response, beat())
            await self._feed(response, watch)
            await response.write_eof()
        finally:
            self._hub.close(watch)
        response.force_close()
        return response

    async def _feed(self, response: web.StreamResponse, watch: Watch) -> None:
        def may_read(agent: AgentId) -> bool:
            handle = self._core.agents.get(agent)
            return handle is not None and self._exchange.may_read(handle, watch.device)

        while not watch.ended and not watch.outbox.overrun:
            data = watch.outbox.take(may_read)
            if data:
                await self._write(response, data)
            elif not await watch.next(WATCH_BEAT_S):
                await self._write(response, beat())

    # -- reading and writing ---------------------------------------------------------------------

    def _handle(self, agent: AgentId | None) -> AgentHandle:
        handle = self._core.agents.get(agent) if agent else None
        if handle is None:
            raise _RefusedError(NOT_FOUND)
        return handle

    def _readable(self, device: DeviceId, segment: str) -> AgentHandle:
        handle = self._handle(agent_of_path(segment))
        if not self._exchange.may_read(handle, device):
            raise _RefusedError(NOT_FOUND)
        return handle

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The body; raises ``_RefusedError`` past its bound."""
        length = request.content_length
        if length is not None and length > REQUEST_BYTES_MAX:
            raise _RefusedError(REQUEST_TOO_LARGE)
        body = bytearray()
        async with asyncio.timeout(BODY_S):
            while chunk := await request.content.readany():
                body += chunk
                if len(body) > REQUEST_BYTES_MAX:
                    raise _RefusedError(REQUEST_TOO_LARGE)
        self._exchange.counters.bytes += len(body)
        return bytes(body)

    async def _begun(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        response.content_type = CONTENT_TYPE
        response.enable_chunked_encoding()
        await response.prepare(request)
        return response

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(WRITE_S):
            await response.write(data)
        self._exchange.counters.bytes += len(data)

    def _whole(self, body: bytes) -> web.Response:
        self._exchange.counters.bytes += len(body)
        return web.Response(body=body, content_type=CONTENT_TYPE, headers=HEADERS)


class _RefusedError(Exception):
    """The request is answered with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.status)
        self.refusal = refusal


def refused(refusal: Refusal) -> web.Response:
    """A refusal as a response."""
    response = web.Response(
        status=refusal.status, body=refusal.body, content_type=CONTENT_TYPE, headers=HEADERS
    )
    if refusal is REQUEST_TOO_LARGE:
        response.force_close()  # what is left of the body is not read
    return response


def statements_for(
    store: AgentStore, device: DeviceId, asked: StatementsRequest, now_ms: int
) -> StatementsReply | None:
    """The reply to a request for statements; None means ``NOT_FOUND``. To be called in one hop.

    The right is asked in the hop that reads: a removal may have been folded since the request came.
    The keys are those that statements commit to: the one that a removal is about to name must not
    reach the device that it removes (R25).
    """
    may_read = store.authority.holds_device(device, "read", now_ms).held
    removed = frozenset() if may_read else removals(store.authority, device)
    keys = store.folder.keys if may_read else []
    boxes = [KeyBox(key.commitment, seal(device, key.secret)) for key in keys]
    return answer_statements(store, asked, may_read=may_read, removals=removed, boxes=boxes)
