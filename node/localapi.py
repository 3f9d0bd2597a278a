"""The local API: verbs for this account's commands and dashboard, over a Unix socket.

``POST /v1/call`` with ``{"verb", "params", "as"?}`` is answered with ``{"result"}`` or ``{"error",
"exit"}``. A verb that emits is answered line by line: its events, then what it returns (unless that
is empty) or the error.

1. Who can reach the socket is this account: its mode is 0600 and its directory's 0700; the system
   tells whose process called, and another account's gets nothing.
2. No browser calls it: a request with an Origin, or for another host, is refused.
3. A plain call runs to its end though its caller hangs up, since what was begun is to be finished;
   a verb that has emitted is cancelled then.
4. Bounded: the body, the calls at once, the wait for a caller that does not read.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from pathlib import Path
from typing import Any, Final

from aiohttp import hdrs, web

from keys.errors import (
    BadEncoding,
    RefusedError,
    RoostError,
    StoreError,
    UnreachableError,
    UsageError,
)
from keys.limits import CALL_BYTES_MAX
from node.caller import Credential
from node.client import CALL_TARGET, peer_uid
from node.clock import Clock
from node.home import Home, check_directory
from node.journal import Journal
from node.jsontext import parse_json
from node.paths import socket_candidates
from node.service import Dispatch

CALLS_MAX: Final = 64
READ_TIMEOUT_S: Final = 60.0
EMIT_TIMEOUT_S: Final = 60.0
STOP_GRACE_S: Final = 0.7
SOCKET_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
BACKLOG: Final = 128
HOSTS: Final = frozenset({"roost", "localhost"})

_SAID: Final = frozenset({"session", "channel", "profile", "run"})
_VERB: Final = re.compile(r"[a-z][a-z_.-]{0,63}")


class BusyError(RoostError):
    """More calls at once than the node takes."""

    code = "busy"


class InternalError(RoostError):
    """A fault of Roost itself; the journal says where."""

    code = "internal"


class LocalApi:
    """Serves ``dispatch`` on the socket of ``home``, whose lock this process holds."""

    name = "local-api"

    def __init__(self, home: Home, dispatch: Dispatch, journal: Journal, clock: Clock) -> None:
        self._home = home
        self._dispatch = dispatch
        self._journal = journal
        self._clock = clock
        self._calls: dict[asyncio.Task[dict[str, Any]], _Stream] = {}
        self._last_end_s = clock.monotonic_s()
        self._tasks: asyncio.TaskGroup | None = None
        self._runner: web.AppRunner | None = None
        self._paths: list[Path] = []

    @property
    def idle_s(self) -> float:
        """Seconds since the last call ended; 0 while there is one."""
        return 0.0 if self._calls else self._clock.monotonic_s() - self._last_end_s

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Open the socket. Raises ``RoostError`` when no place for it is safe."""
        self._tasks = tasks
        app = web.Application(client_max_size=CALL_BYTES_MAX)
        app.router.add_post(CALL_TARGET, self._handle)
        self._runner = web.AppRunner(
            app,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=STOP_GRACE_S,
        )
        await self._runner.setup()
        for path, listener in await asyncio.to_thread(open_sockets, self._home):
            self._paths.append(path)
            await web.SockSite(self._runner, listener).start()
        self._last_end_s = self._clock.monotonic_s()

    async def stop(self) -> None:
        """Take no further call, let plain ones end for a moment, tell the others."""
        while self._paths:
            await asyncio.to_thread(self._paths.pop().unlink, missing_ok=True)
        for task, stream in list(self._calls.items()):
            if stream.started:
                task.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=STOP_GRACE_S)
        for task in list(self._calls):
            task.cancel()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            self._admit(request)
            verb, params, credential = await self._read(request)
        except RoostError as exc:
            status = 403 if isinstance(exc, RefusedError) else 400
            return _json(_error(exc), status)
        except web.HTTPRequestEntityTooLarge:
            return _json(_error(UsageError("the call is too large")), 413)
        stream = _Stream(request)
        assert self._tasks is not None
        task = self._tasks.create_task(
            self._run(verb, params, stream, credential), name=f"call {verb}"
        )
        self._calls[task] = stream
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if stream.started:
                task.cancel()
            raise
        stopped = UnreachableError(
            "the node stops; what was asked may or may not have been done", hint="ask again"
        )
        return await stream.finish(_error(stopped) if task.cancelled() else task.result())

    def _ended(self, task: asyncio.Task[dict[str, Any]]) -> None:
        del self._calls[task]
        self._last_end_s = self._clock.monotonic_s()

    def _admit(self, request: web.Request) -> None:
        """Rules 1, 2 and 4; raises ``RefusedError`` or ``BusyError``."""
        transport = request.transport
        uid = peer_uid(transport.get_extra_info("socket")) if transport else None
        if uid not in {None, 0, os.geteuid()}:
            raise RefusedError("this node serves another account")
        if hdrs.ORIGIN in request.headers or request.host not in HOSTS:
            raise RefusedError("this node serves commands, not web pages")
        if request.content_type != "application/json":
            raise RefusedError("a call is sent as application/json")
        if len(self._calls) >= CALLS_MAX:
            raise BusyError(f"the node has {CALLS_MAX} calls to do already", hint="try again")

    async def _read(self, request: web.Request) -> tuple[str, dict[str, Any], Credential]:
        """(verb, params, credential); raises ``BadEncoding`` for anything else."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                body = await request.read()
            call = parse_json(body, halves=True)
        except (ValueError, TimeoutError) as exc:
            raise BadEncoding("a call is one JSON object") from exc
        match call:
            case {"verb": str(verb), "params": dict(params), **rest} if not rest.keys() - {"as"}:
                if _VERB.fullmatch(verb):
                    return verb, params, _credential(request, rest.get("as"))
                raise UsageError("there is no such verb")
        raise BadEncoding('a call is {"verb": …, "params": {…}}')

    async def _run(
        self, verb: str, params: dict[str, Any], stream: _Stream, credential: Credential
    ) -> dict[str, Any]:
        try:
            return {"result": await self._dispatch.call(verb, params, stream.emit, credential)}
        except RoostError as exc:
            self._journal.info("call.refused", verb=verb, code=exc.code)
            return _error(exc)
        except Exception as exc:  # noqa: BLE001 - a border: one call's fault is not the node's end
            self._journal.error("call.failed", exc, verb=verb)
            return _error(InternalError("a fault in Roost", hint="the node's journal says where"))


class _Stream:
    """The answer to one call: whole, unless the verb emits."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None

    @property
    def started(self) -> bool:
        """Whether the verb has emitted."""
        return self._response is not None

    async def emit(self, event: dict[str, Any]) -> None:
        """Send one event; raises ``UnreachableError`` when nobody takes it."""
        try:
            async with asyncio.timeout(EMIT_TIMEOUT_S):
                if self._response is None:
                    response = web.StreamResponse()
                    response.content_type = "application/x-ndjson"
                    self._response = response
                    await response.prepare(self._request)
                await self._response.write(_encode(event) + b"\n")
        except (OSError, TimeoutError) as exc:
            raise UnreachableError("the caller is gone") from exc

    async def finish(self, reply: dict[str, Any]) -> web.StreamResponse:
        """The response, whole or with its last line."""
        if self._response is None:
            return _json(reply)
        last = reply if "error" in reply else reply["result"]
        if last:
            await self._response.write(_encode(last) + b"\n")
        await self._response.write_eof()
        return self._response


def open_sockets(home: Home) -> list[tuple[Path, socket.socket]]:
    """Listen where commands of ``home`` look, in place of what a killed node left there.

    With a long path that is more than one place, since a command may run with another environment
    than the node. The caller holds the lock. Raises ``StoreError`` when no place is safe.
    """
    opened: list[tuple[Path, socket.socket]] = []
    refused = []
    for path in socket_candidates(home.path):
        try:
            if path.parent.name.startswith("roost-"):  # ours, in the system's temporary directory
                path.parent.mkdir(DIRECTORY_MODE, exist_ok=True)
            check_directory(path.parent)
            opened.append((path, _listen(path)))
        except (OSError, RoostError) as exc:
            refused.append(str(exc))
    if not opened:
        raise StoreError(f"no place for the node's socket: {'; '.join(refused)}")
    return opened


def _listen(path: Path) -> socket.socket:
    """A socket that appears at ``path`` when it is ready, with mode 0600."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(beside))
        beside.chmod(SOCKET_MODE)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        beside.replace(path)
    except BaseException:
        listener.close()
        raise
    return listener


def bearer_of(request: web.BaseRequest) -> str | None:
    """The token that a request carries in its header; the only place where one is looked for."""
    kind, _, token = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _credential(request: web.BaseRequest, speaks_as: object) -> Credential:
    """What the caller shows; raises ``BadEncoding``. A token leaves nothing to say."""
    bearer = bearer_of(request)
    match speaks_as:
        case None:
            return Credential(bearer=bearer)
        case {"agent": str(agent), **rest} if bearer is None and rest.keys() <= _SAID:
            words = {str(key): word for key, word in rest.items() if isinstance(word, str)}
            if len(words) == len(rest):
                return Credential(agent=agent, **words)
    raise BadEncoding('"as" is {"agent": …}, and not beside a token')


def _error(exc: RoostError) -> dict[str, Any]:
    return {"error": exc.as_dict(), "exit": exc.exit_code}


def _json(reply: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=_encode(reply), status=status, content_type="application/json")


def _encode(value: dict[str, Any]) -> bytes:
    return json.dumps(value, default=str).encode()
