"""Pairing on the wire: TLS, told apart from the port for sync, and framed messages.

1. A pairing listener answers to the protocol name ``roost-pair`` in the TLS handshake (ALPN); the
   port for sync, which shows the same certificate, does not.
2. A frame is its length in 4 big-endian bytes and a message; the length is compared with its bound
   before a byte of the message is kept.
3. Every read and write ends after ``STALL_S`` without progress; while the other side's person is
   asked, a read after ``CONFIRM_S`` more.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Final, Self

from keys.address import Address
from keys.errors import BadEncoding, UnreachableError
from keys.ids import DeviceId
from keys.limits import PAIR_GIFT_BYTES_MAX, PAIR_MESSAGE_BYTES_MAX
from keys.tls import pairing_client_context
from node.accepting import handshake
from node.reachable import plain_host
from node.server import leaf_of

PROTOCOL: Final = "roost-pair"
LENGTH_BYTES: Final = 4
STALL_S: Final = 10.0
CONFIRM_S: Final = 60.0
DIAL_S: Final = 4.0
CLOSE_S: Final = 1.0
GIFT_MESSAGE_BYTES_MAX: Final = PAIR_GIFT_BYTES_MAX + 64


class PairStream:
    """One connection between two devices that pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def host(self) -> str:
        """Where the other side is."""
        return plain_host(str(self._writer.get_extra_info("peername")[0]))

    @classmethod
    async def dial(cls, address: Address) -> tuple[Self, DeviceId]:
        """Connect to a pairing listener; the stream and the device whose leaf it shows.

        Raises ``UnreachableError`` where there is none.
        """
        context = pairing_client_context()
        context.set_alpn_protocols([PROTOCOL])
        try:
            async with asyncio.timeout(DIAL_S):
                reader, writer = await asyncio.open_connection(
                    address.host,
                    address.port,
                    ssl=context,
                    server_hostname="",
                    ssl_shutdown_timeout=CLOSE_S,
                )
        except (OSError, TimeoutError) as exc:
            raise UnreachableError(f"nobody answers at {address}") from exc
        stream = cls(reader, writer)
        encrypted = writer.get_extra_info("ssl_object")
        device = leaf_of(writer.transport)
        if device is None or encrypted.selected_alpn_protocol() != PROTOCOL:
            await stream.close()
            raise UnreachableError(f"nobody pairs at {address}")
        return stream, device

    @classmethod
    @contextlib.asynccontextmanager
    async def accepted(
        cls, connection: socket.socket, context: ssl.SSLContext
    ) -> AsyncIterator[Self]:
        """The stream on an accepted connection; raises ``OSError`` or ``TimeoutError``."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=PAIR_MESSAGE_BYTES_MAX, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport = await handshake(connection, context, lambda: protocol)
        stream = cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        try:
            yield stream
        except asyncio.CancelledError:
            transport.abort()
            raise
        finally:
            await stream.close()

    async def send(self, message: bytes) -> None:
        """Send one message; raises ``UnreachableError`` when the other side takes nothing."""
        try:
            async with asyncio.timeout(STALL_S):
                self._writer.write(len(message).to_bytes(LENGTH_BYTES, "big") + message)
                await self._writer.drain()
        except (OSError, TimeoutError) as exc:
            raise _gone() from exc

    async def receive(
        self, size_max: int = PAIR_MESSAGE_BYTES_MAX, patience_s: float = STALL_S
    ) -> bytes:
        """The next message; raises ``UnreachableError``, ``BadEncoding`` for one over its bound."""
        try:
            async with asyncio.timeout(patience_s):
                size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big")
                if not 1 <= size <= size_max:
                    raise BadEncoding(f"a message of {size} bytes where {size_max} are allowed")
                return await self._reader.readexactly(size)
        except (OSError, TimeoutError, EOFError) as exc:
            raise _gone() from exc

    async def close(self) -> None:
        """Hang up, letting what was sent arrive."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


def _gone() -> UnreachableError:
    return UnreachableError(
        "the other side hung up or fell silent while pairing",
        hint="make a new code with `roost pair open` on the other device",
    )
