"""Somebody with TLS and bytes of its own, for tests of what a node lets in."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from keys.signing import DeviceKey
from keys.tls import certificate_of, client_context, server_context
from memory.peers import NewPeer
from tests.support.peers import Node

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
READ_S = 5.0


def no_certificate() -> ssl.SSLContext:
    """A client that shows nothing and takes anything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def own_certificate(key: DeviceKey) -> ssl.SSLContext:
    """A client that shows the certificate of a device and takes anything."""
    context = client_context(key, certificate_of(key))
    context.verify_mode = ssl.CERT_NONE
    return context


def minted(by: DeviceKey, directory: Path) -> ssl.SSLContext:
    """A client with a certificate that a device has signed for another key."""
    key = Ed25519PrivateKey.generate()
    issuer = x509.load_der_x509_certificate(certificate_of(by)).subject
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roost")]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(2)
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC))
        .sign(Ed25519PrivateKey.from_private_bytes(by.seed()), algorithm=None)
    )
    return _with(directory / "minted.pem", key, made.public_bytes(serialization.Encoding.PEM))


def borrowed(der: bytes, directory: Path) -> ssl.SSLContext:
    """A client that shows somebody's certificate with a key of its own; raises ``SSLError``."""
    pem = x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM)
    return _with(directory / "borrowed.pem", Ed25519PrivateKey.generate(), pem)


def _with(path: Path, key: Ed25519PrivateKey, certificate: bytes) -> ssl.SSLContext:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate
    )
    context = no_certificate()
    context.load_cert_chain(path)
    return context


async def answer_to(address: str, data: bytes, context: ssl.SSLContext | None) -> bytes:
    """All the bytes that come back for ``data``; empty when the connection is refused."""
    host, port = address.rsplit(":", 1)
    received = b""
    try:
        async with asyncio.timeout(READ_S):
            reader, writer = await asyncio.open_connection(
                host, int(port), ssl=context, server_hostname="" if context else None
            )
            try:
                writer.write(data)
                await writer.drain()
                while part := await reader.read(65_536):
                    received += part
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except OSError:
        pass
    return received


def request(method: str, path: str, body: bytes = b"", *, more: str = "") -> bytes:
    """An HTTP request that asks for the connection to be closed after it."""
    head = f"{method} {path} HTTP/1.1\r\nHost: roost\r\nConnection: close\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def impostor(key: DeviceKey, peer: Node, talk: Talk) -> AsyncIterator[str]:
    """A server with a device's key that does with a connection whatever ``talk`` does."""
    context = await asyncio.to_thread(server_context, key, [certificate_of(peer.core.key)])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"{host}:{port}"
    finally:
        server.close()


async def enter(node: Node, key: DeviceKey, address: str) -> None:
    """Make a device a peer of a node, at an address, as if they had been paired."""
    new = NewPeer(key.device, "impostor", certificate_of(key))
    await node.network._take_peer(new, [address])


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head + await reader.readexactly(length)
