"""The life of a node: its parts start, one signal ends them, and a fault ends the whole."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keys.errors import NotFoundError, RoostError, StoreError, UsageError
from node import process
from node.caller import ACCOUNT, Credential
from node.core import NodeCore
from node.home import Home
from node.listen import AddressInUseError, address_of, open_listener
from node.localapi import InternalError, open_sockets
from node.lock import Role
from node.moment import run_on_home
from node.options import IDLE_STOP_S_MAX, UpOptions
from node.process import serve
from node.service import Emit, Parts, Service
from tests.support.processes import make_home

OPTIONS = UpOptions(listen="127.0.0.1:0")


class Part:
    """A service that notes what happens to it, and may do something wrong."""

    def __init__(self, name: str, noted: list[str], wrong: str = "") -> None:
        self.name, self._noted, self._wrong = name, noted, wrong

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        self._noted.append(f"start {self.name}")
        if self._wrong == "start":
            raise StoreError("no")
        tasks.create_task(self._run())

    async def _run(self) -> None:
        try:
            if self._wrong == "run":
                await asyncio.sleep(0.05)
                raise ValueError("zanzibar")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._noted.append(f"cancel {self.name}")
            raise

    async def stop(self) -> None:
        self._noted.append(f"stop {self.name}")
        if self._wrong == "stop":
            raise ValueError("zanzibar")
        if self._wrong == "hang":
            await asyncio.Event().wait()


class NoVerbs:
    """A dispatch that knows no verb."""

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        raise UsageError(f"no verb {verb} {params} {emit}")


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Serving changes the process; here it is the one that runs the tests."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home")


def run(
    home: Path, *services: Service, options: UpOptions = OPTIONS, number: int | None = None
) -> tuple[int, dict[str, Any]]:
    """Serve until the signal that is sent when it is ready; exit code and the ready event."""
    readiness: list[dict[str, Any]] = []

    async def assemble(core: NodeCore, options: UpOptions, listener: socket.socket) -> Parts:
        del core, options, listener
        return Parts(NoVerbs(), services)

    def on_ready(event: dict[str, Any]) -> None:
        readiness.append(event)
        if number is not None:
            os.kill(os.getpid(), number)

    code = serve(home, options, on_ready, assemble)
    return code, readiness[0]


def is_free(home: Path) -> bool:
    """Whether another process could serve the home now."""

    async def nothing(core: NodeCore) -> dict[str, Any]:
        return {"device": str(core.device)}

    return bool(run_on_home(home, nothing))


def test_parts_start_in_order_and_a_signal_ends_all(home: Path) -> None:
    """Exit code 0; every part is stopped and no task is left."""
    noted: list[str] = []
    code, ready = run(home, Part("a", noted), Part("b", noted), number=signal.SIGTERM)
    assert code == 0
    assert ready["pid"] == os.getpid()
    assert noted[:2] == ["start a", "start b"]
    assert sorted(noted[2:4]) == ["stop a", "stop b"]
    assert sorted(noted[4:]) == ["cancel a", "cancel b"]
    assert is_free(home)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer) and t.is_alive()]


def test_what_a_part_says_at_its_start_ends_the_node(home: Path) -> None:
    """The error comes through as it is; those that had started are stopped."""
    noted: list[str] = []
    with pytest.raises(StoreError, match="no"):
        run(home, Part("a", noted), Part("b", noted, "start"), Part("c", noted))
    assert "start c" not in noted
    assert "stop a" in noted
    assert is_free(home)


def test_a_part_that_fails_ends_the_node(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Half a node would look like a whole one; the journal has the place and not the words."""
    noted: list[str] = []
    with pytest.raises(InternalError) as failed:
        run(home, Part("a", noted), Part("b", noted, "run"))
    assert "stop a" in noted
    assert "cancel a" in noted
    said = capfd.readouterr().err
    assert '"error": "ValueError"' in said
    assert "zanzibar" not in said + str(failed.value)
    assert is_free(home)


@pytest.mark.parametrize("wrong", ["stop", "hang"])
def test_a_part_that_does_not_stop_holds_nobody_up(
    home: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are stopped all the same."""
    monkeypatch.setattr(process, "SERVICE_STOP_S", 0.05)
    noted: list[str] = []
    code, _ = run(home, Part("a", noted, wrong), Part("b", noted), number=signal.SIGINT)
    assert code == 0
    assert {"stop a", "stop b"} <= set(noted)
    assert is_free(home)


def test_a_port_that_is_taken_ends_the_node(home: Path) -> None:
    """Nothing is left behind, for either port."""
    with open_listener("127.0.0.1:0", None) as taken:
        for options in (
            UpOptions(listen=address_of(taken)),
            UpOptions(listen="127.0.0.1:0", api=address_of(taken)),
        ):
            with pytest.raises(AddressInUseError):
                run(home, options=options)
    assert is_free(home)


def test_there_is_no_node_without_a_home(tmp_path: Path) -> None:
    """Serving makes nothing."""
    with pytest.raises(NotFoundError):
        run(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_background_node_says_what_it_says_in_its_journal(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its standard error belongs to whoever started it."""
    code, _ = run(home, options=UpOptions("127.0.0.1:0", background=True, idle_stop=0.1))
    assert code == 0
    assert capfd.readouterr().err == ""
    assert '"reason": "idle"' in (home / "journal.log").read_text()


def test_options_say_what_they_mean() -> None:
    """The fields are the words of the command line."""
    assert (OPTIONS.discovery, OPTIONS.scheduler, OPTIONS.role) == (True, True, Role.NODE)
    other = UpOptions(no_discovery=True, no_scheduler=True, background=True)
    assert (other.discovery, other.scheduler, other.role) == (False, False, Role.BACKGROUND)
    for idle in (0, -1, IDLE_STOP_S_MAX + 1, float("nan")):
        with pytest.raises(UsageError):
            UpOptions(idle_stop=idle)


def test_a_verb_for_a_moment_leaves_the_home_free(home: Path) -> None:
    """Whether it succeeds or not."""

    async def fail(core: NodeCore) -> dict[str, Any]:
        await core.db.run(lambda db: db.set_settings(x="1"))
        raise RoostError("no")

    with pytest.raises(RoostError, match="no"):
        run_on_home(home, fail)
    assert is_free(home)


def test_a_command_clears_away_the_socket_of_a_killed_node(home: Path) -> None:
    """Copying a home stumbles over it, and every later command would try it."""
    ((path, listener),) = open_sockets(Home(home))
    listener.close()
    assert path.exists()
    assert is_free(home)
    assert not path.exists()
