"""Two real nodes in two network namespaces, which find each other by real mDNS."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.netns.test_discovery import Cable, why_not
from tests.support.cluster import Cluster, Node, equal, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    """Two homes at the two ends of a cable, with addresses of their own and nothing typed."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    cable = Cable(f"roost-n{os.getpid()}")
    cluster = Cluster(tmp_path)
    try:
        cable.address(cable.a, "10.77.0.1/24")
        cable.address(cable.b, "10.77.0.2/24")
        for name, namespace in (("a", cable.a), ("b", cable.b)):
            node = Node(
                tmp_path,
                name,
                prefix=("ip", "netns", "exec", namespace),
                options=("--listen", "0.0.0.0:0"),
            )
            node("init", "--name", name, "--no-recovery")
            cluster.nodes.append(node)
            node.up()
        yield cluster.nodes[0], cluster.nodes[1]
    finally:
        cluster.stop()
        cable.remove()


def test_nodes_pair_by_device_and_sync_and_meet_again_at_another_port(
    lan: tuple[Node, Node],
) -> None:
    """The opener is in `pair list`, no address is typed, and a new port is found by its advert."""
    a, b = lan
    device = a("status")["device"]
    waiting = subprocess.Popen(
        a.argv("pair", "open", "--mine"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=a.environ,
    )
    assert waiting.stdout is not None
    code = json.loads(waiting.stdout.readline())["code"]
    until(
        lambda: (
            device in [f["device"] for f in b("pair", "list")["found"]]
            or bool(b("pair", "list")["found"])
        ),
        "the advert of the opener",
    )
    b("pair", "join", "--device", device, "--code", code, "--mine")
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, out + err
    a("agent", "create", "muse")
    record = a("remember", "muse", "found without an address")["record"]
    equal(a, b)
    assert b.finds("found address") == [record]
    a.down()
    a.options = ("--listen", "0.0.0.0:7799")
    a.up()
    later = b("remember", "muse", "written after the move")["record"]
    equal(a, b)
    assert a.finds("move") == [later]
