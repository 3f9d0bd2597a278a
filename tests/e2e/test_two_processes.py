"""Two and three real ``roost`` processes over real TLS sockets, through the command line."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Node, equal, files_with, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Nodes in a temporary directory."""
    made = Cluster(tmp_path)
    yield made
    made.stop()


def test_a_memory_written_on_either_node_is_found_and_forgotten_on_both_and_on_a_late_third(
    cluster: Cluster,
) -> None:
    """The main job: share, correct, forget; nothing comes back on A, on B, or on C joining late."""
    a, b = cluster.node("a"), cluster.node("b")
    cluster.pair(a, b)
    a("agent", "create", "muse")
    kept = a("remember", "muse", "The kite is in the attic")["record"]
    secret = "Zebra umbrella 8841 parsnip"
    gone = a("remember", "muse", secret)["record"]
    made = a("remember", "muse", f"{secret}, says the note", "--derived-from", gone)["record"]
    equal(a, b)
    assert b.finds("kite attic") == [kept]
    assert files_with(b.home, secret), "positive control: the text reached B's disk"
    b("forget", "muse", gone, "--reason", "private")
    equal(a, b)
    until(lambda: not files_with(a.home, secret), "A to erase")
    until(lambda: not files_with(b.home, secret), "B to erase")
    c = cluster.node("c")
    cluster.pair(a, c)
    equal(a, b, c)
    for node in (a, b, c):
        assert not files_with(node.home, secret)
        assert node.finds("zebra parsnip") == []
        assert node.finds("kite attic") == [kept]
        assert (node.state(gone), node.state(made)) == ("erased", "erased")
        refused = node.run("remember", "muse", "  zebra   UMBRELLA 8841 parsnip. ")
        assert (refused.code, refused.error["code"]) == (3, "tombstoned")
        assert refused.error["tombstone"]
        audit = node("audit", "verify", "muse")
        assert audit["ok"], audit
        rebuilt = node("rebuild", "muse")
        assert rebuilt["digest_before"] == rebuilt["digest_after"]


@pytest.mark.parametrize("first", ["a"])
def test_retire_on_one_and_keep_on_the_other_while_apart_end_retired_on_both(
    cluster: Cluster, first: str
) -> None:
    """Withholding wins, whichever node is met first."""
    a, b = cluster.node("a"), cluster.node("b")
    cluster.pair(a, b)
    a("agent", "create", "muse")
    record = a("remember", "muse", "The shop opens at nine")["record"]
    control = a("remember", "muse", "The shop closes at six")["record"]
    equal(a, b)
    a.down()
    b.down()
    a("retire", "muse", record, "--reason", "moved")
    b("keep", "muse", record)
    b("keep", "muse", control)
    assert (a.state(record), b.state(record)) == ("deprecated", "current")
    for node in (a, b) if first == "a" else (b, a):
        node.up()
    equal(a, b)
    for node in (a, b):
        assert node.state(record) == "deprecated"
        assert node.state(control) == "current"
        assert record not in node.finds("shop opens")


def test_S_E12_a_pull_that_is_killed_goes_on_where_it_was(cluster: Cluster) -> None:
    """After kill -9 in the middle, what was pulled before and after adds up to all entries."""
    a, b = cluster.node("a"), cluster.node("b", up=False)
    a("agent", "create", "muse")
    rows = cluster.root / "rows.jsonl"
    with rows.open("w") as file:
        for i in range(3_000):
            file.write(json.dumps({"text": f"shelf {i} holds jar number {i * 7}"}) + "\n")
    a("remember", "muse", "--jsonl", str(rows))
    b.up()
    cluster.pair(a, b)
    until(lambda: b("agent", "list")["agents"] != [], "the agent to arrive")
    b.down(signal.SIGKILL)
    held = b("audit", "verify")["entries"]
    pulled = b("sync", "--once")["pulled"]
    entries = a("audit", "verify")["entries"]
    assert held + pulled == entries, "nothing travels twice once it is durable"
    assert held < entries, "positive control: the pull was cut"
    b.up()
    equal(a, b)


def test_a_foreign_device_gets_what_it_is_granted_until_it_is_revoked(cluster: Cluster) -> None:
    """Pairing grants nothing; read and write are separate; a revocation ends both (S-I2, X-60)."""
    a, b = cluster.node("a"), cluster.node("b")
    cluster.pair(a, b, mine=False)
    device = b("status")["device"]
    a("agent", "create", "muse")
    a("remember", "muse", "The boat leaves at dawn")
    assert b("sync", "--once")["pulled"] == 0
    assert b("agent", "list")["agents"] == []
    a("grant", "muse", device, "read")
    until(lambda: bool(b("agent", "list")["agents"]), "the offer")
    b("agent", "accept", b("agent", "list")["agents"][0]["agent"])
    equal(a, b)
    assert b.run("remember", "muse", "not allowed").code == 3
    a("grant", "muse", device, "read,write")
    until(lambda: b.run("remember", "muse", "The boat is blue").code == 0, "the right to write")
    equal(a, b)
    assert b.run("keep", "muse", b.finds("boat dawn")[0]).code == 3, "review was not granted"
    a("revoke", "muse", device)
    until(lambda: b.run("remember", "muse", "too late").code == 3, "the revocation")
    a("remember", "muse", "The boat sank")
    b("sync", "--once")
    assert b.finds("sank") == []
    assert len(a.finds("boat")) == 3, "positive control: what was written before the cut stays"


def test_the_recovery_code_gives_a_new_device_the_owners_authority_back(cluster: Cluster) -> None:
    """All devices of an owner are lost; a node of somebody else still holds the agent."""
    a, b = cluster.node("a"), cluster.node("b")
    lost = Node(cluster.root, "lost")
    made = lost("init", "--name", "lost")
    cluster.nodes.append(lost)
    lost.up()
    cluster.pair(lost, b, mine=False)
    lost("agent", "create", "muse")
    lost("remember", "muse", "The well is behind the mill")
    lost("grant", "muse", b("status")["device"], "read,write")
    until(lambda: bool(b("agent", "list")["agents"]), "the offer")
    b("agent", "accept", b("agent", "list")["agents"][0]["agent"])
    equal(lost, b)
    lost.down()
    shutil.rmtree(lost.home)
    code = cluster.root / "code"
    code.write_text(made["recovery"])
    stranger = a.run("owner", "recover", "--code-file", str(code))
    assert stranger.code == 1, "positive control: without a peer that holds it there is nothing"
    cluster.pair(b, a, mine=False)
    recovered = a("owner", "recover", "--code-file", str(code))
    assert recovered["agents"]
    assert recovered["recovery"] != made["recovery"]
    equal(a, b)
    assert a("agent", "list")["agents"][0]["rights"] == ["admin", "read", "review", "write"]
    a("remember", "muse", "Written by the owner again")
    equal(a, b)
    a("revoke", "muse", b("status")["device"])
    until(lambda: b.run("remember", "muse", "after that").code == 3, "the revocation")


def test_S_A2_S_A3_a_restored_home_takes_its_own_tail_back_and_opens_a_new_log(
    cluster: Cluster,
) -> None:
    """A restore is noticed before anything is signed, once, and loses nothing."""
    a, b = cluster.node("a"), cluster.node("b")
    cluster.pair(a, b)
    a("agent", "create", "muse")
    a("remember", "muse", "before the backup")
    equal(a, b)
    a.down()
    shutil.copytree(a.home, cluster.root / "backup", symlinks=True)
    a.up()
    a("remember", "muse", "after the backup")
    equal(a, b)
    before = a("status")["incarnation"]
    a.down()
    shutil.rmtree(a.home)
    shutil.copytree(cluster.root / "backup", a.home, symlinks=True)
    a.up()
    alerts = [alert["code"] for alert in a("status")["alerts"]]
    assert "restored" in alerts
    equal(a, b)
    assert a.finds("after backup"), "its own tail came back"
    a("remember", "muse", "written after the restore")
    equal(a, b)
    assert a("status")["incarnation"] != before
    assert a("status")["alerts"] == []
    for node in (a, b):
        assert node("audit", "verify")["ok"]
        assert node("quarantine", "list", "muse")["quarantine"] == []
