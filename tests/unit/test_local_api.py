"""The local API over its real socket: what is answered how, and to whom nothing is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keys.errors import RefusedError, RoostError, StoreError
from keys.ids import DeviceId
from keys.limits import CALL_BYTES_MAX
from node import localapi
from node.caller import ACCOUNT, Credential
from node.client import call, peer_uid
from node.clock import SystemClock
from node.control import Control
from node.home import Home, make_home
from node.journal import Journal
from node.localapi import LocalApi, open_sockets
from node.lock import Role
from node.service import Emit

WAIT_S = 10.0


class Verbs:
    """A dispatch that shows how calls are run."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.done: list[str] = []
        self.go_on = asyncio.Event()

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        assert emit is not None
        try:
            match verb:
                case "echo":
                    return params
                case "refuse":
                    raise RefusedError("no", hint="never", record="abc")
                case "fail":
                    raise KeyError("zanzibar")
                case "wait":
                    await self.go_on.wait()
                case "stream" | "stream.on":
                    for number in range(params.get("count", 2)):
                        await emit({"event": "tick", "number": number})
                    if verb == "stream.on":
                        await asyncio.Event().wait()
                    if params.get("fail"):
                        raise RefusedError("no more")
            self.done.append(verb)
            return params.get("result", {})  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self.cancelled.append(verb)
            raise


@dataclass
class Served:
    """A local API that runs, and what is behind it."""

    home: Home
    api: LocalApi
    verbs: Verbs
    said: list[bytes]
    path: str

    async def post(self, body: bytes, *headers: str, target: str = "/v1/call") -> tuple[int, bytes]:
        """The status and the raw rest of the answer to one request."""
        reader, writer = await self.begin(body, *headers, target=target)
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]

    async def begin(
        self, body: bytes, *headers: str, target: str = "/v1/call"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request; `headers` come in place of the usual ones."""
        usual = ("Host: roost", "Content-Type: application/json")
        lines = [f"POST {target} HTTP/1.1", f"Content-Length: {len(body)}", "Connection: close"]
        reader, writer = await asyncio.open_unix_connection(self.path)
        head = "\r\n".join([*lines, *(headers or usual)]) + "\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return reader, writer

    async def call(self, verb: str, **params: Any) -> dict[str, Any]:
        """The reply of a plain call."""
        status, body = await self.post(_body(verb, **params))
        assert status == 200
        reply = json.loads(body)
        assert isinstance(reply, dict)
        return reply


def _body(verb: str, **params: Any) -> bytes:
    return json.dumps({"verb": verb, "params": params}).encode()


async def line_of(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next JSON line of a chunked answer."""
    while True:
        async with asyncio.timeout(WAIT_S):
            line = await reader.readline()
        assert line, "the answer ended"
        if line.startswith(b"{"):
            found = json.loads(line)
            assert isinstance(found, dict)
            return found


async def until(fact: Any) -> None:
    """Wait until ``fact()`` is true."""
    async with asyncio.timeout(WAIT_S):
        while not fact():  # noqa: ASYNC110 - what is waited for knows nothing of the test
            await asyncio.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home", {})


@pytest.fixture
async def served(home: Home) -> AsyncIterator[Served]:
    async with serving(home) as found:
        yield found


@contextlib.asynccontextmanager
async def serving(home: Home) -> AsyncIterator[Served]:
    """A local API of ``home``, stopped at the end."""
    verbs = Verbs()
    said: list[bytes] = []
    journal = Journal(said.append, SystemClock())
    api = LocalApi(home, verbs, journal, SystemClock())
    async with asyncio.TaskGroup() as tasks:
        await api.start(tasks)
        yield Served(home, api, verbs, said, str(api._paths[0]))
        await api.stop()
    await asyncio.to_thread(journal.close)


async def test_a_call_is_answered_with_its_result_or_its_error(served: Served) -> None:
    """The error is what `--json` prints, with the exit code beside it."""
    assert await served.call("echo", a=[1, "\ud800"]) == {"result": {"a": [1, "\ud800"]}}
    assert await served.call("refuse") == {
        "error": {"code": "refused", "message": "no", "hint": "never", "record": "abc"},
        "exit": 3,
    }


async def test_a_fault_is_told_without_what_it_was_about(served: Served) -> None:
    """The caller gets a code, the journal the place; neither gets the words."""
    reply = await served.call("fail")
    assert (reply["error"]["code"], reply["exit"]) == ("internal", 1)
    await until(lambda: served.said)
    (line,) = [json.loads(line) for line in served.said]
    assert (line["event"], line["verb"], line["error"]) == ("call.failed", "fail", "KeyError")
    assert "zanzibar" not in json.dumps([reply, line])


async def test_a_verb_that_emits_is_answered_line_by_line(served: Served) -> None:
    """Its events, then what it returns; an error comes last in the same way."""
    ticks: list[Any] = [{"event": "tick", "number": n} for n in (0, 1)]
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, []),
        ({"result": {"event": "end"}}, [{"event": "end"}]),
        ({"fail": True}, [{"error": {"code": "refused", "message": "no more"}, "exit": 3}]),
    ]
    for params, last in cases:
        reader, writer = await served.begin(_body("stream", **params))
        async with asyncio.timeout(WAIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"application/x-ndjson" in head
            rest = await reader.read()
        lines = [json.loads(line) for line in rest.splitlines() if line.startswith(b"{")]
        assert lines == ticks + last
        assert rest.endswith(b"0\r\n\r\n")
        writer.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"verb": "echo"}',
        b'{"verb": "echo", "params": []}',
        b'{"verb": 1, "params": {}}',
        b'{"verb": "echo", "params": {}, "more": 1}',
        b'{"verb": "echo", "params": {"x": NaN}}',
        b'{"verb": "Echo\\u001b", "params": {}}',
        b'{"verb": "echo", "params": ' + b"[" * 100_000 + b"}",
    ],
)
async def test_what_is_no_call_is_refused(served: Served, body: bytes) -> None:
    """Status 400, an error in the usual form, and nothing is run."""
    status, answer = await served.post(body)
    assert status == 400
    assert json.loads(answer)["error"]["code"] in {"bad_encoding", "usage"}


@pytest.mark.parametrize(
    "headers",
    [
        ("Host: roost", "Content-Type: application/json", "Origin: http://evil.example"),
        ("Host: roost", "Content-Type: application/json", "Origin: null"),
        ("Host: evil.example", "Content-Type: application/json"),
        ("Host: localhost:80", "Content-Type: application/json"),
        ("Host: roost", "Content-Type: text/plain"),
        ("Host: roost",),
    ],
)
async def test_X_83_a_web_page_gets_nothing(served: Served, headers: tuple[str, ...]) -> None:
    """No origin, no other host, no type that a form can send."""
    status, answer = await served.post(_body("echo"), *headers)
    assert (status, json.loads(answer)["error"]["code"]) == (403, "refused")
    assert served.verbs.done == []


async def test_another_path_is_not_found(served: Served) -> None:
    """There is one way to call."""
    assert (await served.post(_body("echo"), target="/v1/other"))[0] == 404


async def test_another_account_gets_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says who called, whatever the modes of the files allow."""
    monkeypatch.setattr(localapi, "peer_uid", lambda _socket: os.geteuid() + 1)
    assert (await served.post(_body("echo")))[0] == 403


def test_the_system_tells_who_called() -> None:
    """Both ends of a pair are this process."""
    left, right = socket.socketpair()
    with left, right:
        assert peer_uid(left) == os.geteuid()


async def test_a_call_beyond_the_bound_is_refused_unread(served: Served) -> None:
    """CALL_BYTES_MAX is the most that is taken in."""
    body = b'{"verb": "echo", "params": {"x": "' + b"y" * CALL_BYTES_MAX + b'"}}'
    with contextlib.suppress(ConnectionError):
        status, answer = await served.post(body)
        assert status == 413
        assert json.loads(answer)["error"]["code"] == "usage"
    assert "result" in await served.call("echo")


async def test_calls_at_once_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one too many is told to try again, the others go on."""
    monkeypatch.setattr(localapi, "CALLS_MAX", 3)
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(served.call("wait")) for _ in range(3)]
        await until(lambda: len(served.api._calls) == 3)
        status, answer = await served.post(_body("echo"))
        assert (status, json.loads(answer)["error"]["code"]) == (400, "busy")
        served.verbs.go_on.set()
    assert [task.result() for task in waiting] == [{"result": {}}] * 3
    assert "result" in await served.call("echo")


async def test_a_plain_call_outlives_its_caller_and_a_stream_does_not(served: Served) -> None:
    """What was begun is finished; what only reports ends with who listened."""
    reader, writer = await served.begin(_body("stream.on", count=1))
    await line_of(reader)
    _, other = await served.begin(_body("wait"))
    await until(lambda: len(served.api._calls) == 2)
    assert served.api.idle_s == 0
    writer.close()
    other.close()
    await until(lambda: served.verbs.cancelled == ["stream.on"])
    await until(lambda: len(served.api._calls) == 1)
    served.verbs.go_on.set()
    await until(lambda: served.verbs.done == ["wait"])
    await until(lambda: served.api.idle_s > 0)


async def test_stopping_tells_streams_and_lets_plain_calls_end(home: Home) -> None:
    """Nobody is left without an answer, and the socket is gone."""
    async with serving(home) as served:
        stream, one = await served.begin(_body("stream.on", count=1))
        await line_of(stream)
        plain, two = await served.begin(_body("wait"))
        await until(lambda: len(served.api._calls) == 2)
        asyncio.get_running_loop().call_later(0.1, served.verbs.go_on.set)
        await served.api.stop()
        assert not await asyncio.to_thread(os.path.exists, served.path)
        told = await line_of(stream)
        assert (told["error"]["code"], told["exit"]) == ("unreachable", 4)
        async with asyncio.timeout(WAIT_S):
            assert (await plain.read()).endswith(b'{"result": {}}')
        await served.api.stop()
        one.close()
        two.close()


async def test_stopping_does_not_wait_for_ever(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that does not end is told that it may or may not have been done."""
    monkeypatch.setattr(localapi, "STOP_GRACE_S", 0.05)
    async with serving(home) as served:
        plain, two = await served.begin(_body("wait"))
        await until(lambda: len(served.api._calls) == 1)
        await served.api.stop()
        async with asyncio.timeout(WAIT_S):
            answer = await plain.read()
        two.close()
        assert b"may or may not have been done" in answer
        assert served.verbs.cancelled == ["wait"]


async def test_the_client_gets_results_errors_and_nobody(home: Home) -> None:
    """None where nobody listens, the node's own codes where it refuses."""
    assert await call(home.path, "echo", {}, WAIT_S) is None
    async with serving(home) as served:
        assert await call(home.path, "echo", {"a": 1}, WAIT_S) == {"a": 1}
        with pytest.raises(RoostError) as failed:
            await call(home.path, "refuse", {}, WAIT_S)
        assert (failed.value.code, failed.value.exit_code) == ("refused", 3)
        assert await call(home.path, "wait", {}, 0.05) is None
        served.verbs.go_on.set()


def test_the_socket_is_closed_to_others_and_replaces_a_stale_one(home: Home) -> None:
    """What a killed node left is no obstacle; whoever serves holds the lock."""
    for _ in range(2):
        ((path, listener),) = open_sockets(home)
        listener.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(home.path) == ["node.sock"]


def test_a_socket_is_not_put_where_others_can_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runtime directory open to others is passed over, and so is a link in its place."""
    deep = tmp_path / ("d" * 100)
    open_to_all, link, closed = tmp_path / "open", tmp_path / "link", tmp_path / "closed"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    closed.mkdir(mode=0o700)
    link.symlink_to(closed)
    home = make_home(deep, {})
    places = [folder / "x.sock" for folder in (open_to_all, link)]
    monkeypatch.setattr(localapi, "socket_candidates", lambda _home: places)
    with pytest.raises(StoreError, match="no place"):
        open_sockets(home)
    safe = [closed / "x.sock", closed / "y.sock"]
    monkeypatch.setattr(localapi, "socket_candidates", lambda _home: [*places, *safe])
    opened = open_sockets(home)
    assert [path for path, _ in opened] == safe
    for _, listener in opened:
        listener.close()


async def test_the_verbs_of_the_process_come_before_all_others() -> None:
    """Ping, yield and hold are answered here; they take no parameters."""
    stopped: list[str] = []
    device = DeviceId(bytes(32))
    node = Control(Verbs(), device, Role.NODE, stopped.append)
    background = Control(Verbs(), device, Role.BACKGROUND, stopped.append)

    async def emit(event: dict[str, Any]) -> None:
        raise ConnectionError(str(event))

    ping = await node.call("node.ping", {}, None)
    assert ping == {"device": str(device), "pid": os.getpid(), "role": "node"}
    with pytest.raises(RefusedError):
        await node.call("node.yield", {}, None)
    assert stopped == []
    assert await background.call("node.yield", {}, None) == {"yielding": True}
    assert stopped == ["yielded"]
    with pytest.raises(ConnectionError, match="held"):
        await node.call("node.hold", {}, emit)
    for verb, params in [("node.ping", {"x": 1}), ("node.hold", {})]:
        with pytest.raises(RoostError):
            await node.call(verb, params, None)
    assert await node.call("echo", {"x": 1}, emit) == {"x": 1}
