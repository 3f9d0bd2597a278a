"""``python -m tests.crash.nodes``: real nodes that are killed; the last line says what came of it.

Part ``pairs``: while they pair, at each system call that writes or syncs. Part ``recovery``: the
same while an owner is recovered. Part ``kills``: at any moment, while they write and pull.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.awaits import processes
from tests.awaits.processes import PASSPHRASE
from tests.crash import kills, pairs, recoveries

MEMORY = Path("/dev/shm")  # where a sync costs nothing; the processes alone are killed
PARTS = ("pairs", "recovery", "kills")


def main() -> int:
    """1 when something that must hold did not."""
    parser = argparse.ArgumentParser(prog="tests.crash.nodes")
    parser.add_argument("--part", choices=PARTS, help="this part alone")
    parser.add_argument("--stride", type=int, default=1, help="die at every how many-th call")
    parser.add_argument("--at", default="", help="one call alone: mine/peer,a/b,NUMBER")
    parser.add_argument("--kind", choices=pairs.KINDS, help="pair as this alone")
    parser.add_argument("--rounds", type=int, default=1000, help="how many kills")
    parser.add_argument("--seed", type=int, default=11, help="who is killed when")
    options = parser.parse_args()
    processes.load()
    report: dict[str, Any] = {}
    parent = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="roost-nodes-", dir=parent) as folder:
        root = Path(folder)
        secret, sockets = root / "passphrase", root / "run"
        secret.write_text(PASSPHRASE)
        secret.chmod(0o600)
        sockets.mkdir(mode=0o700)
        os.environ |= {"ROOST_PASSPHRASE_FILE": str(secret), "XDG_RUNTIME_DIR": str(sockets)}
        if options.part in (None, "pairs"):
            kinds = [options.kind] if options.kind else pairs.KINDS
            report["pairs"] = pairs.play(root, options.stride, options.at, kinds)
        if options.part in (None, "recovery"):
            report["recovery"] = recoveries.play(root, options.stride)
        if options.part in (None, "kills"):
            report["kills"] = kills.play(root, options.rounds, options.seed)
    print(json.dumps(report))
    return 1 if any(part.get("failed") for part in report.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
