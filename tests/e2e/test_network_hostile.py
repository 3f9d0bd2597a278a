"""A peer that answers wrong: compressed, elsewhere, without end, or with what does not verify."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from pathlib import Path

import pytest

from keys.signing import DeviceKey
from sync.frames import Totals, pack
from sync.messages import CONTENT_TYPE, VERSIONS, Hello, SharedAgent
from tests.support.peers import (
    PASSPHRASE,
    Node,
    befriend,
    equal,
    holds,
    remember,
    running,
    share,
    until_true,
)
from tests.support.strangers import Talk, enter, impostor, read_request

BOMB_BYTES = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A small compressed body that is a large one."""
    return gzip.compress(bytes(BOMB_BYTES), 9)


def _answering(head: str, body: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return talk


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _error_of(node: Node) -> str:
    """The code of the error of one round."""
    done = await node("sync")
    return str(done["peers"][0]["error"]["code"])


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_x_27_a_compressed_answer_is_neither_unpacked_nor_taken(
    two: list[Node], bomb: bytes, coding: str
) -> None:
    a, _ = two
    key = DeviceKey.generate()
    talk = _answering(f"200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Encoding: {coding}", bomb)
    async with running(a), impostor(key, a, talk) as address:
        await enter(a, key, address)
        assert await _error_of(a) == "bad_stream"
        assert a.network._exchange.counters.bytes < 10_000


async def test_x_30_a_redirect_is_not_followed(two: list[Node]) -> None:
    a, _ = two
    key = DeviceKey.generate()
    called: list[int] = []

    async def victim(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append(1)
        writer.close()

    server = await asyncio.start_server(victim, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for status in ("301 Moved", "302 Found", "307 Temporary", "308 Permanent"):
        talk = _answering(f"{status}\r\nLocation: http://127.0.0.1:{port}/v1/hello", b"")
        async with running(a), impostor(key, a, talk) as address:
            await enter(a, key, address)
            assert await _error_of(a) == "bad_stream"
    assert called == []
    server.close()


async def test_x_31_an_answer_without_end_is_ended_by_its_bytes(two: list[Node]) -> None:
    a, _ = two
    key = DeviceKey.generate()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nTransfer-Encoding: chunked\r\n"
        writer.write(head.encode() + b"\r\n")
        while True:
            writer.write(_chunk(bytes(65_536)))
            await writer.drain()

    async with running(a), impostor(key, a, talk) as address:
        await enter(a, key, address)
        assert await _error_of(a) == "bad_stream"


async def test_x_31_an_answer_without_end_is_ended_by_its_time(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.peerlink.DIAL_S", 0.4)
    a, _ = two
    key = DeviceKey.generate()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nTransfer-Encoding: chunked\r\n"
        writer.write(head.encode() + b"\r\n")
        while True:
            writer.write(_chunk(b"."))
            await writer.drain()
            await asyncio.sleep(0.02)

    async with running(a), impostor(key, a, talk) as address:
        await enter(a, key, address)
        async with asyncio.timeout(3):
            assert await _error_of(a) == "unreachable"


async def test_x_31_a_pull_without_end_is_ended_by_its_time(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers before it are what they should be: the peer shares an agent that we have."""
    monkeypatch.setattr("node.receiving.PULL_S", 0.4)
    a, b = two
    pulls: list[int] = []
    async with running(a, b):
        await befriend(a, b)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await share(a, "muse", b, "read", "write")
        handle = a.handle("muse")
        statements = await handle.read(lambda store: store.statements_digest())
        shared = SharedAgent(handle.agent, bytes(32), statements)
        key = b.core.key
        await b.stop()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                asked = await read_request(reader)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\n"
                if b"/hello" in asked:
                    body = Hello(VERSIONS, "b", bytes(16), 0, (), (shared,)).encode()
                    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    continue
                writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
                pulls.append(1)
                writer.write(_chunk(pack(Totals(5, 0))))
                while True:
                    await writer.drain()
                    await asyncio.sleep(0.02)

        async with impostor(key, a, talk) as address:
            await enter(a, key, address)
            async with asyncio.timeout(5):
                assert await _error_of(a) == "unreachable"
        assert pulls


async def test_another_device_behind_a_peers_address_sees_no_request(two: list[Node]) -> None:
    """X-11: what an advert or an old address leads to is compared before anything is sent."""
    a, b = two
    other = DeviceKey.generate()
    got: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        got.append(await reader.read())

    async with running(a, b), impostor(other, a, talk) as address:
        await enter(a, b.core.key, address)
        assert await _error_of(a) == "unreachable"
        assert b"".join(got) == b""


async def test_the_leafs_key_is_compared_even_if_tls_let_another_pass(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two checks, with the first one taken away."""
    from tests.support.strangers import own_certificate

    monkeypatch.setattr(
        "node.peerlink.client_context", lambda key, _der, keys_dir: own_certificate(key)
    )
    a, b = two
    other = DeviceKey.generate()
    got: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        got.append(await reader.read())

    async with running(a, b), impostor(other, a, talk) as address:
        await enter(a, b.core.key, address)
        assert await _error_of(a) == "wrong_device"
        assert b"".join(got) == b""


async def test_one_damaged_log_is_set_aside_and_the_others_arrive(
    three: list[Node], tmp_path: Path
) -> None:
    a, b, c = three
    async with running(a, b, c) as tasks:
        await befriend(a, b)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await share(a, "muse", b, "read", "write")
        bad = await remember(a, "muse", "will be damaged on the disk of a")
        good = await remember(b, "muse", "in another log")
        await equal("muse", a, b)
        await b.stop()
        await a.stop()
        await asyncio.to_thread(_damage, tmp_path / "a")
        await a.start(tasks)
        await befriend(a, c)
        await a("grant", agent="muse", subject=c.device, rights=["read"], passphrase=PASSPHRASE)
        await until_true(lambda: c.said("agent.offered"))
        await c("agent.accept", agent="muse", passphrase=PASSPHRASE)
        await until_true(lambda: holds(c, "muse", good))
        assert not await holds(c, "muse", bad)
        assert [line["reason"] for line in c.said("sync.refused")] == ["quarantined"]
        (peer,) = (await c("peers"))["peers"]
        assert peer["agents"][0]["reason"] == "quarantined"


def _damage(home: Path) -> None:
    """Flip a bit in the newest payload of the home's own log."""
    (path,) = (home / "agents").glob("*.db")
    connection = sqlite3.connect(path)
    number, payload = connection.execute(
        "SELECT entry.id, payload FROM entry JOIN log ON log.id = entry.log"
        " WHERE log.device != (SELECT device FROM log ORDER BY id DESC LIMIT 1)"
        " ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    damaged = payload[:-1] + bytes([payload[-1] ^ 1])
    connection.execute("UPDATE entry SET payload = ? WHERE id = ?", (damaged, number))
    connection.commit()
    connection.close()


async def test_r32_a_payload_that_is_nowhere_here_is_asked_of_a_peer(
    two: list[Node], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await befriend(a, b)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await share(a, "muse", b, "read")
        await remember(a, "muse", "the payload gets lost on b")
        await equal("muse", a, b)
        await b.stop()
        await asyncio.to_thread(_lose_payloads, tmp_path / "b")
        await b.start(tasks)

        async def nothing_missing() -> bool:
            return await b.handle("muse").read(lambda store: store.wants(10)) == []

        await until_true(nothing_missing)
        await equal("muse", a, b)


def _lose_payloads(home: Path) -> None:
    """Drop the payloads of every memory, and keep the headers."""
    (path,) = (home / "agents").glob("*.db")
    connection = sqlite3.connect(path)
    lost = connection.execute("UPDATE entry SET payload = NULL WHERE payload_kind = 1").rowcount
    connection.commit()
    connection.close()
    assert lost > 0
