"""Who is no peer gets nothing: no handler is entered, and no path changes what comes back."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from keys.signing import DeviceKey
from keys.tls import certificate_of, client_context
from node.server import PEER_CONNECTIONS_MAX
from sync.messages import CONTENT_TYPE, VERSIONS, Hello
from tests.support.peers import PASSPHRASE, Node, befriend, running, until_true
from tests.support.strangers import (
    answer_to,
    borrowed,
    minted,
    no_certificate,
    own_certificate,
    request,
)

PATHS = ["/", "/v1/hello", "/v1/watch", "/v1/agents/x/pull", "/nowhere", "/" + "a" * 3_000]


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that reached the first line of ours that sees one."""
    seen: list[str] = []
    import node.server

    real = node.server.SyncServer._answered

    async def spy(self: object, request: object) -> object:
        seen.append(str(request))
        return await real(self, request)  # type: ignore[arg-type]

    monkeypatch.setattr(node.server.SyncServer, "_answered", spy)
    return seen


async def _answers(node: Node, context: ssl.SSLContext | None) -> set[bytes]:
    sent = [request(method, path) for path in PATHS for method in ("GET", "POST", "PUT")]
    sent += [b"\0" * 100, b"nonsense\r\n\r\n"]
    return {await answer_to(node.address, data, context) for data in sent}


async def test_x_17_without_a_certificate_no_handler_is_entered(
    two: list[Node], entered: list[str]
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await b.stop()
        entered.clear()
        assert await _answers(a, no_certificate()) == {b""}
        assert entered == []


async def test_x_18_a_certificate_of_somebody_else_gets_the_same_nothing(
    two: list[Node], entered: list[str]
) -> None:
    a, b = two
    stranger = own_certificate(DeviceKey.generate())
    async with running(a, b):
        await befriend(a, b)
        await b.stop()
        entered.clear()
        assert await _answers(a, stranger) == {b""}
        assert entered == []


async def test_x_18_our_own_certificate_gets_refusals_alone(two: list[Node]) -> None:
    """A copy of this device may say hello, so that each hears of the other (S-A7); no more."""
    a, _ = two
    async with running(a):
        context = await asyncio.to_thread(own_certificate, a.core.key)
        answers = await _answers(a, context)
        assert {answer.split(b" ")[1] for answer in answers if answer} == {b"400", b"404"}


async def test_x_19_a_certificate_that_a_peer_signed_for_another_gets_the_same_nothing(
    two: list[Node], entered: list[str], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await b.stop()
        entered.clear()
        context = await asyncio.to_thread(minted, b.core.key, tmp_path)
        assert await _answers(a, context) == {b""}
        assert entered == []


async def test_x_20_the_certificate_of_a_peer_without_its_key_cannot_even_be_shown(
    two: list[Node], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(borrowed, certificate_of(b.core.key), tmp_path)


async def test_plain_http_gets_one_and_the_same_answer_on_every_path(
    two: list[Node], entered: list[str]
) -> None:
    a, _ = two
    async with running(a):
        assert len(await _answers(a, None)) == 1
        assert entered == []


async def test_x_24_sessions_are_not_resumed_so_every_connection_is_checked(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        host, port = a.address.split(":")
        reader, writer = await asyncio.open_connection(
            host, int(port), ssl=context, server_hostname=""
        )
        writer.write(request("GET", "/nowhere"))
        assert b" 404 " in await reader.read()
        encrypted = writer.get_extra_info("ssl_object")
        assert not encrypted.session.has_ticket
        assert not encrypted.session_reused
        writer.close()
        await writer.wait_closed()


async def test_a_removed_peer_is_cut_off_and_let_in_no_more(
    two: list[Node], entered: list[str]
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await until_true(lambda: a.network._exchange.peer(b.core.device).watching)
        await a("peers.remove", device=b.device)
        await until_true(lambda: not b.network._exchange.peer(a.core.device).linked, timeout_s=30.0)
        entered.clear()
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        assert await _answers(a, context) == {b""}
        assert entered == []


async def test_peers_that_stay_are_not_disturbed_when_another_is_removed(
    three: list[Node],
) -> None:
    a, b, c = three
    async with running(a, b, c):
        await befriend(a, b, c)
        linked = a.network._exchange.peer
        await until_true(lambda: linked(b.core.device).watching and linked(c.core.device).watching)
        await a("peers.remove", device=c.device)
        assert linked(b.core.device).watching
        assert (await b("sync", peer=a.device))["peers"][0].get("error") is None


async def test_s_m4_silent_strangers_do_not_keep_peers_out(
    two: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.server.ADMITTING_MAX", 8)
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        host, port = a.address.split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(30)]
        done = await b("sync", peer=a.device)
        assert done["peers"][0].get("error") is None
        for _, writer in silent:
            writer.close()


async def test_x_59_no_right_and_no_such_agent_get_the_same_bytes(two: list[Node]) -> None:
    """S-I6: whoever asks by the exact id learns nothing either."""
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await a("agent.create", name="secret", passphrase=PASSPHRASE)
        real = str(a.handle("secret").agent)
        unknown = real[:-4] + ("0000" if real[-4:] != "0000" else "1111")
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        empty = {
            "statements": b"\x82\xa4have\x90\xa5proof\x90",
            "pull": b"\x83\xa4have\x90\xa5limit\x01\xa4skip\x90",
            "payloads": b"\x81\xa4want\x90",
        }
        for verb, body in empty.items():
            got = [
                await answer_to(a.address, request("POST", f"/v1/agents/{x}/{verb}", body), context)
                for x in (real, unknown, "nonsense", real.upper())
            ]
            assert len(set(got)) == 1, verb
            assert got[0].startswith(b"HTTP/1.1 404 ")
            assert got[0].endswith(b"\x81\xa5error\xa9not_found")


async def test_x_59_a_hello_names_no_agent_that_the_peer_may_not_read(two: list[Node]) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await a("agent.create", name="secret", passphrase=PASSPHRASE)
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        said = Hello(VERSIONS, "b", bytes(16), 0, (), ())
        got = await answer_to(
            a.address,
            request("POST", "/v1/hello", said.encode(), more=f"Content-Type: {CONTENT_TYPE}\r\n"),
            context,
        )
        assert Hello.decode(got.partition(b"\r\n\r\n")[2]).agents == ()
        assert bytes(a.handle("secret").agent) not in got


async def test_x_28_a_body_over_its_bound_is_refused_before_it_is_read(two: list[Node]) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        head = b"POST /v1/hello HTTP/1.1\r\nHost: roost\r\nContent-Length: 1048577\r\n\r\n"
        got = await answer_to(a.address, head, context)
        assert got.startswith(b"HTTP/1.1 413 ")


async def test_one_peer_has_a_bounded_number_of_connections_and_the_newest_works(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await b.network.stop()
        context = await asyncio.to_thread(client_context, b.core.key, certificate_of(a.core.key))
        host, port = a.address.split(":")
        opened = [
            await asyncio.open_connection(host, int(port), ssl=context, server_hostname="")
            for _ in range(PEER_CONNECTIONS_MAX + 4)
        ]
        reader, writer = opened[-1]
        writer.write(request("GET", "/nowhere"))
        assert b" 404 " in await reader.read()
        assert sum(r.at_eof() or r.exception() is not None for r, _ in opened[:-1]) >= 4
        for _, writer in opened:
            writer.transport.abort()
