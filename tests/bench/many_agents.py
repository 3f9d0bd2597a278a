"""Memory of two nodes that share many large agents (S-F1): python -m tests.bench.many_agents.

A is filled in place, B pulls everything over TLS; both are real processes, measured by the most
that they ever had resident. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.support.big_home import make_pair, peak_mib
from tests.support.cluster import Node
from tests.support.peers import PASSPHRASE

WAIT_S = 3_600.0
LOOK_S = 0.5


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--records", type=int, default=640, help="of each agent")
    parser.add_argument("--bytes", type=int, default=16_000, help="of each record")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        root = Path(folder)
        (root / "passphrase").write_text(PASSPHRASE)
        (root / "passphrase").chmod(0o600)
        first, _ = make_pair(root, args.agents, args.records, args.bytes)
        nodes = [Node(root, name) for name in ("a", "b")]
        nodes[0].options = ("--listen", f"127.0.0.1:{first.port}", "--no-discovery")
        try:
            found = _measure(nodes[0], nodes[1], args.agents * args.records)
        finally:
            for node in nodes:
                node.down()
    sys.stdout.write(json.dumps(vars(args) | found) + "\n")


def _measure(a: Node, b: Node, records: int) -> dict[str, float]:
    a.up()
    b.up()
    pids = [node.process.pid for node in (a, b) if node.process]
    idle = [peak_mib(pid) for pid in pids]
    started = time.monotonic()
    while _pulled(b) < records:
        assert time.monotonic() - started < WAIT_S, "waited in vain"
        time.sleep(LOOK_S)
    took_s = time.monotonic() - started
    disk = sum(p.stat().st_size for p in (b.home / "agents").iterdir()) // 2**20
    peaks = [peak_mib(pid) for pid in pids]
    return {
        "disk_mib": disk,
        "pull_s": round(took_s, 1),
        "idle_mib": max(idle),
        "server_peak_mib": peaks[0],
        "puller_peak_mib": peaks[1],
        "cores": os.cpu_count() or 0,
    }


def _pulled(node: Node) -> int:
    """How many records are here; accepts whatever is offered."""
    agents = node("agent", "list")["agents"]
    for agent in agents:
        if not agent["accepted"]:
            node.run("agent", "accept", agent["agent"])
    return sum(agent.get("records", 0) for agent in agents)


if __name__ == "__main__":
    main()
