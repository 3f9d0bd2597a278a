"""What a node believes of copies of itself (S-A7)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from keys.errors import BadEncoding
from keys.limits import STARTS_MAX
from keys.signing import START_DOMAIN, DeviceKey
from node.clones import Clones
from node.core import NodeCore
from node.exchange import Meeting, PeerState
from node.home import open_home
from sync.advert import Found, salted_id
from sync.messages import Hello, Start
from tests.support.peers import Node, running

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
    whole = Hello((1, 1), "a", b"n" * 16, 1, (), (), b"", tuple(map(start, range(STARTS_MAX))))
    assert Hello.decode(whole.encode()) == whole
    more = Hello((1, 1), "a", b"n" * 16, 1, (), (), b"", tuple(map(start, range(STARTS_MAX + 1))))
    with pytest.raises(BadEncoding):
        Hello.decode(more.encode())
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


async def test_S_A7_two_copies_that_see_each_other_on_the_network_both_stop(
    node: Node, tmp_path: Path
) -> None:
    """An advert of our own device is followed; who holds our key there is a copy, and told so.

    One that leads back to ourselves, or to nobody, is nothing.
    """
    await asyncio.to_thread(shutil.copytree, node.path, tmp_path / "copy", symlinks=True)
    copy = Node(tmp_path / "copy", new=False)
    async with running(node, copy):
        await node.network._look_at_double(advert(node))
        await node.network._look_at_double(advert(node, port=1))
        assert why_stopped(node.core) == ""
        await node.network._look_at_double(advert(copy))
        assert copy.address in why_stopped(node.core)
        assert "ClonedError" in why_stopped(copy.core)


def advert(node: Node, port: int = 0) -> Found:
    salt = b"salt" * 2
    hosts = ("127.0.0.1",)
    salted = salted_id(salt, node.core.device)
    return Found("double", hosts, port or node.port, None, 1, salt, salted)
