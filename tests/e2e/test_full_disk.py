"""A full disk and a read-only one, under real processes (S-F10)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, files_with, until
from tests.support.quick import Quick, found, quick_node, same
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


def assert_refused(node: Quick, code: str, mount: Path, text: str = "no room for this") -> None:
    error = node.ask("remember", agent="muse", text=text)["error"]
    assert error["code"] == code, error
    assert str(mount) in error["message"]


def forget(node: Quick, record: str) -> None:
    assert node.do("forget", agent="muse", record=record, reason="private")["left"] == []


def test_S_F10_on_a_full_disk_reading_and_forgetting_work_and_pulling_waits(
    cluster: Cluster, disk: SmallDisk
) -> None:
    """And everything goes on by itself when there is room again."""
    a, b = quick_node(cluster, cluster.root, "a"), quick_node(cluster, disk.path, "b")
    cluster.pair(a, b)
    found(a)
    kept, gone = a.remember("The kite is in the attic"), a.remember(SECRET)
    same(a, b)
    reserve = b.home / "reserve"
    assert reserve.stat().st_size == disk.path.stat().st_blksize * 256  # a sixteenth
    assert b.do("status")["alerts"] == [], "positive control"
    disk.fill()
    a.remember("written while B has no room")
    assert_refused(b, "disk_full", disk.path)
    until(lambda: reason_of(b) == "disk_full", "the reason")
    assert str(disk.path) in b.alert("disk")
    assert b.finds("kite attic") == [kept]
    assert files_with(b.home, SECRET), "positive control"
    forget(b, gone)
    assert files_with(b.home, SECRET) == []
    assert not reserve.exists()
    b.do("sync", once=True)
    assert b.finds("no room") == [], "what the reserve gave back is not for pulling"
    disk.make_room()
    same(a, b)
    assert b.finds("no room") != []
    b.remember("there is room again")
    same(a, b)
    assert reserve.exists()
    assert b.do("status")["alerts"] == []


def reason_of(node: Quick) -> str | None:
    (peer,) = node.do("status")["peers"]
    return next((str(x["reason"]) for x in peer["agents"]), None)


def test_S_F10_without_a_running_node_a_full_disk_can_be_read_and_erased_on(
    cluster: Cluster, disk: SmallDisk
) -> None:
    """Also after a kill, when the write-ahead log holds the newest words."""
    b = quick_node(cluster, disk.path, "b")
    found(b)
    gone, kept = b.remember(SECRET), b.remember("The kite is in the attic")
    b.down(signal.SIGKILL)
    for path in (b.home / "agents").glob("*-shm"):
        path.unlink()
    disk.fill()
    assert b.finds("kite attic") == [kept]
    assert b.do("status")["running"] is False
    disk.fill()  # again: the write-ahead log was cut meanwhile, which made a little room
    assert b.do("doctor")["ok"] is False
    assert_refused(b, "disk_full", disk.path)
    forget(b, gone)
    assert files_with(b.home, SECRET) == []
    disk.make_room()
    b.remember("there is room again")
    assert b.do("doctor")["ok"]


def test_S_F10_a_read_only_disk_can_be_read(cluster: Cluster, disk: SmallDisk) -> None:
    """Closed well or killed; what was written last is there, and a write names the mount."""
    b = quick_node(cluster, disk.path, "b", up=False)
    found(b)
    first = b.remember("The kite is in the attic")
    disk.read_only(yes=True)
    assert b.finds("kite attic") == [first]
    assert_refused(b, "read_only", disk.path)
    disk.read_only(yes=False)
    b.up()
    last = b.remember("The boat leaves at dawn")
    b.down(signal.SIGKILL)
    assert [p for p in (b.home / "agents").glob("*-wal") if p.stat().st_size], "positive control"
    disk.read_only(yes=True)
    said = b.run("search", "muse", "boat dawn")
    assert [r["record"] for r in said.result["results"]] == [last], "by a command of its own"
    assert b.do("show", agent="muse", record=first)["text"] == "The kite is in the attic"
    assert [x["code"] for x in b.do("status")["alerts"]] == ["disk"]
    assert_refused(b, "read_only", disk.path)
    disk.read_only(yes=False)
    b.remember("writable again")
    assert b.do("doctor")["ok"]
