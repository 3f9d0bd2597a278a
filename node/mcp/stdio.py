"""``roost mcp``: the server on standard input and output, for one agent of this account.

It opens no database: every call goes through the socket of the running node, and a node is started
in the background where none runs. So any number of such processes share one writer (M-H2).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp.server.stdio import stdio_server

from keys.signing import random_bytes
from node.background import ensure
from node.caller import Credential
from node.client import Client
from node.mcp.server import make_server
from node.mcp.serving import Subscribed
from node.mcp.tools import Call


def serve_stdio(home: Path, credential: Credential) -> None:
    """Serve until standard input ends; raises ``RoostError`` where there is no such agent."""
    asyncio.run(_serve(home, credential))


async def _serve(home: Path, credential: Credential) -> None:
    client = Client(home, ensure, as_said(credential) | {"run": random_bytes(16).hex()})
    await client.call("session.about", {})  # a wrong name is told of before a session begins
    subscribed = Subscribed(_call(client))
    server = make_server(lambda _context: _call(client), _say_fault, subscribed)
    async with asyncio.TaskGroup() as tasks, stdio_server() as (receive, send):
        telling = tasks.create_task(subscribed.run(), name="tell of changes")
        await server.run(receive, send, server.create_initialization_options())
        telling.cancel()


def as_said(credential: Credential) -> dict[str, str]:
    """What the account says of itself: for which agent it speaks, and in what session."""
    said = {
        "agent": credential.agent,
        "session": credential.session,
        "channel": credential.channel,
        "profile": credential.profile,
    }
    return {k: v for k, v in said.items() if v is not None}


def _call(client: Client) -> Call:
    async def call(verb: str, params: dict[str, Any]) -> dict[str, Any]:
        return await client.call(verb, params)

    return call


def _say_fault(exc: BaseException) -> None:
    sys.stderr.write(f"roost mcp: a fault in Roost itself ({type(exc).__name__})\n")
