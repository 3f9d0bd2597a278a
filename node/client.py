"""Short calls on the node of a home, from a process of this account."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from pathlib import Path
from typing import Any, Final

from keys.errors import RoostError
from node.paths import is_trusted_socket, socket_candidates

CALL_TARGET: Final = "/v1/call"
ANSWER_BYTES_MAX: Final = 64 * 1024
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
                reply = await _post(path, {"verb": verb, "params": params})
            if isinstance(reply.get("error"), dict):
                raise _error(reply)
            if isinstance(reply.get("result"), dict):
                return dict(reply["result"])
    return None


def _sockets(home: Path) -> list[Path]:
    return [path for path in socket_candidates(home) if is_trusted_socket(path, home)]


async def _post(path: Path, call: dict[str, Any]) -> dict[str, Any]:
    """The JSON object answered with; raises ``OSError`` or ``ValueError``."""
    body = json.dumps(call).encode()
    reader, writer = await asyncio.open_unix_connection(str(path), limit=ANSWER_BYTES_MAX)
    try:
        head = (
            f"POST {CALL_TARGET} HTTP/1.1\r\nHost: roost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = b""
        while part := await reader.read(ANSWER_BYTES_MAX):
            answer += part
            if len(answer) > ANSWER_BYTES_MAX:
                raise ValueError("the answer is too large for a short call")
    finally:
        writer.close()
    reply = json.loads(answer.partition(b"\r\n\r\n")[2])
    if not isinstance(reply, dict):
        raise ValueError("not an answer")
    return reply


def _error(reply: dict[str, Any]) -> RoostError:
    said = reply["error"]
    error = RoostError(str(said.get("message", "failed")))
    error.code = str(said.get("code", RoostError.code))
    exit_code = reply.get("exit")
    error.exit_code = exit_code if isinstance(exit_code, int) else RoostError.exit_code
    return error
