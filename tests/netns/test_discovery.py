"""Discovery with real multicast, between two network namespaces that a cable joins."""

import getpass
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.author import device_key

SCRIPT = Path(__file__).parent / "discover_peer.py"
pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def ip(*arguments: str) -> None:
    """Run iproute2."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not() -> str | None:
    """Why network namespaces cannot be made here, None if they can."""
    if not sys.platform.startswith("linux") or shutil.which("ip") is None:
        return "needs Linux and iproute2"
    if os.geteuid() != 0:
        return "needs root to make network namespaces"
    probe = f"roost-probe-{os.getpid()}"
    try:
        ip("netns", "add", probe)
        ip("netns", "del", probe)
    except subprocess.CalledProcessError as exc:
        return f"cannot make a network namespace: {exc.stderr.strip()}"
    return None


class Peer:
    """A process in a namespace."""

    def __init__(self, namespace: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, str(SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait(lambda e: e["event"] == "started", 20)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def say(self, line: str) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, fits: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """The first event that fits; fails when none comes in time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                event = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if fits(event):
                return event
        raise AssertionError(f"nothing fitting within {seconds} s")

    def sees(self, name: str, seconds: float = 10, **values: object) -> dict[str, Any]:
        """Wait for an advert of a device."""
        return self.wait(
            lambda e: (
                e["event"] == "seen"
                and e["who"] == [name]
                and all(e[k] == v for k, v in values.items())
            ),
            seconds,
        )

    def events(self) -> list[dict[str, Any]]:
        """What has come and was not waited for."""
        found = []
        while not self._lines.empty():
            found.append(self._lines.get())
        return found

    def end(self) -> int:
        """Close its stdin and wait."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        self._reader.join(timeout=5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


class Cable:
    """Two namespaces and the two ends of a cable, both called ``lan0``."""

    def __init__(self, name: str) -> None:
        self.a, self.b = f"{name}-a", f"{name}-b"
        self.peers: list[Peer] = []
        ip("netns", "add", self.a)
        ip("netns", "add", self.b)
        ip(
            "link",
            "add",
            "lan0",
            "netns",
            self.a,
            "type",
            "veth",
            "peer",
            "name",
            "lan0",
            "netns",
            self.b,
        )
        for namespace in (self.a, self.b):
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", "lan0", "up")

    def address(self, namespace: str, address: str) -> None:
        """Give an end an address."""
        ip("-n", namespace, "address", "add", address, "dev", "lan0")

    def start(self, namespace: str, *arguments: str) -> Peer:
        """Start a process at one end."""
        peer = Peer(namespace, *arguments)
        self.peers.append(peer)
        return peer

    def remove(self) -> None:
        """Leave nothing behind."""
        for peer in self.peers:
            if peer.process.poll() is None:
                peer.process.kill()
                peer.end()
        for namespace in (self.a, self.b):
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)


@pytest.fixture
def cable(request: pytest.FixtureRequest) -> Iterator[Cable]:
    """A cable with nothing at its ends yet."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    made = Cable(f"roost-{os.getpid()}-{abs(hash(request.node.name)) % 10_000}")
    try:
        yield made
    finally:
        made.remove()


def test_two_nodes_find_each_other_and_a_stranger_recognises_nobody(cable: Cable) -> None:
    """Each sees the other's address and port; without knowing the device, only that."""
    cable.address(cable.a, "10.77.0.1/24")
    cable.address(cable.b, "10.77.0.2/24")
    a = cable.start(cable.a, "a", "7001", "a", "b", "c")
    b = cable.start(cable.b, "b", "7002", "a", "c")
    seen = a.sees("b", port=7002)
    assert "10.77.0.2" in seen["hosts"]
    assert not any(h.startswith("127.") or h == "::1" for h in seen["hosts"])
    assert "10.77.0.1" in b.sees("a", port=7001, pairing=None)["hosts"]

    a.say("pair 7100")
    first = b.sees("a", pairing=7100)
    a.say("refresh")
    b.wait(lambda e: e["event"] == "seen" and e["who"] and e["salt"] != first["salt"], 10)
    stranger = cable.start(cable.b, "x", "7003", "nobody")
    stranger.wait(lambda e: e["event"] == "seen" and e["port"] == 7001 and e["who"] == [], 10)
    assert all(e["who"] != ["a"] for e in a.events() if e["event"] == "seen")
    assert [peer.end() for peer in (a, b, stranger)] == [0, 0, 0]


def test_S_C5_a_node_without_a_network_appears_when_the_network_does(cable: Cable) -> None:
    """Started with no address at all; found within 10 s of getting one, and again of another."""
    cable.address(cable.b, "10.77.0.2/24")
    b = cable.start(cable.b, "b", "7002", "a")
    a = cable.start(cable.a, "a", "7001", "b")
    time.sleep(1)
    cable.address(cable.a, "10.77.0.1/24")
    b.wait(lambda e: e["event"] == "seen" and "10.77.0.1" in e["hosts"], 10)
    a.wait(lambda e: e["event"] == "seen" and "10.77.0.2" in e["hosts"], 10)

    ip("-n", cable.a, "address", "del", "10.77.0.1/24", "dev", "lan0")
    cable.address(cable.a, "10.77.0.9/24")
    moved = b.wait(lambda e: e["event"] == "seen" and "10.77.0.9" in e["hosts"], 10)
    assert "10.77.0.1" not in moved["hosts"]


def test_S_C4_an_interface_that_drops_and_returns_costs_nothing_but_time(cable: Cable) -> None:
    """No end is lost to an unreachable network; a node that comes meanwhile is found."""
    cable.address(cable.a, "10.77.0.1/24")
    cable.address(cable.b, "10.77.0.2/24")
    a = cable.start(cable.a, "a", "7001", "b", "c")
    ip("-n", cable.a, "link", "set", "lan0", "down")
    a.say("refresh")
    time.sleep(1)
    cable.start(cable.b, "c", "7003", "a")
    ip("-n", cable.a, "link", "set", "lan0", "up")
    assert "10.77.0.2" in a.sees("c")["hosts"]
    assert a.process.poll() is None


def test_X_14_nothing_on_the_wire_names_a_person_a_machine_or_a_device(cable: Cable) -> None:
    """Every packet that a node sends while it starts, pairs and stops."""
    cable.address(cable.a, "10.77.0.1/24")
    cable.address(cable.b, "10.77.0.2/24")
    sniffer = cable.start(cable.b, "--sniff")
    a = cable.start(cable.a, "a", "7001")
    a.say("pair 7100")
    packets: list[bytes] = []

    def last_one(event: dict[str, Any]) -> bool:
        packets.append(bytes.fromhex(event["hex"]))
        return b"p=7100" in packets[-1]

    sniffer.wait(last_one, 10)
    assert a.end() == 0
    time.sleep(0.2)
    packets += [bytes.fromhex(e["hex"]) for e in sniffer.events()]
    heard = b"".join(packets).lower()
    assert b"_roost" in heard
    device = device_key("a").device
    secrets = [
        socket.gethostname(),
        getpass.getuser(),
        str(device),
        device.short(),
        device.hex(),
        device.hex()[:16],
    ]
    assert [s for s in secrets if s.lower().encode() in heard or bytes(device) in heard] == []
