"""How a command reaches its node: the socket first, else the home itself."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli import local_http, session
from cli.local_http import NoAnswerError
from cli.session import Session, encode_call
from keys import errors
from keys.errors import (
    InUseError,
    NotFoundError,
    RefusedError,
    RoostError,
    UsageError,
    error_from,
)
from keys.limits import CALL_BYTES_MAX
from node.paths import SOCKET_PATH_BYTES_MAX, is_trusted_socket, socket_candidates, socket_path
from tests.support.local_node import LocalNode, local_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LocalNode]:
    with local_node(tmp_path / "home") as running:
        yield running


@pytest.fixture(autouse=True)
def no_node_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise AssertionError("the home was opened although a node runs")

    monkeypatch.setattr(session, "run_verb", fail)
    monkeypatch.setattr(session, "ensure_running", fail)


def test_a_call_goes_through_the_socket_of_a_running_node(node: LocalNode) -> None:
    """The verb and its parameters arrive, the result comes back."""
    node.script["show"] = lambda params: {"record": params["record"], "text": "Zürich 🐝"}
    found = Session(node.home).call("show", {"record": "ü1"})
    assert found == {"record": "ü1", "text": "Zürich 🐝"}
    assert node.calls == [("show", {"record": "ü1"})]


def test_a_home_with_a_long_path_has_its_socket_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket address holds about a hundred bytes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    home = tmp_path / ("long" * 30)
    assert socket_path(home).parent == tmp_path
    assert len(os.fsencode(socket_path(home))) <= SOCKET_PATH_BYTES_MAX
    with local_node(home, {"peers": {"peers": []}}):
        assert Session(home).call("peers", {}) == {"peers": []}


def test_a_terminal_finds_the_socket_of_a_service_with_another_environment(tmp_path: Path) -> None:
    """A service has no runtime directory of the account's session."""
    home = tmp_path / ("long" * 30)
    service = socket_path(home, {})
    assert service in socket_candidates(home, {"XDG_RUNTIME_DIR": "/run/user/1"})


def test_without_a_node_the_verb_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands work whether or not a node is running."""
    ran: list[object] = []

    def run(home: Path, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        ran.append((home, verb, params))
        return {"peers": []}

    monkeypatch.setattr(session, "run_verb", run)
    assert Session(tmp_path).call("peers", {"a": 1}) == {"peers": []}
    assert ran == [(tmp_path, "peers", {"a": 1})]


def test_a_dead_nodes_socket_file_is_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed node leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(socket_path(tmp_path)))
    monkeypatch.setattr(session, "run_verb", lambda *_: {"here": True})
    assert Session(tmp_path).call("peers", {}) == {"here": True}
    assert not Session(tmp_path).is_running()


def test_a_home_that_is_held_for_a_moment_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that starts holds the home before it listens."""
    tries = 0

    def run(*_: object) -> dict[str, Any]:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise InUseError("in use by pid 1")
        return {}

    monkeypatch.setattr(session, "run_verb", run)
    monkeypatch.setattr(session, "_RETRY_S", 0)
    Session(tmp_path).call("peers", {})
    assert tries == 3


def test_a_home_that_stays_held_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 5 is for a command that cannot go through the other process."""

    def run(*_: object) -> dict[str, Any]:
        raise InUseError("in use by pid 1")

    monkeypatch.setattr(session, "run_verb", run)
    monkeypatch.setattr(session, "HELD_PATIENCE_S", 0)
    with pytest.raises(InUseError):
        Session(tmp_path).call("peers", {})


def test_an_error_of_the_node_is_raised_as_its_class(node: LocalNode) -> None:
    """Code, hint, details and exit code all come across."""
    node.script["show"] = NotFoundError("no such record", hint="roost list", record="r1")
    with pytest.raises(NotFoundError, match="no such record") as caught:
        Session(node.home).call("show", {})
    assert caught.value.hint == "roost list"
    assert caught.value.details == {"record": "r1"}


def every_error() -> list[type[RoostError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [kind for kind in found if issubclass(kind, RoostError)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_comes_across_as_itself(kind: type[RoostError]) -> None:
    """What the node raised and what the command raises are of one class."""
    sent = kind("said", hint="do", device="d")
    got = error_from(sent.as_dict(), sent.exit_code)
    assert type(got) is kind
    assert (got.as_dict(), got.exit_code) == (sent.as_dict(), sent.exit_code)


def test_an_error_this_command_does_not_know_keeps_its_code_and_exit_code() -> None:
    """A newer node may know more kinds of errors."""
    got = error_from({"code": "moon_phase", "message": "wrong moon"}, 3)
    assert (got.code, got.exit_code, got.message) == ("moon_phase", 3, "wrong moon")


def test_events_arrive_one_by_one(node: LocalNode) -> None:
    """A command shows the code long before the other side came."""
    node.script["pair.open"] = [{"event": "open", "code": "12 34"}, {"event": "paired"}]
    events = [found["event"] for found in Session(node.home).events("pair.open", {})]
    assert events == ["open", "paired"]


def test_an_error_among_events_is_raised(node: LocalNode) -> None:
    """A stream has begun well before it fails."""
    failed = {"error": {"code": "pairing", "message": "expired", "reason": "expired"}, "exit": 1}
    node.script["pair.open"] = [{"event": "open"}, failed]
    events = Session(node.home).events("pair.open", {})
    assert next(events) == {"event": "open"}
    with pytest.raises(errors.PairingError) as caught:
        next(events)
    assert caught.value.details == {"reason": "expired"}


def test_a_stream_may_be_refused_as_a_whole(node: LocalNode) -> None:
    """The node answers with one error in the place of the stream."""
    node.script["pair.open"] = RefusedError("no")
    with pytest.raises(RefusedError):
        list(Session(node.home).events("pair.open", {}))


def test_a_verb_that_needs_a_node_starts_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairing takes longer than a moment."""
    with startable(tmp_path) as start:
        monkeypatch.setattr(session, "ensure_running", start)
        assert Session(tmp_path).call_running("pair.list", {}) == {"found": []}


@contextmanager
def startable(home: Path) -> Iterator[Callable[[Path], None]]:
    """A way to start a node that runs until the end of the test."""
    running: list[Any] = []

    def start(wanted: Path) -> None:
        node = local_node(wanted, {"pair.list": {"found": []}})
        node.__enter__()
        running.append(node)

    yield start
    for node in running:
        node.__exit__(None, None, None)


def test_a_node_that_was_started_and_does_not_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have failed right after its start."""
    monkeypatch.setattr(session, "ensure_running", lambda _: None)
    with pytest.raises(NoAnswerError):
        Session(tmp_path).call_running("pair.list", {})


def test_a_socket_of_somebody_else_is_not_used(
    node: LocalNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passphrase goes through it."""
    path = socket_path(node.home)
    assert is_trusted_socket(path, node.home)
    link = node.home / "link"
    link.symlink_to(path)
    assert not is_trusted_socket(link, node.home)
    found = os.stat_result((0o140600, 0, 0, 1, 4711, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "lstat", lambda _: found)
    assert not is_trusted_socket(path, node.home)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
RESULT = b'{"result": {"a": 1}}'


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + RESULT,
        CHUNKED + b'6;x=y\r\n{"resu\r\ne\r\nlt": {"a": 1}}\r\n0\r\nTrailer: t\r\n\r\n',
        b"HTTP/1.0 200 OK\r\n\r\n" + RESULT,
    ],
    ids=["length", "chunks", "until the end"],
)
def test_an_answer_comes_in_each_of_three_ways(node: LocalNode, answer: bytes) -> None:
    """What HTTP/1.1 allows for a body."""
    node.script["peers"] = answer
    assert Session(node.home).call("peers", {}) == {"a": 1}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1e9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
    ],
)
def test_an_answer_that_breaks_off_is_unreachable_and_never_sent_again(
    node: LocalNode, answer: bytes
) -> None:
    """Whether it was done is not known."""
    node.script["forget"] = answer
    with pytest.raises(NoAnswerError) as caught:
        Session(node.home).call("forget", {})
    assert caught.value.exit_code == 4
    assert len(node.calls) == 1


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"result": 1}', b"{}", b"\xff"])
def test_an_answer_that_makes_no_sense_is_an_error(node: LocalNode, body: bytes) -> None:
    """The running node may be of another version."""
    node.script["peers"] = b"HTTP/1.0 200 OK\r\n\r\n" + body
    with pytest.raises(RoostError, match="does not understand"):
        Session(node.home).call("peers", {})


def test_a_node_that_hangs_does_not_hang_the_command(
    node: LocalNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status is what one asks when something hangs."""
    release = threading.Event()

    def hang(_: dict[str, Any]) -> dict[str, Any]:
        release.wait(5)
        return {}

    node.script["status"] = hang
    with pytest.raises(NoAnswerError, match="did not answer within"):
        Session(node.home).call("status", {}, timeout_s=0.05)
    release.set()


def test_an_answer_has_a_bound(node: LocalNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes in parts."""
    monkeypatch.setattr(local_http, "ANSWER_BYTES_MAX", 8)
    node.script["peers"] = b"HTTP/1.0 200 OK\r\n\r\n" + RESULT
    with pytest.raises(NoAnswerError, match="larger than 8 bytes"):
        Session(node.home).call("peers", {})


def test_lines_come_apart_wherever_the_parts_were_cut(node: LocalNode) -> None:
    """A chunk is not a line."""
    node.script["pair.open"] = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'5\r\n{"a":\r\n8\r\n 1}\n\n{"b\r\n6\r\n": 2}\n\r\n0\r\n\r\n'
    )
    assert list(Session(node.home).events("pair.open", {})) == [{"a": 1}, {"b": 2}]


def test_a_last_line_needs_no_line_end(node: LocalNode) -> None:
    """The end of the stream ends it."""
    node.script["pair.open"] = b'HTTP/1.0 200 OK\r\n\r\n{"a": 1}'
    assert list(Session(node.home).events("pair.open", {})) == [{"a": 1}]


def test_an_argument_that_is_no_text_is_wrong_usage() -> None:
    """Arguments of a shell are bytes."""
    with pytest.raises(UsageError):
        encode_call("remember", {"text": "\udcff"})


def test_a_call_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the bound it goes, over it it does not."""
    empty = len(json.dumps({"verb": "v", "params": {"text": ""}}))
    encode_call("v", {"text": "x" * (CALL_BYTES_MAX - empty)})
    with pytest.raises(UsageError):
        encode_call("v", {"text": "x" * (CALL_BYTES_MAX - empty + 1)})


def test_the_thin_path_loads_no_part_of_the_node() -> None:
    """Start-up time is what everybody feels."""
    code = (
        "import sys; before = set(sys.modules); import cli.session, cli.main; "
        "heavy = {'aiohttp', 'asyncio', 'automerge', 'nacl', 'rich', 'segno', 'sqlite3', 'ssl', "
        "'textual', 'zeroconf', 'http.client', 'msgpack'}; "
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
