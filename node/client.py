"""Calls on the node of a home, from a process of this account.

``call`` is for short questions of the node to itself; ``Client`` is a whole client: every verb, as
the account or, narrowed, as one of its agents.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from keys.errors import RoostError, UnreachableError, error_from
from node.clock import SystemClock
from node.paths import is_trusted_socket, socket_candidates

CALL_TARGET: Final = "/v1/call"
ANSWER_BYTES_MAX: Final = 64 * 1024
CLIENT_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
CLIENT_TIMEOUT_S: Final = 600.0
CALLS_AT_ONCE: Final = 8  # of one process; the node takes 64
BUSY: Final = "busy"
BUSY_PAUSE_S: Final = 0.1
BUSY_PATIENCE_S: Final = 60.0
READ_BYTES: Final = 64 * 1024
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


def peer_uid(connection: Any) -> int | None:
    """The account at the other end of a Unix socket; None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    told = connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])


async def call(
    home: Path, verb: str, params: dict[str, Any], timeout_s: float
) -> dict[str, Any] | None:
    """The result of a verb with a small answer, or None where no node gives one in time.

    Raises ``RoostError`` with the code and exit code of the node's when it answers with an error.
    """
    for path in await asyncio.to_thread(_sockets, home):
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(timeout_s):
                connection = await asyncio.open_unix_connection(str(path))
                reply = await _post(*connection, {"verb": verb, "params": params}, ANSWER_BYTES_MAX)
            if isinstance(reply.get("error"), dict):
                raise error_from(reply["error"], reply.get("exit"))
            if isinstance(reply.get("result"), dict):
                return dict(reply["result"])
    return None


class Client:
    """Calls every verb of the node of ``home``; ``start`` is called where none answers.

    ``speaks_as`` is what the account says of itself (``agent``, ``session``, ``channel``,
    ``profile``, ``run``): with it the calls are one agent's, and may do no more than that.
    """

    def __init__(
        self, home: Path, start: Callable[[Path], None], speaks_as: Mapping[str, str] | None = None
    ) -> None:
        self._home, self._start = home, start
        self._clock, self._places = SystemClock(), asyncio.Semaphore(CALLS_AT_ONCE)
        self._as = {"as": dict(speaks_as)} if speaks_as else {}

    async def call(self, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of one verb; raises ``RoostError``.

        What was sent is never sent again, unless the node says that it did not take it: it is busy.
        """
        give_up_s = self._clock.monotonic_s() + BUSY_PATIENCE_S
        while True:
            try:
                # A call that waits takes no place from those that work.
                async with contextlib.nullcontext() if "wait_s" in params else self._places:
                    return await self._call(verb, params)
            except RoostError as exc:
                if exc.code != BUSY or self._clock.monotonic_s() > give_up_s:
                    raise
            await self._clock.sleep(BUSY_PAUSE_S)

    async def _call(self, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        connection = await self._connect()
        if connection is None:
            await asyncio.to_thread(self._start, self._home)
            connection = await self._connect()
        if connection is None:
            raise UnreachableError("the node does not answer", hint="roost doctor")
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                body = {"verb": verb, "params": params} | self._as
                reply = await _post(*connection, body, CLIENT_ANSWER_BYTES_MAX)
        except (OSError, TimeoutError, ValueError) as exc:
            raise UnreachableError(
                "the node stopped before it answered; it may or may not have been done",
                hint="look whether it was before asking again",
            ) from exc
        if isinstance(reply.get("error"), dict):
            raise error_from(reply["error"], reply.get("exit"))
        result = reply.get("result")
        if not isinstance(result, dict):
            raise RoostError("the node answered something else", hint="is it of another version?")
        return result

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for path in await asyncio.to_thread(_sockets, self._home):
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(str(path))
        return None


def _sockets(home: Path) -> list[Path]:
    return [path for path in socket_candidates(home) if is_trusted_socket(path, home)]


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, call: dict[str, Any], most: int
) -> dict[str, Any]:
    """The JSON object answered with; raises ``OSError`` or ``ValueError``."""
    body = json.dumps(call).encode()
    try:
        head = (
            f"POST {CALL_TARGET} HTTP/1.1\r\nHost: roost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = bytearray()
        while part := await reader.read(READ_BYTES):
            answer += part
            if len(answer) > most:
                raise ValueError("the answer is too large")
    finally:
        writer.close()
    reply = json.loads(bytes(answer).partition(b"\r\n\r\n")[2])
    if not isinstance(reply, dict):
        raise ValueError("not an answer")
    return reply
