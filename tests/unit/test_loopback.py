"""The API for agents, before there are tokens: bound to this machine, closed to pages."""

import asyncio
from typing import Any

import pytest

from keys.errors import RoostError
from node.caller import ACCOUNT, Credential
from node.callers import TokenError
from node.clock import SystemClock
from node.journal import Journal
from node.loopback import LoopbackApi
from node.service import Emit

WAIT_S = 10.0


class Nobody:
    """A dispatch that knows no token."""

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        raise TokenError("no token that is in force")


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("{address}", None, 401),
        ("localhost:{port}", None, 401),
        ("{address}", "http://evil.example", 403),
        ("{address}", "null", 403),
        ("evil.example", None, 403),
        ("127.0.0.1.evil:{port}", None, 403),
        ("127.0.0.1:{port}0", None, 403),
        ("127.0.0.1", None, 403),
        (None, None, 403),
    ],
)
async def test_X_83_to_X_85_no_page_gets_an_answer_from_the_api_for_agents(
    host: str | None, origin: str | None, status: int
) -> None:
    """Foreign hosts and any origin are refused; everybody else needs a token."""
    api = LoopbackApi("127.0.0.1:0", Nobody(), Journal(lambda _line: None, SystemClock()))
    async with asyncio.TaskGroup() as tasks:
        await api.start(tasks)
        name, _, port = api.address.rpartition(":")
        lines = ["POST /v1/call HTTP/1.0", "Content-Length: 0"]
        lines += [f"Host: {host.format(address=api.address, port=port)}"] if host else []
        lines += [f"Origin: {origin}"] if origin else []
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        await api.stop()
        await api.stop()
    assert int(answer.split(b" ")[1]) == status
    assert b"access-control" not in answer.lower()
    assert (b"www-authenticate: bearer" in answer.lower()) is (status == 401)


@pytest.mark.parametrize("given", ["0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "host:0", "7667"])
def test_X_86_the_api_for_agents_is_never_offered_to_the_network(given: str) -> None:
    """Only a loopback host is taken."""
    with pytest.raises(RoostError):
        LoopbackApi(given, Nobody(), Journal(lambda _line: None, SystemClock()))
