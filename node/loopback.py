"""The loopback API: where agents with a token reach the node over HTTP.

``/mcp`` is the MCP server; ``POST /v1/call`` takes ``{"verb", "params"}`` as the local API does.

1. It is bound to this machine only, and no web page gets an answer: a request for another host, or
   with an Origin other than this address, where no pages are, is refused before anything else is
   looked at (X-83 to X-86). There are no cookies and no CORS headers.
2. Every request needs a bearer token that is in force; the agent is the token's.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any, Final

from aiohttp import hdrs, web

from keys.errors import RoostError, UsageError
from node.caller import Credential
from node.callers import TokenError
from node.client import CALL_TARGET
from node.journal import Journal
from node.jsontext import parse_json
from node.listen import address_of, is_loopback, open_listener, split_host_port
from node.localapi import InternalError, bearer_of
from node.service import Dispatch

if TYPE_CHECKING:
    from node.mcp.http import McpHttp

BODY_BYTES_MAX: Final = 1024 * 1024
STOP_GRACE_S: Final = 0.5
MCP_TARGET: Final = "/mcp"


class LoopbackApi:
    """Listens at ``given``, ``HOST:PORT`` with a loopback host; raises ``UsageError`` otherwise."""

    name = "loopback-api"

    def __init__(self, given: str, dispatch: Dispatch, journal: Journal) -> None:
        host, _ = split_host_port(given)
        if not is_loopback(host):
            raise UsageError(
                f"the API for agents is for this machine only, not {host or 'every interface'}",
                hint="--api 127.0.0.1:PORT",
            )
        self._given, self._dispatch, self._journal = given, dispatch, journal
        self._tasks: asyncio.TaskGroup | None = None
        self._mcp: McpHttp | None = None
        self._loading = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Listen; raises ``AddressInUseError``."""
        self._tasks = tasks
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=STOP_GRACE_S, handler_cancellation=True
        )
        await self._runner.setup()
        listener = open_listener(self._given, None)
        self.address = address_of(listener)
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """Listen no more, and end the sessions."""
        if self._mcp is not None:
            await self._mcp.stop()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        origin, host = request.headers.get(hdrs.ORIGIN), request.headers.get(hdrs.HOST)
        if host not in self._names or origin not in {None, *(f"http://{n}" for n in self._names)}:
            return _refusal(403, "refused", "this address serves agents of this machine")
        bearer = bearer_of(request)
        if not bearer:
            return _refusal(401, "no_token", "a bearer token is needed")
        try:
            about = await self._dispatch.call("session.about", {}, None, Credential(bearer=bearer))
            if request.path == MCP_TARGET:
                mcp = await self._sessions()
                return await mcp.handle(request, bearer, str(about["token"]))
            if request.path == CALL_TARGET and request.method == hdrs.METH_POST:
                return web.json_response(await self._call(request, bearer))
        except TokenError as exc:
            return _refusal(401, exc.code, exc.message)
        except RoostError as exc:
            body = {"error": exc.as_dict(), "exit": exc.exit_code}
            return web.json_response(body, status=403 if exc.exit_code == 3 else 400)
        return _refusal(404, "not_found", f"{CALL_TARGET} and {MCP_TARGET} are here")

    async def _call(self, request: web.Request, bearer: str) -> dict[str, Any]:
        try:
            call = parse_json(await request.read(), halves=True)
        except ValueError as exc:
            raise UsageError("a call is one JSON object") from exc
        match call:
            case {"verb": str(verb), "params": dict(params), **rest} if not rest:
                credential = Credential(bearer=bearer)
                try:
                    return {"result": await self._dispatch.call(verb, params, None, credential)}
                except RoostError:
                    raise
                except Exception as exc:
                    self._journal.error("call.failed", exc)
                    raise InternalError("a fault in Roost") from exc
        raise UsageError('a call is {"verb": …, "params": {…}}')

    async def _sessions(self) -> McpHttp:
        """The MCP server, loaded when it is first asked for: it is larger than all the rest."""
        async with self._loading:
            if self._mcp is None:
                assert self._tasks is not None
                module = await asyncio.to_thread(importlib.import_module, "node.mcp.http")
                made: McpHttp = module.McpHttp(self._dispatch, self._journal)
                await made.start(self._tasks)
                self._mcp = made
            return self._mcp

    @property
    def _names(self) -> set[str]:
        """What the address we listen at is called: another name is a rebinding (X-84)."""
        return {self.address, f"localhost:{self.address.rpartition(':')[2]}"}


def _refusal(status: int, code: str, message: str) -> web.Response:
    headers = {hdrs.WWW_AUTHENTICATE: "Bearer"} if status == 401 else {}
    body = {"error": {"code": code, "message": message}, "exit": 3}
    return web.json_response(body, status=status, headers=headers)
