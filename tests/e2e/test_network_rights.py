"""Rights while connections are open: given and taken within a second, on every node."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from keys.tls import certificate_of, client_context
from sync.frames import Failure, FrameReader, Run, parse
from sync.messages import PullRequest
from tests.support.peers import (
    PASSPHRASE,
    Node,
    befriend,
    equal,
    holds,
    pair,
    remember,
    running,
    share,
    until_true,
)
from tests.support.strangers import request

BIG = 150_000
MANY = 10


async def _shared(a: Node, *others: Node) -> None:
    await befriend(a, *others)
    await a("agent.create", name="muse", passphrase=PASSPHRASE)
    for other in others:
        await share(a, "muse", other, "read", "write")


async def _revoke(node: Node, other: Node) -> None:
    await node("revoke", agent="muse", subject=other.device, passphrase=PASSPHRASE)


async def test_s_i5_a_grant_taken_or_given_is_felt_by_an_open_session_within_a_second(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b):
        await _shared(a, b)
        await _revoke(a, b)
        hidden = await remember(a, "muse", "after the removal")
        await until_true(lambda: not _holds_right(b, b), timeout_s=30.0)  # it was told, by whom
        await asyncio.sleep(0.3)
        assert not await holds(b, "muse", hidden)
        assert (await b("sync"))["pulled"] == 0
        await a("grant", agent="muse", subject=b.device, rights=["read"], passphrase=PASSPHRASE)
        await until_true(lambda: holds(b, "muse", hidden), timeout_s=30.0)


def _holds_right(node: Node, other: Node) -> bool:
    return node.handle("muse").store.authority.holds_device(other.core.device, "read").held


async def test_x_63_a_running_transfer_is_cut_within_a_second(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.server.WRITE_BYTES", 16_384)
    a, b = two
    async with running(a, b):
        await _shared(a, b)
        await b.stop()
        a.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        for i in range(MANY):
            await remember(a, "muse", f"{i} " + "x" * BIG)
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        host, port = a.address.split(":")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        slow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(slow, (host, int(port)))
        reader, writer = await asyncio.open_connection(
            sock=slow, ssl=context, server_hostname="", limit=16_384
        )
        path = f"/v1/agents/{a.handle('muse').agent}/pull"
        writer.write(request("POST", path, PullRequest({}).encode()))
        got = await reader.read(1_000)  # and then no more: the server has to wait
        await asyncio.sleep(0.2)
        await _revoke(a, b)
        async with asyncio.timeout(1.0):
            while part := await reader.read(1_000_000):
                got += part
        frames = _frames(_unchunked(got.partition(b"\r\n\r\n")[2]))
        assert frames[-1] == Failure("not_found")
        assert 1 <= sum(isinstance(f, Run) for f in frames) < MANY / 2
        writer.close()


def _unchunked(data: bytes) -> bytes:
    out = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        out += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return out


def _frames(data: bytes) -> list[object]:
    reader = FrameReader()
    reader.feed(data)
    return [parse(body) for body in iter(reader.next_body, None)]


async def test_x_63_a_device_that_was_removed_as_a_peer_is_cut_in_the_middle(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b):
        await _shared(a, b)
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        host, port = a.address.split(":")
        reader, writer = await asyncio.open_connection(
            host, int(port), ssl=context, server_hostname=""
        )
        writer.write(request("GET", "/v1/watch"))
        await reader.readuntil(b"beat")
        await a("peers.remove", device=b.device)
        async with asyncio.timeout(1.0):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b"\r\n"
        writer.close()


async def test_s_i2_a_third_node_that_learnt_of_a_removal_serves_nothing_newer(
    three: list[Node],
) -> None:
    a, b, c = three
    async with running(a, b, c):
        await _shared(a, b, c)
        await _revoke(a, b)
        await until_true(lambda: not _holds_right(c, b))
        hidden = await remember(a, "muse", "not for b any more")
        await until_true(lambda: holds(c, "muse", hidden))
        assert (await b("sync", peer=c.device))["pulled"] == 0
        assert not await holds(b, "muse", hidden)


async def test_s_i2_peers_that_have_not_confirmed_a_removal_are_listed(three: list[Node]) -> None:
    a, b, c = three
    async with running(a, b, c):
        await _shared(a, b, c)

        async def unconfirmed() -> list[str]:
            return list((await a("permissions", agent="muse"))["unconfirmed"])

        async def everybody() -> bool:
            return await unconfirmed() == []

        await until_true(everybody)
        await c.stop()
        await _revoke(a, b)
        assert await unconfirmed() == [c.device]


async def test_r25_a_grant_that_the_server_has_not_heard_of_is_brought_along(
    three: list[Node],
) -> None:
    """c was granted the agent on a; b holds it too, and has not met a since."""
    a, b, c = three
    async with running(a, b, c):
        await _shared(a, b)
        await a("peers.remove", device=b.device)
        await b("peers.remove", device=a.device)
        await befriend(a, c)
        await share(a, "muse", c, "read")
        await remember(b, "muse", "only b has this")
        await befriend(b, c)
        await equal("muse", b, c)


async def test_r25_a_new_value_key_reaches_those_who_stay(three: list[Node]) -> None:
    a, b, c = three
    async with running(a, b, c):
        await _shared(a, b, c)
        await _revoke(a, b)
        await remember(a, "muse", "under the new key")
        await equal("muse", a, c)
        assert len(c.handle("muse").store.keys) == 2
        assert len(b.handle("muse").store.keys) == 1


async def test_a_lost_device_of_the_owner_is_cut_off_by_every_other(three: list[Node]) -> None:
    a, b, c = three
    async with running(a, b, c) as tasks:
        await pair(a, b, tasks)
        await pair(a, c, tasks)
        await befriend(b, c)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await equal("muse", a, b, c)
        await a("devices.revoke", device=b.device, passphrase=PASSPHRASE)
        await until_true(lambda: not _holds_right(c, b))
        hidden = await remember(c, "muse", "not for the lost one")
        await until_true(lambda: holds(a, "muse", hidden))
        for peer in (a, c):
            assert (await b("sync", peer=peer.device))["pulled"] == 0
        assert not await holds(b, "muse", hidden)
        await c("agent.create", name="clio", passphrase=PASSPHRASE)
        await equal("clio", a, c)
        assert not any(h.name == "clio" for h in b.core.agents.all())
