"""The loopback API: where agents with a token reach the node over HTTP.

No token exists yet: whoever asks is told so. What is checked already holds for what comes: it is
bound to this machine only, and no web page gets an answer (X-83 to X-86).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import hdrs, web

from keys.errors import UsageError
from node.listen import address_of, is_loopback, open_listener, split_host_port

BODY_BYTES_MAX: Final = 1024 * 1024
STOP_GRACE_S: Final = 0.5


class LoopbackApi:
    """Listens at ``given``, ``HOST:PORT`` with a loopback host; raises ``UsageError`` otherwise."""

    name = "loopback-api"

    def __init__(self, given: str) -> None:
        host, _ = split_host_port(given)
        if not is_loopback(host):
            raise UsageError(
                f"the API for agents is for this machine only, not {host or 'every interface'}",
                hint="--api 127.0.0.1:PORT",
            )
        self._given = given
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Listen; raises ``AddressInUseError``."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_GRACE_S)
        await self._runner.setup()
        listener = open_listener(self._given, None)
        self.address = address_of(listener)
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        if hdrs.ORIGIN in request.headers or not self._is_ours(request.headers.get(hdrs.HOST)):
            return _refusal(403, "refused", "this address serves agents of this machine")
        return _refusal(401, "no_token", "a bearer token is needed")

    def _is_ours(self, host: str | None) -> bool:
        """Whether ``host`` names the address we listen at: another name is a rebinding (X-84)."""
        port = self.address.rpartition(":")[2]
        return host in {self.address, f"localhost:{port}"}


def _refusal(status: int, code: str, message: str) -> web.Response:
    headers = {hdrs.WWW_AUTHENTICATE: "Bearer"} if status == 401 else {}
    body = {"error": {"code": code, "message": message}, "exit": 3}
    return web.json_response(body, status=status, headers=headers)
