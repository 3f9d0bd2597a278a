"""Pairing over real TLS: the leaf the joiner saw is the device that it pairs with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from keys import tls
from keys.errors import PairingError, RoostError
from keys.pair_code import Offer
from keys.pair_messages import encode_refused
from keys.pairing import Done, Joiner, Opener
from tests.support.pairing import DESK, JOINER, NOW, OPENER, PHONE, offer, wrong


async def read(reader: asyncio.StreamReader) -> bytes:
    """One message in a frame of four length bytes."""
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def write(writer: asyncio.StreamWriter, message: bytes) -> None:
    """One message in its frame."""
    writer.write(len(message).to_bytes(4, "big") + message)


@asynccontextmanager
async def opened(shown: Offer, openers: list[Opener]) -> AsyncIterator[int]:
    """The pairing listener of the opener; the machines of its connections go to ``openers``."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opener = Opener(OPENER, DESK, shown)
        openers.append(opener)
        try:
            while not isinstance(opener.state, Done):
                write(writer, opener.receive(await read(reader), NOW))
        except RoostError as error:
            write(writer, encode_refused(error))
        await writer.drain()
        writer.close()

    context = tls.pairing_server_context(OPENER)
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def join(port: int, code: str) -> Joiner:
    """The joiner's side of one connection, to its end."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls.pairing_client_context()
    )
    try:
        leaf = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        joiner = Joiner(JOINER, PHONE, tls.key_of_certificate(leaf), code)
        message: bytes | None = joiner.start()
        while message is not None:
            write(writer, message)
            message = joiner.receive(await read(reader))
        return joiner
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_two_devices_pair_and_then_know_each_other() -> None:
    """The certificates they learned let each into the other's port for sync."""
    shown, openers = offer(), list[Opener]()
    async with opened(shown, openers) as port:
        joiner = await join(port, shown.code)
    assert joiner.paired.device == OPENER.device
    assert openers[0].paired.device == JOINER.device
    tls.server_context(OPENER, [openers[0].paired.certificate])
    tls.client_context(JOINER, joiner.paired.certificate)


async def test_a_wrong_code_is_seen_on_both_sides() -> None:
    """The joiner is told why, and the code is dead for the next."""
    shown, openers = offer(), list[Opener]()
    async with opened(shown, openers) as port:
        for code, reason in ((wrong(shown.code), "wrong_code"), (shown.code, "spent")):
            with pytest.raises(PairingError) as caught:
                await join(port, code)
            assert caught.value.details == {"reason": reason, "by": "them"}
    assert not shown.is_open
