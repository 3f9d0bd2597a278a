"""One HTTP/1.1 request to the node of this account, over its Unix socket.

The standard client would be half of a command's start-up time (it loads e-mail and TLS), and this
server is ours: one POST, one answer, then the connection closes. Answers come with a length, in
chunks, or until the end; lines can be read as they arrive. Lengths are bounded all the same.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from keys.errors import UnreachableError

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
_HEAD_LINE_BYTES_MAX: Final = 8 * 1024
_HEAD_LINES_MAX: Final = 64
_READ_BYTES: Final = 64 * 1024


class NoAnswerError(UnreachableError):
    """The node of this account does not answer, or stopped in the middle of an answer."""


class Answer:
    """The body of an answer, read once: whole, or line by line."""

    def __init__(
        self, connection: socket.socket, stream: io.BufferedReader, headers: dict[str, str]
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._body = _bounded(_body(stream, headers))

    def whole(self) -> bytes:
        """The whole body; the connection is closed."""
        with self._connection, self._stream:
            return b"".join(self._body)

    def lines(self) -> Iterator[bytes]:
        """Each line that is not empty, as soon as it is here; closed at the end or when dropped."""
        with self._connection, self._stream:
            rest = b""
            for part in self._body:
                *lines, rest = (rest + part).split(b"\n")
                yield from filter(None, lines)
            if rest:
                yield rest


def connect(path: Path) -> socket.socket | None:
    """A connection to the socket at ``path``, or None where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_TIMEOUT_S)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def post(connection: socket.socket, target: str, body: bytes, timeout_s: float) -> Answer:
    """Send one request and read the head of its answer.

    Raises ``NoAnswerError`` when no answer comes within ``timeout_s``, or it breaks off.
    """
    connection.settimeout(timeout_s)
    head = (
        f"POST {target} HTTP/1.1\r\nHost: roost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    stream = connection.makefile("rb")
    try:
        connection.sendall(head.encode("ascii") + body)
        return Answer(connection, stream, _head(stream))
    except BaseException as exc:
        stream.close()
        connection.close()
        if isinstance(exc, TimeoutError):
            raise NoAnswerError(f"the node did not answer within {timeout_s:g} seconds") from exc
        if isinstance(exc, OSError):
            raise _broken_off() from exc
        raise


def _head(stream: io.BufferedReader) -> dict[str, str]:
    """The headers; what the status says, the body says better."""
    if _line(stream).partition(" ")[0] not in {"HTTP/1.0", "HTTP/1.1"}:
        raise _broken_off()
    headers: dict[str, str] = {}
    for _ in range(_HEAD_LINES_MAX):
        line = _line(stream)
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip().lower()
    raise _broken_off()


def _line(stream: io.BufferedReader) -> str:
    line = stream.readline(_HEAD_LINE_BYTES_MAX)
    if not line.endswith(b"\n"):
        raise _broken_off()
    return line.decode("latin-1").rstrip("\r\n")


def _body(stream: io.BufferedReader, headers: dict[str, str]) -> Iterator[bytes]:
    try:
        if headers.get("transfer-encoding") == "chunked":
            yield from _chunks(stream)
        elif "content-length" in headers:
            yield from _exactly(stream, _number(headers["content-length"], 10))
        else:
            while part := stream.read1(_READ_BYTES):
                yield part
    except OSError as exc:
        raise _broken_off() from exc


def _chunks(stream: io.BufferedReader) -> Iterator[bytes]:
    while size := _number(_line(stream).partition(";")[0], 16):
        yield from _exactly(stream, size)
        if _line(stream):
            raise _broken_off()
    while _line(stream):  # trailers, of which we expect none
        pass


def _exactly(stream: io.BufferedReader, size: int) -> Iterator[bytes]:
    while size:
        part = stream.read(min(size, _READ_BYTES))
        if not part:
            raise _broken_off()
        size -= len(part)
        yield part


def _bounded(parts: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > ANSWER_BYTES_MAX:
            raise NoAnswerError(f"the node's answer is larger than {ANSWER_BYTES_MAX} bytes")
        yield part


def _number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError as exc:
        raise _broken_off() from exc
    if not 0 <= number <= ANSWER_BYTES_MAX:
        raise NoAnswerError(f"the node's answer is larger than {ANSWER_BYTES_MAX} bytes")
    return number


def _broken_off() -> NoAnswerError:
    return NoAnswerError(
        "the node stopped before it answered; what was asked may or may not have been done",
        hint="look with: roost status",
    )
