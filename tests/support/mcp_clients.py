"""The SDK's own client on ``roost mcp`` and on a node's listener."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from mcp.client import stdio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.support.cluster import WAIT_S, Node

# The SDK gives a process two seconds to end, then kills it: on a busy machine that is no time.
stdio.PROCESS_TERMINATION_TIMEOUT = WAIT_S


def over_stdio(node: Node, **client: Any) -> Client:
    """A client that starts ``roost mcp`` for muse."""
    command, *args = node.argv("mcp", "--agent", "muse")
    return Client(StdioServerParameters(command=command, args=args, env=node.environ), **client)


@contextlib.asynccontextmanager
async def over_http(address: str, token: str, mode: Any = "auto") -> AsyncIterator[Client]:
    """A client of the listener at ``address``."""
    headers = {"Authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"http://{address}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def use(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; it must succeed."""
    done = await client.call_tool(tool, arguments)
    assert not done.is_error, done.content
    assert isinstance(done.structured_content, dict)
    last = done.content[-1]
    assert json.loads(getattr(last, "text", "")).items() <= done.structured_content.items()
    return done.structured_content


async def misuse(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a tool that must fail."""
    done = await client.call_tool(tool, arguments)
    assert done.is_error, done.structured_content
    assert isinstance(done.structured_content, dict)
    found: dict[str, Any] = done.structured_content["error"]
    return found
