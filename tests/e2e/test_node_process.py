"""Real processes on one home: one holds it, the next takes over, waits, or says who does."""

import contextlib
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cli.local_http import connect, post
from keys.errors import NotFoundError, RoostError
from node import background
from node.paths import SOCKET_PATH_BYTES_MAX, socket_path
from tests.support.processes import (
    Process,
    answers,
    call,
    environment,
    journal_of,
    make_home,
    program,
    running,
    start,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TAKEOVER_S = 2.0
IDLE_S = 1.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test starts finds the source tree, and does not outlive the test."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    yield
    for child in background._started:
        child.kill()
        child.wait()
    background._started.clear()


def ended_with(home: Path, *options: str, what: str = "up") -> tuple[int, dict[str, Any]]:
    """The exit code and error of a process that cannot do what it was started for."""
    with start(home, *options, what=what) as process:
        _, err = process.child.communicate(timeout=120)
        error = next(json.loads(line)["error"] for line in err.splitlines() if '"error": {' in line)
        return process.child.returncode, error


def said_by(process: Process) -> list[dict[str, Any]]:
    """The journal of a node in the foreground that has ended."""
    assert process.child.stderr is not None
    return [json.loads(line) for line in process.child.stderr.read().splitlines()]


def takeover_seconds(home: Path, newcomer: Process) -> float:
    """From the moment the background node was asked to the moment the newcomer served."""
    asked = next(e["at"] for e in journal_of(home) if e.get("reason") == "yielded")
    served = next(e["at"] for e in said_by(newcomer) if e["event"] == "ready")
    return (datetime.fromisoformat(served) - datetime.fromisoformat(asked)).total_seconds()


def events(home: Path, verb: str, **params: Any) -> Generator[dict[str, Any], None, None]:
    """The lines of a stream, as they come."""
    connection = connect(socket_path(home))
    assert connection is not None
    body = json.dumps({"verb": verb, "params": params}).encode()
    for line in post(connection, "/v1/call", body, 20).lines():
        yield json.loads(line)


def command(home: Path, idle_s: float) -> list[str]:
    """What starts a node in the background."""
    return program("up", home, "--background", "--idle-stop", str(idle_s))


@contextlib.contextmanager
def in_background(home: Path, idle_s: float = 30) -> Iterator[int]:
    """The pid of a background node of ``home``."""
    background.ensure(home, command(home, idle_s))
    yield call(home, "node.ping")["result"]["pid"]


def is_alive(pid: int) -> bool:
    for child in background._started:
        child.poll()
    return Path(f"/proc/{pid}").exists()


def test_a_node_stops_cleanly_and_comes_back_at_its_port(home: Path) -> None:
    """Exit 0, the socket gone, the home free; peers find the node where it was."""
    with running(home) as node:
        assert (node.ready["event"], node.ready["pid"]) == ("ready", node.child.pid)
        assert node.stop(signal.SIGTERM) == 0
    assert not socket_path(home).exists()
    assert (home / "lock").read_bytes() == b""
    with running(home) as again:
        assert again.ready["listen"] == node.ready["listen"]
        assert again.stop(signal.SIGINT) == 0


def test_X_99_a_second_process_names_the_first_and_starts_at_once_after_a_kill(home: Path) -> None:
    """Exit 5 with the pid while the first lives; nothing to clean up when it was killed."""
    with running(home) as first:
        for what in ("up", "once"):
            code, error = ended_with(home, what=what)
            assert (code, error["code"], error["pid"]) == (5, "in_use", first.child.pid)
            assert str(first.child.pid) in error["message"]
        assert "result" in first.call("echo")
        first.stop(signal.SIGKILL)
    assert socket_path(home).exists()  # stale
    with running(home) as second:
        assert second.call("node.ping")["result"]["pid"] == second.child.pid
        assert second.stop(signal.SIGHUP) == 0


def test_a_node_waits_for_a_command(home: Path) -> None:
    """`roost up` serves when the command that has the home is done."""
    slow = ["--verb", "slow", "--params", '{"seconds": 1.5}']
    with start(home, *slow, what="once") as busy:
        wait_until(lambda: b"command" in (home / "lock").read_bytes())
        with running(home) as node:
            assert node.call("get", key="slow")["result"]["value"] == "done"
            assert json.loads(busy.child.communicate(timeout=120)[0]) == {"slow": True}
            assert node.stop() == 0


def test_two_commands_at_once_both_work(home: Path) -> None:
    """The later one waits."""
    slow = ["--verb", "slow", "--params", '{"seconds": 0.5}']
    with start(home, *slow, what="once") as first, start(home, *slow, what="once") as second:
        results = [p.child.communicate(timeout=120)[0] for p in (first, second)]
    assert [json.loads(line) for line in results] == [{"slow": True}] * 2


def test_commands_in_the_same_second_share_one_background_node(home: Path) -> None:
    """All of them succeed, one node serves, and no other process stays."""
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: background.ensure(home, command(home, 30)), range(3)))
    ping = call(home, "node.ping")["result"]
    assert ping["role"] == "background"
    started = [child.pid for child in background._started]
    wait_until(lambda: [p for p in started if is_alive(p)] == [ping["pid"]])
    assert [e["event"] for e in journal_of(home) if "event" in e] == ["ready"]


def test_up_takes_over_from_a_background_node(home: Path) -> None:
    """It serves within two seconds of asking, and who was being served is told."""
    with in_background(home) as before:
        stream = events(home, "node.hold")
        assert next(stream) == {"event": "held"}
        with running(home) as node:
            assert node.call("node.ping")["result"]["pid"] == node.child.pid
            assert [(e["error"]["code"], e["exit"]) for e in stream] == [("unreachable", 4)]
            wait_until(lambda: not is_alive(before))
            assert node.stop() == 0
            assert 0 <= takeover_seconds(home, node) < TAKEOVER_S
    assert [e["event"] for e in journal_of(home)] == ["ready", "stopping", "stopped"]


def test_up_takes_over_though_a_thread_hangs(home: Path) -> None:
    """What does not end is cut off, rather than the newcomer."""
    with in_background(home) as before, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(call, home, "block", seconds=60)
        wait_until(lambda: answers(home))
        with running(home) as node:
            assert hanging.result(10)["error"]["code"] == "unreachable"
            wait_until(lambda: not is_alive(before), TAKEOVER_S)
            assert node.stop() == 0
            assert 0 <= takeover_seconds(home, node) < TAKEOVER_S
    assert journal_of(home)[-1]["event"] == "stop.forced"


def test_a_background_node_stops_after_its_last_client(home: Path) -> None:
    """A caller that stays keeps it; when it is gone the node goes too, and cleans up."""
    with in_background(home, IDLE_S) as pid:
        stream = events(home, "node.hold")
        assert next(stream) == {"event": "held"}
        time.sleep(IDLE_S + 0.5)
        assert is_alive(pid)
        stream.close()
        assert wait_until(lambda: not is_alive(pid)) > IDLE_S / 2
    assert [e["reason"] for e in journal_of(home) if e["event"] == "stopping"] == ["idle"]
    assert not socket_path(home).exists()


def test_the_background_node_keeps_nothing_of_the_command(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No passphrase file, no terminal, no session; and no core file, ever (X-95)."""
    monkeypatch.setenv("ROOST_PASSPHRASE_FILE", "/somewhere")
    with in_background(home) as pid:
        proc = Path(f"/proc/{pid}")
        assert b"ROOST_PASSPHRASE_FILE" not in (proc / "environ").read_bytes()
        assert [os.readlink(proc / f"fd/{n}") for n in (0, 1)] == ["/dev/null"] * 2
        assert os.readlink(proc / "fd/2") == str(home / "journal.log")
        assert os.getsid(pid) == pid
        core = next(x for x in (proc / "limits").read_text().splitlines() if "core file" in x)
        assert core.split()[4:6] == ["0", "0"]
        assert stat.S_IMODE((home / "journal.log").stat().st_mode) == 0o600


def test_ensure_says_where_to_look_when_the_node_does_not_start(home: Path) -> None:
    """The journal is named; for a home that does not exist nothing is started."""
    with pytest.raises(RoostError, match="exit code 1") as failed:
        background.ensure(home, [sys.executable, "-c", "raise SystemExit(1)"])
    assert "journal.log" in str(failed.value.hint)
    with pytest.raises(NotFoundError):
        background.ensure(home.with_name("none"), ["/nonexistent"])


def test_a_home_with_a_long_path_has_its_socket_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands find it; its directory and it are closed to others."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    deep = tmp_path / ("d" * 60)
    deep.mkdir()
    home = make_home(deep / ("h" * 60))
    assert len(os.fsencode(home / "node.sock")) > SOCKET_PATH_BYTES_MAX
    with running(home) as node:
        assert "result" in node.call("echo")
        assert socket_path(home).parent == runtime
        assert stat.S_IMODE(socket_path(home).stat().st_mode) == 0o600
        monkeypatch.delenv("XDG_RUNTIME_DIR")  # as for a timer
        elsewhere = socket_path(home)
        assert elsewhere.parent != runtime
        assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700
        assert "result" in node.call("echo")
        assert node.stop() == 0
    assert list(runtime.iterdir()) == []
    assert not elsewhere.exists()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One node for tests that leave it as it was."""
    with running(make_home(tmp_path_factory.mktemp("one") / "home")) as process:
        yield process


def test_what_was_begun_is_finished_though_the_caller_hangs_up(node: Process) -> None:
    """A plain call is not undone by Ctrl-C in the command that made it."""
    connection = connect(socket_path(node.home))
    assert connection is not None
    body = json.dumps({"verb": "slow", "params": {"seconds": 0.5}}).encode()
    head = (
        "POST /v1/call HTTP/1.1\r\nHost: roost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    time.sleep(0.2)
    connection.close()
    assert node.call("get", key="slow")["result"]["value"] is None
    wait_until(lambda: node.call("get", key="slow")["result"]["value"] == "done")


def test_a_node_that_a_person_started_does_not_yield(node: Process) -> None:
    """Only a background node makes way."""
    assert node.call("node.yield")["error"]["code"] == "refused"
    assert "result" in node.call("echo")


def test_ensure_uses_the_node_that_runs(node: Process) -> None:
    """Nothing is started beside it."""
    background.ensure(node.home, ["/nonexistent"])
    assert background._started == []


def test_X_86_the_api_for_agents_is_on_loopback_only(home: Path) -> None:
    """Another host is refused before anything is opened."""
    code, error = ended_with(home, "--api", "0.0.0.0:0")
    assert (code, error["code"]) == (2, "usage")
