"""Two live copies of one home, under real processes (S-A7)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import PASSPHRASE, Cluster, until
from tests.support.quick import LOOK_S, Quick, found, quick_node, same

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.stop()


def code_of_write(node: Quick) -> str:
    time.sleep(LOOK_S)
    said = node.ask("remember", agent="muse", text="written on a copy")
    return str(said["error"]["code"]) if "error" in said else "written"


def two_copies(cluster: Cluster) -> tuple[Quick, Quick, Quick]:
    """A node, a live copy of it, and a peer of both."""
    a, c = (quick_node(cluster, cluster.root, name) for name in ("a", "c"))
    cluster.pair(a, c)
    found(a)
    a.remember("The kite is in the attic")
    same(a, c)
    a.down()
    a.up()
    a.remember("after another start")
    same(a, c)
    assert c.alert("clone") == "", "positive control: a restart is no clone"
    a.down()
    shutil.copytree(a.home, cluster.root / "copy")
    copy = Quick(cluster.root, "copy")
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
    assert a.ask("devices.renew", passphrase=PASSPHRASE)["error"]["code"] == "in_use"
    for node in (a, copy):
        node.down()
    assert code_of_write(a) == "cloned", "a restart does not help"
    made = copy("devices", "renew", "--name", "twin")
    assert made["device"] != made["before"] == a.do("status")["device"]
    assert made["pair_again"] == ["c"]
    a.do("devices.renew", keep=True, passphrase=PASSPHRASE)
    for node in (a, copy):
        assert code_of_write(node) == "written"
        node.up()
    cluster.pair(c, copy)
    assert_go_on(a, copy, c)
    assert {d["device"] for d in c.do("status")["peers"]} == {made["device"], made["before"]}


def assert_named(a: Quick, copy: Quick, c: Quick) -> None:
    assert a.listen in c.alert("clone")
    assert copy.listen in c.alert("clone")
    assert copy.listen in a.alert("cloned")
    assert a.listen in copy.alert("cloned")


def assert_go_on(a: Quick, copy: Quick, c: Quick) -> None:
    copy.remember("written by the new device")
    a.remember("written by the old device")
    same(a, c, copy)
    for node in (a, c, copy):
        assert len(node.finds("kite attic")) == 1
        assert node.do("audit.verify")["ok"]
        assert node.do("quarantine.list", agent="muse")["quarantine"] == []
        assert {x["code"] for x in node.do("status")["alerts"]} <= {"clone"}
