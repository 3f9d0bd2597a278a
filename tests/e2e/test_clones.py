"""Two live copies of one home, under real processes (S-A7)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Node, equal, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.stop()


def code_of_write(node: Node) -> str:
    said = node.run("remember", "muse", "written on a copy")
    return str(said.error["code"]) if said.code else "written"


def alert(node: Node, code: str) -> str:
    return next((str(x["message"]) for x in node("status")["alerts"] if x["code"] == code), "")


def two_copies(cluster: Cluster) -> tuple[Node, Node, Node]:
    """A node, a live copy of it, and a peer of both."""
    a, c = cluster.node("a"), cluster.node("c")
    cluster.pair(a, c)
    a("agent", "create", "muse")
    a("remember", "muse", "The kite is in the attic")
    equal(a, c)
    for _ in range(2):
        a.down()
        a.up()
        equal(a, c)
    assert alert(c, "clone") == "", "positive control: a restart is no clone"
    assert a.run("remember", "muse", "before the copy").code == 0
    equal(a, c)
    a.down()
    shutil.copytree(a.home, cluster.root / "copy")
    copy = Node(cluster.root, "copy")
    cluster.nodes.append(copy)
    copy.up()
    a.up()
    return a, copy, c


def test_S_A7_two_live_copies_stop_writing_and_one_becomes_a_new_device(cluster: Cluster) -> None:
    """Both are named at the peer that met them; both memories go on, and no log is forked."""
    a, copy, c = two_copies(cluster)
    for node in (a, copy):
        until(lambda node=node: code_of_write(node) == "cloned", "a copy to stop")  # type: ignore[misc]
    assert_named(a, copy, c)
    assert len(a.finds("kite attic")) == 1, "reading goes on"
    assert a.run("devices", "renew").code == 5, "not under a running node"
    for node in (a, copy):
        node.down()
    assert code_of_write(a) == "cloned", "a restart does not help"
    made = copy("devices", "renew", "--name", "twin")
    assert made["device"] != made["before"] == a("status")["device"]
    assert made["pair_again"] == ["c"]
    a("devices", "renew", "--keep")
    for node in (a, copy):
        assert code_of_write(node) == "written"
        node.up()
    cluster.pair(c, copy)
    cluster.pair(c, a)
    assert_go_on(a, copy, c)
    assert {d["device"] for d in c("status")["peers"]} == {made["device"], made["before"]}


def assert_named(a: Node, copy: Node, c: Node) -> None:
    assert a.listen in alert(c, "clone")
    assert copy.listen in alert(c, "clone")
    assert copy.listen in alert(a, "cloned")
    assert a.listen in alert(copy, "cloned")


def assert_go_on(a: Node, copy: Node, c: Node) -> None:
    copy("remember", "muse", "written by the new device")
    a("remember", "muse", "written by the old device")
    equal(a, c, copy)
    for node in (a, c, copy):
        assert len(node.finds("kite attic")) == 1
        assert node("audit", "verify")["ok"]
        assert node("quarantine", "list", "muse")["quarantine"] == []
        assert {x["code"] for x in node("status")["alerts"]} <= {"clone"}
