"""The listener for peers: TLS with exactly the peers' certificates, then HTTP.

1. The handshake fails for everybody but the holders of the peers' certificates (R39). After it the
   leaf's key is compared with the known peers before a byte is read: what is not the very
   certificate of a peer is cut off without an answer, and no handler is entered.
2. A new peer is let in at once. A removed one is not let in again, and its connections are cut.
3. A stranger learns nothing: no path, no method and no certificate changes what it gets.
4. Bounded: connections that are being admitted, connections per peer, heads, idle time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from keys.errors import BadInput
from keys.ids import DeviceId
from keys.tls import certificate_of, key_of_certificate, server_context
from memory.peers import Peer
from node.accepting import Acceptor, handshake
from node.core import NodeCore

ADMITTING_MAX: Final = 256
PEER_CONNECTIONS_MAX: Final = 16
IDLE_S: Final = 120.0
LINGER_S: Final = 1.0
HEAD_LINE_BYTES_MAX: Final = 1_024
HEADERS_MAX: Final = 32
READ_BYTES: Final = 256 * 1024
WRITE_BYTES: Final = 512 * 1024  # a piece is read from the store while the one before is sent
STOP_S: Final = 0.2

Answer = Callable[[DeviceId, web.BaseRequest], Awaitable[web.StreamResponse]]


class SyncServer:
    """Serves peers on a listening socket, which stays its owner's."""

    def __init__(self, core: NodeCore, listener: socket.socket, answer: Answer) -> None:
        self._core, self._answer = core, answer
        self._acceptor = Acceptor(listener, core.clock, self._admit, ADMITTING_MAX)
        self._certificates: dict[DeviceId, bytes] = {}
        self._context: ssl.SSLContext | None = None
        self._http: _HttpServer | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Let the known peers in."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        self._certificates = {peer.device: peer.certificate for peer in peers}
        # A copy of this device is let in, so that each hears of the other (S-A7).
        own = await asyncio.to_thread(certificate_of, self._core.key)
        self._certificates[self._core.device] = own
        self._context = await self._make_context()
        self._http = _HttpServer(self._answered, self.knows)
        self._accepting = tasks.create_task(self._acceptor.run(), name="sync accept")

    async def stop(self) -> None:
        """Take no more, and cut what is open."""
        if self._accepting is not None:
            self._accepting.cancel()
        if self._http is not None:
            http, self._http = self._http, None
            transports = [c.transport for c in http.connections]
            await http.shutdown(STOP_S)
            for transport in transports:
                if transport is not None:
                    transport.abort()  # whoever does not answer a goodbye is not waited for

    def knows(self, device: DeviceId) -> bool:
        """Whether a device is a peer now."""
        return device in self._certificates

    async def add_peer(self, peer: Peer) -> None:
        """Let a peer in from now on."""
        async with self._changing:
            self._certificates[peer.device] = peer.certificate
            if self._context is not None:
                self._context.load_verify_locations(cadata=peer.certificate)

    async def remove_peer(self, device: DeviceId) -> None:
        """Let a device in no more, and cut what it has open."""
        async with self._changing:
            self._certificates.pop(device, None)
            self.cut(device)
            if self._context is not None:
                self._context = await self._make_context()

    def cut(self, device: DeviceId) -> None:
        """End every connection of a device, in the middle of whatever is sent on it."""
        if self._http is not None:
            for connection in self._http.of(device):
                connection.cut()

    async def _make_context(self) -> ssl.SSLContext:
        ders = list(self._certificates.values())
        keys_dir = self._core.home.keys_dir
        return await asyncio.to_thread(server_context, self._core.key, ders, keys_dir=keys_dir)

    async def _admit(self, connection: socket.socket) -> None:
        if self._context is None or self._http is None:
            connection.close()
            return
        transport = await handshake(connection, self._context, self._http)
        transport.set_write_buffer_limits(high=WRITE_BYTES)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        """The first thing that sees a request: whose it is, and whether that is a peer still."""
        connection = request.protocol
        assert isinstance(connection, _Connection), "made by _HttpServer"
        device = connection.device
        if device is None or not self.knows(device):
            connection.cut()
            raise ConnectionResetError("no peer any more")
        return await self._answer(device, request)


class _HttpServer(web.Server):
    """Makes the protocol of each connection."""

    def __init__(
        self,
        answered: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        knows: Callable[[DeviceId], bool],
    ) -> None:
        super().__init__(answered, handler_cancellation=True)
        self._knows = knows

    def __call__(self) -> RequestHandler:
        return _Connection(self, self._knows)

    def of(self, device: DeviceId) -> list[_Connection]:
        """The connections of a device, oldest first."""
        return [c for c in self.connections if isinstance(c, _Connection) and c.device == device]


class _Connection(RequestHandler):
    """One connection; ``device`` is set once its leaf is known to be a peer's."""

    __slots__ = ("_http", "_knows", "device")

    def __init__(self, http: _HttpServer, knows: Callable[[DeviceId], bool]) -> None:
        super().__init__(
            http,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=IDLE_S,
            access_log=None,  # type: ignore[arg-type]  # None is how it is turned off
            max_line_size=HEAD_LINE_BYTES_MAX,
            max_field_size=HEAD_LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            lingering_time=LINGER_S,
            read_bufsize=READ_BYTES,
            auto_decompress=False,
        )
        self._http, self._knows = http, knows
        self.device: DeviceId | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Compare the leaf's key before anything is read from the connection."""
        device = leaf_of(transport)
        if device is None or not self._knows(device):
            self.force_close()
            assert isinstance(transport, asyncio.WriteTransport)
            transport.abort()
            return
        others = self._http.of(device)
        for oldest in others[: max(0, len(others) - PEER_CONNECTIONS_MAX + 1)]:
            oldest.cut()
        self.device = device
        super().connection_made(transport)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """A fault of the library's; that the other end is gone is none."""
        if not isinstance(kw.get("exc_info"), ConnectionError):
            super().log_exception(*args, **kw)

    def cut(self) -> None:
        """End the connection now; what was not sent yet is dropped."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()


def leaf_of(transport: Any) -> DeviceId | None:
    """The device whose certificate the other end of a TLS connection has; None for no such."""
    encrypted = transport.get_extra_info("ssl_object")
    der = encrypted.getpeercert(binary_form=True) if encrypted is not None else None
    if not der:
        return None
    try:
        return key_of_certificate(der)
    except BadInput:
        return None
