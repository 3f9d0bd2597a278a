"""TLS between devices, over real sockets: who gets in, and what the others can tell."""

import asyncio
import datetime
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keys import tls
from keys.errors import BadInput, KeyFileError
from keys.ids import DeviceId
from keys.signing import DeviceKey

SERVER, PEER, OTHER_PEER, STRANGER = (DeviceKey(bytes([n]) * 32) for n in range(1, 5))
SERVER_DER, PEER_DER, OTHER_DER = map(tls.certificate_of, (SERVER, PEER, OTHER_PEER))
UTC = datetime.UTC


def minted(issuer: DeviceKey, *, subject: DeviceKey, ca: bool = False) -> bytes:
    """A certificate of ``STRANGER`` in the name of ``subject``, signed by ``issuer``."""
    names = [
        x509.load_der_x509_certificate(tls.certificate_of(k)).subject for k in (issuer, subject)
    ]
    public = Ed25519PrivateKey.from_private_bytes(STRANGER.seed()).public_key()
    return (
        x509.CertificateBuilder(names[0], names[1], public, 7)
        .not_valid_before(datetime.datetime(1970, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime.datetime(9999, 12, 31, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(Ed25519PrivateKey.from_private_bytes(issuer.seed()), None)
        .public_bytes(serialization.Encoding.DER)
    )


def showing(folder: Path, key: DeviceKey, *ders: bytes) -> ssl.SSLContext:
    """A client that takes any server and shows these certificates, with the key of the first."""
    private = Ed25519PrivateKey.from_private_bytes(key.seed())
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "shown.pem"
    path.write_bytes(pem + b"".join(ssl.DER_cert_to_PEM_cert(der).encode() for der in ders))
    context = tls.pairing_client_context()
    context.load_cert_chain(path)
    return context


STRANGERS: dict[str, Callable[[Path], ssl.SSLContext]] = {
    "no certificate": lambda _: tls.pairing_client_context(),
    "unknown": lambda folder: showing(folder, STRANGER, tls.certificate_of(STRANGER)),
    "minted by a peer": lambda folder: showing(folder, STRANGER, minted(PEER, subject=STRANGER)),
    "minted, with its issuer": lambda folder: showing(
        folder, STRANGER, minted(PEER, subject=STRANGER), PEER_DER
    ),
    "minted as an authority": lambda folder: showing(
        folder, STRANGER, minted(PEER, subject=STRANGER, ca=True), PEER_DER
    ),
    "minted in another peer's name": lambda folder: showing(
        folder, STRANGER, minted(PEER, subject=OTHER_PEER), PEER_DER
    ),
    "self-signed in a peer's name": lambda folder: showing(
        folder, STRANGER, minted(STRANGER, subject=PEER)
    ),
    "signed by itself as a peer": lambda folder: showing(
        folder, STRANGER, minted(PEER, subject=PEER)
    ),
}


class Listener:
    """A server on loopback that notes the key of whoever enters its handler."""

    def __init__(self) -> None:
        self.entered: list[DeviceId | None] = []
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Note the caller, greet, and close."""
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        self.entered.append(tls.key_of_certificate(der) if der else None)
        writer.write(b"welcome")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(context: ssl.SSLContext) -> AsyncIterator[Listener]:
    """A ``Listener`` with this context."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    listener = Listener()
    server = await asyncio.start_server(listener.handle, "127.0.0.1", 0, ssl=context)
    listener.port = server.sockets[0].getsockname()[1]
    async with server:
        yield listener


async def hung_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection that the other side may have closed in its own way."""
    writer.close()
    with suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()


async def greeting(port: int, context: ssl.SSLContext) -> bytes:
    """What the server says to a client with this context; empty if it hangs up."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            writer.write(b"hello")
            return await reader.read()
        finally:
            await hung_up(writer)
    except (ssl.SSLError, ConnectionError):
        return b""


def knowing(*ders: bytes) -> ssl.SSLContext:
    """The server's context with these peers."""
    return tls.server_context(SERVER, ders)


async def test_X_17_a_known_peer_is_let_in() -> None:
    """Each side has checked the other's certificate when the handler runs."""
    contexts = [tls.client_context(key, SERVER_DER) for key in (PEER, OTHER_PEER)]
    async with listening(knowing(PEER_DER, OTHER_DER)) as listener:
        assert [await greeting(listener.port, c) for c in contexts] == [b"welcome", b"welcome"]
    assert listener.entered == [PEER.device, OTHER_PEER.device]


@pytest.mark.parametrize("who", STRANGERS)
async def test_X_17_X_18_X_19_nobody_else_reaches_the_handler(who: str, tmp_path: Path) -> None:
    """No certificate, an unknown one, and every kind that a peer could make for others."""
    stranger = await asyncio.to_thread(STRANGERS[who], tmp_path)
    async with listening(knowing(PEER_DER, OTHER_DER)) as listener:
        assert await greeting(listener.port, stranger) == b""
        assert listener.entered == []
        known = tls.client_context(PEER, SERVER_DER)
        assert await greeting(listener.port, known) == b"welcome"


async def test_a_server_without_peers_lets_nobody_in() -> None:
    """An empty list of peers is not an open door."""
    async with listening(knowing()) as listener:
        assert await greeting(listener.port, tls.client_context(PEER, SERVER_DER)) == b""
    assert listener.entered == []


def test_X_20_a_certificate_needs_its_key(tmp_path: Path) -> None:
    """A peer cannot show another peer's certificate with a key of its own."""
    showing(tmp_path, PEER, PEER_DER)
    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        showing(tmp_path, PEER, OTHER_DER)


@pytest.mark.parametrize("answers", [OTHER_PEER, STRANGER])
async def test_a_client_talks_to_the_one_device_it_means(answers: DeviceKey) -> None:
    """Another device at the address is refused by the client, peer or not."""
    meant = tls.client_context(PEER, SERVER_DER)
    async with listening(tls.server_context(answers, [PEER_DER])) as listener:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", listener.port, ssl=meant)
        right = tls.client_context(PEER, tls.certificate_of(answers))
        assert await greeting(listener.port, right) == b"welcome"


async def test_a_client_refuses_a_server_certificate_minted_by_its_peer(tmp_path: Path) -> None:
    """What the peer signs for another device does not stand for the peer."""
    imposter = await asyncio.to_thread(
        showing, tmp_path, STRANGER, minted(SERVER, subject=SERVER), SERVER_DER
    )
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    await asyncio.to_thread(served.load_cert_chain, tmp_path / "shown.pem")
    del imposter
    async with listening(served) as listener:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", listener.port, ssl=tls.client_context(PEER, SERVER_DER)
            )


async def test_the_joiner_learns_the_leaf_and_shows_nothing() -> None:
    """Pairing connects two devices that do not know each other; the leaf names the opener."""
    async with listening(tls.pairing_server_context(SERVER)) as listener:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=tls.pairing_client_context()
        )
        leaf = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert tls.key_of_certificate(leaf) == SERVER.device
        assert await reader.read() == b"welcome"
        await hung_up(writer)
    assert listener.entered == [None]


async def test_only_tls_1_3_is_spoken() -> None:
    """An older version is refused before anything else."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with listening(tls.pairing_server_context(SERVER)) as listener:
        assert await greeting(listener.port, old) == b""
        assert await greeting(listener.port, tls.pairing_client_context()) == b"welcome"


async def trace(port: int, context: ssl.SSLContext) -> tuple[int, bytes, str]:
    """What a client sees: bytes of the server's flight, everything after its own, how it ended."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(into, out)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    flight = 0
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(out.read())
            data = await reader.read(65_536)
            assert data, "the server hung up inside its own flight"
            flight += len(data)
            into.write(data)
    writer.write(out.read())
    after, ended = b"", "closed"
    try:
        while data := await reader.read(65_536):
            after += data
            into.write(data)
            with suppress(ssl.SSLWantReadError):
                ended = client.read().decode()
                break
    except (ssl.SSLError, ConnectionError) as error:
        ended = type(error).__name__
    await hung_up(writer)
    return flight, after, ended


async def test_strangers_cannot_tell_why_they_are_refused(tmp_path: Path) -> None:
    """Without a certificate, with an unknown and with a minted one: not a byte differs.

    OpenSSL prepares one alert for no certificate and another for the rest; asyncio drops either
    with the connection. This fails should an asyncio to come send them.
    """
    contexts = {who: await asyncio.to_thread(make, tmp_path) for who, make in STRANGERS.items()}
    async with listening(knowing(PEER_DER, OTHER_DER)) as listener:
        seen = {who: await trace(listener.port, context) for who, context in contexts.items()}
        flight, after, ended = await trace(listener.port, tls.client_context(PEER, SERVER_DER))
    assert set(seen.values()) == {(flight, b"", "closed")}
    assert (len(after) > len(b"welcome"), ended) == (True, "welcome")


async def test_the_server_does_not_tell_whom_it_knows() -> None:
    """Its flight is as long with no peers as with many: it sends no list of authorities."""
    flights = []
    for count in (0, 1, 20):
        keys = [DeviceKey(bytes([100 + n]) * 32) for n in range(count)]
        async with listening(knowing(*map(tls.certificate_of, keys))) as listener:
            flights.append((await trace(listener.port, tls.pairing_client_context()))[0])
    assert len(set(flights)) == 1


async def test_no_session_is_resumed() -> None:
    """A peer that was removed has nothing left to come back with: no ticket is given out."""
    async with listening(knowing(PEER_DER)) as listener:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=tls.client_context(PEER, SERVER_DER)
        )
        assert await reader.read() == b"welcome"
        session = writer.get_extra_info("ssl_object").session
        await hung_up(writer)
    assert session is None or not session.has_ticket


async def test_a_context_is_made_without_blocking_the_loop() -> None:
    """A running node rebuilds its context when a peer is removed."""
    knowing(PEER_DER)
    tls.client_context(PEER, SERVER_DER)
    tls.pairing_server_context(SERVER)


@pytest.mark.parametrize("ders", [[b""], [PEER_DER, PEER_DER[:-1]], [minted(PEER, subject=PEER)]])
def test_only_device_certificates_are_trusted(ders: Iterable[bytes]) -> None:
    """A certificate of another form would be an authority in disguise."""
    with pytest.raises(BadInput):
        tls.server_context(SERVER, ders)


def test_without_memory_files_the_key_passes_through_the_keys_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is closed to others while it is there, and gone at once."""
    monkeypatch.delattr(os, "memfd_create")
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def noting(self: ssl.SSLContext, path: str) -> None:
        modes.append((Path(path).parent, Path(path).stat().st_mode & 0o777))
        load(self, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", noting)
    tls.server_context(SERVER, [PEER_DER], keys_dir=tmp_path)
    assert (modes, list(tmp_path.iterdir())) == ([(tmp_path, 0o600)], [])
    with pytest.raises(KeyFileError):
        tls.server_context(SERVER, [PEER_DER])
    with pytest.raises(KeyFileError):
        tls.server_context(SERVER, [PEER_DER], keys_dir=tmp_path / "missing")
