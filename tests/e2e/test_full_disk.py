"""A full disk and a read-only one, under real processes (S-F10)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Node, equal, files_with, until
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

SECRET = "Zebra umbrella 8841 parsnip"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 16) as made:
        yield made


@pytest.fixture
def cluster(tmp_path: Path, disk: SmallDisk) -> Iterator[Cluster]:
    """Nodes of which those called b lie on the small disk; stopped before it goes."""
    made = Cluster(tmp_path)
    yield made
    made.stop()


def node_on(cluster: Cluster, disk: SmallDisk, *, up: bool) -> Node:
    node = Node(disk.path, "b")
    node("init", "--name", "b", "--no-recovery")
    cluster.nodes.append(node)
    if up:
        node.up()
    return node


def assert_refused(node: Node, code: str, mount: Path, text: str = "no room for this") -> None:
    said = node.run("remember", "muse", text)
    assert (said.code, said.error["code"]) == (1, code), said.error
    assert str(mount) in said.error["message"]


def test_S_F10_on_a_full_disk_reading_and_forgetting_work_and_pulling_waits(
    cluster: Cluster, disk: SmallDisk
) -> None:
    """And everything goes on by itself when there is room again."""
    a, b = cluster.node("a"), node_on(cluster, disk, up=True)
    cluster.pair(a, b)
    a("agent", "create", "muse")
    kept = a("remember", "muse", "The kite is in the attic")["record"]
    gone = a("remember", "muse", SECRET)["record"]
    equal(a, b)
    reserve = b.home / "reserve"
    assert reserve.stat().st_size == disk.path.stat().st_blksize * 256  # a sixteenth
    assert b("status")["alerts"] == [], "positive control"
    disk.fill()
    a("remember", "muse", "written while B has no room")
    assert_refused(b, "disk_full", disk.path)
    until(lambda: reason_of(b) == "disk_full", "the reason")
    assert str(disk.path) in str([x for x in b("status")["alerts"] if x["code"] == "disk"])
    assert b.finds("kite attic") == [kept]
    assert files_with(b.home, SECRET), "positive control"
    b("forget", "muse", gone, "--reason", "private")
    assert files_with(b.home, SECRET) == []
    assert b.state(gone) == "erased"
    assert not reserve.exists()
    b("sync", "--once")
    assert b.finds("no room") == [], "what the reserve gave back is not for pulling"
    disk.make_room()
    equal(a, b)
    assert b.finds("no room") != []
    b("remember", "muse", "there is room again")
    equal(a, b)
    assert reserve.exists()
    assert b("status")["alerts"] == []


def reason_of(node: Node) -> str | None:
    (peer,) = node("status")["peers"]
    return next((str(x["reason"]) for x in peer["agents"]), None)


def test_S_F10_without_a_running_node_a_full_disk_can_be_read_and_erased_on(
    cluster: Cluster, disk: SmallDisk
) -> None:
    """Also after a kill, when the write-ahead log holds the newest words."""
    b = node_on(cluster, disk, up=True)
    b("agent", "create", "muse")
    gone = b("remember", "muse", SECRET)["record"]
    kept = b("remember", "muse", "The kite is in the attic")["record"]
    b.down(signal.SIGKILL)
    for path in (b.home / "agents").glob("*-shm"):
        path.unlink()
    disk.fill()
    assert b.finds("kite attic") == [kept]
    assert b("status")["running"] is False
    assert b.run("doctor").code == 1
    assert_refused(b, "disk_full", disk.path)
    b("forget", "muse", gone, "--reason", "private")
    assert files_with(b.home, SECRET) == []
    disk.make_room()
    b("remember", "muse", "there is room again")
    assert b("doctor")["ok"]


def test_S_F10_a_read_only_disk_can_be_read(cluster: Cluster, disk: SmallDisk) -> None:
    """Closed well or killed; what was written last is there, and a write names the mount."""
    b = node_on(cluster, disk, up=False)
    b("agent", "create", "muse")
    first = b("remember", "muse", "The kite is in the attic")["record"]
    disk.read_only(yes=True)
    assert b.finds("kite attic") == [first]
    assert_refused(b, "read_only", disk.path)
    disk.read_only(yes=False)
    b.up()
    last = b("remember", "muse", "The boat leaves at dawn")["record"]
    b.down(signal.SIGKILL)
    assert [p for p in (b.home / "agents").glob("*-wal") if p.stat().st_size], "positive control"
    disk.read_only(yes=True)
    assert b.finds("boat dawn") == [last]
    assert b("show", "muse", first)["text"] == "The kite is in the attic"
    assert [x["code"] for x in b("status")["alerts"]] == ["disk"]
    assert_refused(b, "read_only", disk.path)
    disk.read_only(yes=False)
    b("remember", "muse", "writable again")
    assert b("doctor")["ok"]
