"""A node that only waits, with several agents: python -m tests.bench.idle."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.served import call, cpu_s, homes, resident_mib, up, write_notes
from tests.support.big_home import peak_mib
from tests.support.cluster import Node
from tests.support.peers import PASSPHRASE, running
from tests.support.peers import Node as InProcess

WATCHED_S = 60.0


def main() -> None:
    """Run once and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=5)
    parser.add_argument("--records", type=int, default=20_000, help="of each agent")
    args = parser.parse_args()
    sys.stdout.write(json.dumps(idle(args.agents, args.records)) + "\n")


def idle(agents: int, records: int) -> dict[str, Any]:
    """What a node has resident and uses of a processor while nobody asks it for anything."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        root = Path(folder)
        homes(root)
        asyncio.run(_build(root / "a", agents, records))
        node = Node(root, "a")
        with up(node) as pid:
            for number in range(agents):
                assert call(node, "search", agent=f"agent{number}", query="visitor")["results"]
            before = cpu_s(pid)
            time.sleep(WATCHED_S)
            return {
                "idle_agents": agents,
                "idle_records_of_each": records,
                "idle_resident_mib": resident_mib(pid),
                "idle_peak_mib": peak_mib(pid),
                "idle_cpu_percent": round((cpu_s(pid) - before) * 100 / WATCHED_S, 2),
            }


async def _build(path: Path, agents: int, records: int) -> None:
    node = InProcess(path)
    async with running(node):
        for number in range(agents):
            await node("agent.create", name=f"agent{number}", passphrase=PASSPHRASE)
            await write_notes(node, f"agent{number}", 0, records)


if __name__ == "__main__":
    main()
