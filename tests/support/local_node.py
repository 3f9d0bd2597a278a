"""A real HTTP server on a home's Unix socket that answers verbs from a script."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from node.paths import socket_path

Reply = dict[str, Any] | list[dict[str, Any]] | RoostError | bytes
Script = dict[str, Reply | Callable[[dict[str, Any]], Reply]]


@dataclass
class LocalNode:
    """What a verb is answered with: a result, events, an error, or bytes in the place of HTTP."""

    home: Path
    script: Script = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def params(self, verb: str) -> dict[str, Any]:
        """The parameters of the only call of this verb."""
        (found,) = [params for called, params in self.calls if called == verb]
        return found


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, node: LocalNode) -> None:
        self.node = node
        super().__init__(str(socket_path(node.home)), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        assert self.path == "/v1/call"
        assert self.headers["Content-Type"] == "application/json"
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert call.keys() == {"verb", "params"}
        self.server.node.calls.append((call["verb"], call["params"]))
        found = self.server.node.script[call["verb"]]
        reply = found(call["params"]) if callable(found) else found
        self.close_connection = True
        match reply:
            case bytes():
                self.wfile.write(reply)
            case list():
                self._events(reply)
            case RoostError():
                answer = {"error": reply.as_dict(), "exit": reply.exit_code}
                self._answer(400, json.dumps(answer).encode())
            case dict():
                self._answer(200, json.dumps({"result": reply}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self, events: list[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def local_node(home: Path, script: Script | None = None) -> Iterator[LocalNode]:
    """The node of ``home`` while it runs."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    node = LocalNode(home, script or {})
    with _Server(node) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()
            socket_path(home).unlink()
