"""Figures between two real nodes: cold sync and live latency over TLS on loopback."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from node.demo import AGENT, DemoNode
from tests.bench.world import note

LATENCY_ROUNDS = 20
WAIT_S = 600.0


def two_nodes(count: int) -> dict[str, Any]:
    """Cold sync of ``count`` records to a node that pairs when they are there, then latency."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder, ExitStack() as stack:
        root = Path(folder)
        a, b = DemoNode(root, "a"), DemoNode(root, "b")
        for node in (a, b):
            node("init", "--name", node.name, "--no-recovery")
        address = stack.enter_context(a.running())
        a("agent", "create", AGENT)
        rows = root / "rows.jsonl"
        with rows.open("w", encoding="utf-8") as file:
            for i in range(count):
                one = note(i)
                file.write(json.dumps({"text": one.text, "tags": list(one.tags)}) + "\n")
        a("remember", AGENT, "--jsonl", str(rows))
        stack.enter_context(b.running())
        waiting = a.open_pairing()
        assert waiting.stdout is not None
        code = json.loads(waiting.stdout.readline())["code"]
        start = time.perf_counter()
        b("pair", "join", "--address", address, "--code", code, "--mine")
        waiting.wait(60)
        wanted = a("digest", AGENT)["digest"]
        _until(lambda: _digest(b) == wanted)
        cold_s = time.perf_counter() - start
        return {
            "cold_sync_per_s": count / cold_s,
            "cold_sync_s": cold_s,
            "live_latency_ms": statistics.median(_latency(a, b, i) for i in range(LATENCY_ROUNDS))
            * 1000,
        }


def _digest(node: DemoNode) -> str:
    done = subprocess.run(node.argv("digest", AGENT), capture_output=True, text=True, check=False)
    return str(json.loads(done.stdout)["digest"]) if done.returncode == 0 else ""


def _latency(a: DemoNode, b: DemoNode, number: int) -> float:
    """Seconds from the end of a write on A to the first search on B that finds it.

    Both commands are processes of their own: their start-up is part of the figure.
    """
    record = str(a("remember", AGENT, f"latency probe number {number} zebra{number}")["record"])
    start = time.perf_counter()
    _until(lambda: b.finds(f"zebra{number}", record))
    return time.perf_counter() - start


def _until(seen: Any) -> None:
    give_up = time.monotonic() + WAIT_S
    while not seen():
        assert time.monotonic() < give_up, "the nodes did not agree"
        time.sleep(0.02)
