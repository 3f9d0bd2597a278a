"""What a node believes of copies of itself (S-A7)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keys.errors import BadEncoding
from keys.signing import START_DOMAIN, DeviceKey
from node.clones import Clones
from node.core import NodeCore
from node.exchange import Meeting, PeerState
from node.home import open_home
from sync.messages import Hello, Start
from tests.support.peers import Node

KEY = DeviceKey.generate()


def start(number: int, key: DeviceKey = KEY) -> Start:
    nonce = bytes([number]) * 16
    return Start(nonce, key.sign(START_DOMAIN, nonce), f"10.0.0.{number}:7667")


def test_S_A7_a_restart_is_no_clone_and_an_earlier_start_that_speaks_again_is_one() -> None:
    """X, Y, Z: three starts. X, Y, X: two copies, both named, until one of them starts anew."""
    state = PeerState()
    assert [state.met(start(n)) for n in (1, 1, 2, 3)] == [
        Meeting.SAME,
        Meeting.SAME,
        Meeting.NEW,
        Meeting.NEW,
    ]
    assert state.copies() == ()
    assert state.met(start(2)) == Meeting.AGAIN
    state.cloned = True
    assert {s.address for s in state.copies()} == {f"10.0.0.{n}:7667" for n in (1, 2, 3)}
    assert state.met(start(4)) == Meeting.NEW
    assert state.copies() == ()
    assert state.met(start(2)) == Meeting.AGAIN


def test_S_A7_copies_travel_in_a_hello_and_an_earlier_version_has_none() -> None:
    """The fields are optional; a copy without a whole proof is refused."""
    plain = Hello((1, 1), "a", b"n" * 16, 1, (), ())
    assert Hello.decode(plain.encode()) == plain
    told = Hello((1, 1), "a", b"n" * 16, 1, (), (), b"p" * 64, (start(1), start(2)))
    assert Hello.decode(told.encode()) == told
    bad = Hello((1, 1), "a", b"n" * 16, 1, (), (), b"", (Start(b"n" * 16, b"short", ""),))
    with pytest.raises(BadEncoding):
        Hello.decode(bad.encode())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "a")


def why_stopped(core: NodeCore) -> str:
    stopped = core.agents.stopped
    return "" if stopped is None else f"{type(stopped).__name__}: {stopped.message}"


async def test_S_A7_only_a_start_that_our_own_key_signed_stops_us(node: Node) -> None:
    """A peer cannot make a copy up, nor show us our own earlier starts."""
    async with asyncio.TaskGroup() as tasks:
        await node.start(tasks)
        core = node.core
        clones = Clones(core)
        await clones.begin()
        forged = start(1, DeviceKey.generate())
        own = Start(core.boot_nonce, clones.proof, "10.0.0.9:1")
        await clones.told([forged, own, Start(b"x" * 16, b"y" * 64, "")], core.device)
        assert why_stopped(core) == ""
        await clones.told([start(2, core.key)], core.device)
        assert "10.0.0.2:7667" in why_stopped(core)
        await node.stop()
    home = await asyncio.to_thread(open_home, node.path)
    again = await NodeCore.open(home, core.clock, core.journal)
    assert "ClonedError" in why_stopped(again), "a restart does not forget it"
    await again.close()
