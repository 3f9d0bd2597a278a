"""Streamable HTTP: the SDK's transport behind the listener that checks Host, Origin and token.

The listener is aiohttp's, the transport speaks ASGI; what is between them is here. A session
belongs to the token that began it.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any, Final

from aiohttp import web
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from node.caller import Credential
from node.journal import Journal
from node.mcp.server import make_server
from node.mcp.serving import Context
from node.mcp.tools import Call
from node.service import Dispatch

SESSIONS_MAX: Final = 256
BODY_BYTES_MAX: Final = 1024 * 1024
_HOP_HEADERS: Final = frozenset({b"connection", b"content-length", b"transfer-encoding"})


class McpHttp:
    """Answers requests at ``/mcp``, each with a token that is in force."""

    def __init__(self, dispatch: Dispatch, journal: Journal) -> None:
        self._dispatch, self._journal = dispatch, journal
        self._server = make_server(self._call_of, lambda exc: journal.error("mcp.failed", exc))
        self._manager = StreamableHTTPSessionManager(
            self._server, max_sessions=SESSIONS_MAX, max_request_body_size=BODY_BYTES_MAX
        )
        self._begun, self._ending = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Be ready for sessions."""
        self._task = tasks.create_task(self._run(), name="mcp sessions")
        await self._begun.wait()

    async def stop(self) -> None:
        """End every session."""
        self._ending.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        async with self._manager.run():
            self._begun.set()
            await self._ending.wait()

    def _call_of(self, context: Context) -> Call:
        bearer = context.request.user.access_token.token if context.request is not None else ""
        run = context.request.headers.get("mcp-session-id") if context.request is not None else None
        credential = Credential(bearer=bearer, run=run or "http")

        async def call(verb: str, params: dict[str, Any]) -> dict[str, Any]:
            return await self._dispatch.call(verb, params, None, credential)

        return call

    async def handle(self, request: web.Request, bearer: str, token: str) -> web.StreamResponse:
        """Answer one request of the holder of ``bearer``, whose token's id is ``token``."""
        exchange = _Exchange(request, await request.read())
        user = AuthenticatedUser(AccessToken(token=bearer, client_id=token, scopes=[]))
        try:
            await self._manager.handle_request(
                exchange.scope(user), exchange.receive, exchange.send
            )
        finally:
            exchange.gone.set()
        if exchange.response is None:
            return web.Response(status=500)
        return exchange.response


class _Exchange:
    """One request and its answer as ASGI has them."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self._request, self._body = request, body
        self._asked = False
        self._head: MutableMapping[str, Any] = {}
        self.gone = asyncio.Event()
        self.response: web.StreamResponse | None = None

    def scope(self, user: AuthenticatedUser) -> dict[str, Any]:
        request = self._request
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": request.query_string.encode(),
            "root_path": "",
            "headers": [(k.lower(), v) for k, v in request.raw_headers],
            "server": None,
            "client": None,
            "user": user,
        }

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        try:
            await self._send(message)
        except ConnectionResetError:  # who asked is gone: it is told by ``receive``, not here
            self.gone.set()

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        if message["type"] != "http.response.body":
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self.response is None:
            self.response = web.StreamResponse(status=self._head["status"])
            for name, value in self._head.get("headers", ()):
                if name.lower() not in _HOP_HEADERS:
                    self.response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            await self.response.prepare(self._request)
        if body:
            await self.response.write(body)
        if not more:
            await self.response.write_eof()
