"""Calling a peer: requests that only the peer meant can see, and answers that stay in bounds.

1. The leaf's key is compared with the device meant before a byte of any request is sent, on every
   use of a connection; TLS has by then accepted that very certificate and nothing else.
2. Nothing is followed, unpacked, remembered or asked elsewhere: no redirects, no compression, no
   cookies, no proxies of the environment.
3. Every wait has a limit, and every answer one of bytes and of time (X-27, X-31).
4. Several addresses are tried at once; the first where the peer answers wins.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final, Self

import aiohttp
from aiohttp import ClientRequest, ClientResponse
from aiohttp.connector import Connection
from yarl import URL

from keys.address import Address
from keys.errors import BadInput, RoostError, UnreachableError
from keys.ids import DeviceId
from keys.limits import REPLY_BYTES_MAX, WATCH_SILENCE_S
from keys.signing import DeviceKey
from keys.tls import client_context
from node.exchange import Counters
from node.server import leaf_of
from sync.errors import BadStream
from sync.messages import CONTENT_TYPE, HELLO_PATH, Hello, code_of_refusal

DIAL_S: Final = 4.0  # to connect, shake hands and get the hello back, at one address
REPLY_S: Final = 30.0  # for a whole answer that is no stream
SILENCE_S: Final = 60.0  # without a byte of a stream
CONNECTIONS_MAX: Final = 8
READ_BYTES: Final = 512 * 1024
REFUSAL_BYTES_MAX: Final = 4 * 1024
OK: Final = 200


class PeerRefusedError(RoostError):
    """The peer answered with a refusal; ``refusal`` is its code."""

    code = "peer_refused"

    def __init__(self, refusal: str) -> None:
        super().__init__(f"the peer refused: {refusal}", refusal=refusal)
        self.refusal = refusal


class WrongDeviceError(BadInput):
    """Another device than the one meant has answered."""

    code = "wrong_device"


class PeerClient:
    """Calls one peer. To be closed."""

    def __init__(self, device: DeviceId, context: ssl.SSLContext, counters: Counters) -> None:
        self.device = device
        self._counters = counters
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS_MAX, use_dns_cache=False),
            request_class=_pinned(device),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=READ_BYTES,
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept"),
            timeout=aiohttp.ClientTimeout(total=None, connect=DIAL_S, sock_read=SILENCE_S),
        )

    @classmethod
    async def make(
        cls,
        key: DeviceKey,
        device: DeviceId,
        certificate: bytes,
        keys_dir: Path,
        counters: Counters,
    ) -> Self:
        """A client that presents ``key`` and trusts the device's very certificate."""
        context = await asyncio.to_thread(client_context, key, certificate, keys_dir=keys_dir)
        return cls(device, context, counters)

    async def close(self) -> None:
        """End every connection."""
        await self._session.close()

    async def dial(self, addresses: Sequence[Address], hello: Hello) -> tuple[Address, Hello]:
        """The first address where the peer answers a hello, and its answer.

        Raises ``UnreachableError``, or what the peer answered wrong where nobody did it right.
        """
        won: list[tuple[Address, Hello]] = []
        failures: list[RoostError] = []
        async with asyncio.TaskGroup() as tasks:

            async def attempt(address: Address) -> None:
                try:
                    async with asyncio.timeout(DIAL_S):
                        reply = await self.hello(address, hello)
                except TimeoutError:
                    failures.append(_unreachable())
                except RoostError as exc:
                    failures.append(exc)
                else:
                    won.append((address, reply))
                    for other in attempts:
                        if other is not asyncio.current_task():
                            other.cancel()

            attempts = [tasks.create_task(attempt(a), name="dial") for a in addresses]
        if won:
            return won[0]
        said = [f for f in failures if not isinstance(f, UnreachableError)]
        raise said[0] if said else _unreachable()

    async def hello(self, address: Address, hello: Hello) -> Hello:
        """Exchange hellos."""
        return Hello.decode(await self.post(address, HELLO_PATH, hello.encode()))

    async def post(self, address: Address, path: str, body: bytes) -> bytes:
        """The whole answer to a request; raises as ``stream`` does."""
        answer = bytearray()
        try:
            async with asyncio.timeout(REPLY_S), self.stream(address, path, body) as chunks:
                async for chunk in chunks:
                    answer += chunk
                    if len(answer) > REPLY_BYTES_MAX:
                        raise BadStream(f"an answer of more than {REPLY_BYTES_MAX} bytes")
        except TimeoutError as exc:
            raise _unreachable() from exc
        return bytes(answer)

    @contextlib.asynccontextmanager
    async def stream(
        self, address: Address, path: str, body: bytes | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an answer as they come; without a ``body`` the request is a GET.

        Raises ``UnreachableError``, ``PeerRefusedError`` or ``BadInput``. The caller bounds the
        whole; here it is only the silence between two chunks that has an end.
        """
        silence_s = WATCH_SILENCE_S if body is None else SILENCE_S
        try:
            async with self._session.request(
                "GET" if body is None else "POST",
                _url(address, path),
                data=body,
                headers=None if body is None else {"Content-Type": CONTENT_TYPE},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=DIAL_S, sock_read=silence_s),
            ) as response:
                self._counters.bytes += len(body or b"")
                await self._check(response)
                yield self._chunks(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise _unreachable() from exc

    async def _chunks(self, response: ClientResponse) -> AsyncIterator[bytes]:
        while chunk := await response.content.readany():
            self._counters.bytes += len(chunk)
            yield chunk

    async def _check(self, response: ClientResponse) -> None:
        """Raise unless the answer is one of ours that says yes."""
        if response.status == OK and response.content_type == CONTENT_TYPE:
            if "Content-Encoding" in response.headers:
                raise BadStream("an answer that is compressed")
            return
        if response.content_type != CONTENT_TYPE:
            raise BadStream(f"an answer with status {response.status} that is not of this protocol")
        body = await response.content.read(REFUSAL_BYTES_MAX)
        raise PeerRefusedError(code_of_refusal(body))


def _pinned(device: DeviceId) -> type[ClientRequest]:
    class Pinned(ClientRequest):
        """A request that is sent to one device or not at all."""

        async def send(self, conn: Connection) -> ClientResponse:
            """Compare the leaf's key, then send; raises ``WrongDeviceError``."""
            if conn.transport is None or leaf_of(conn.transport) != device:
                conn.close()
                raise WrongDeviceError("another device has answered")
            return await super().send(conn)

    return Pinned


def _url(address: Address, path: str) -> URL:
    return URL.build(scheme="https", host=address.host, port=address.port, path=path)


def _unreachable() -> UnreachableError:
    return UnreachableError(
        "the peer did not answer",
        hint="see that its node runs and that 7667/TCP is open between the two",
    )
