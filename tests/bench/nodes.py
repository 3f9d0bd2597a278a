"""Figures of two real nodes, two processes with TLS between them on loopback.

Everything goes through the nodes' local sockets, from this process: no command's start-up is in a
figure. What is counted as arrived is asked of the node that it arrived at.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cli.session import Session
from tests.bench.world import note
from tests.support.big_home import peak_mib
from tests.support.cluster import Cluster, Node

AGENT = "muse"
BATCH = 500
LATENCY_ROUNDS = 50
CLIENTS = 16
SEARCHES = 100
WAIT_S = 3_600.0
LOOK_S = 0.02


def two_nodes(count: int) -> dict[str, Any]:
    """All figures, with ``count`` records in the cold sync."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        pair = _Pair(Path(folder))
        try:
            return pair.figures(count)
        finally:
            for node in (pair.a, pair.b):
                node.down()


class _Pair:
    def __init__(self, root: Path) -> None:
        self.a, self.b = Node(root, "a"), Node(root, "b")
        for node in (self.a, self.b):
            node("init", "--name", node.name, "--no-recovery")
            node.up()
            node.options = ("--listen", node.listen, "--no-discovery")  # the same when it returns
        self.written = 0
        Cluster.pair(self.a, self.b)
        self.a("agent", "create", AGENT)
        self._write(self.a)
        self._arrived()

    def figures(self, count: int) -> dict[str, Any]:
        """Small figures first, then the large store."""
        latencies = sorted(self._latency(i) for i in range(LATENCY_ROUNDS))
        singles = sorted(self._write(self.a) for _ in range(LATENCY_ROUNDS))
        together_s = self._together()
        self._arrived()
        burst_s = _timed(lambda: self._burst(1_000))
        joined_s = self._apart(5_000)
        cold = self._cold(count)
        return {
            "live_latency_ms": round(statistics.median(latencies) * 1000, 1),
            "live_latency_p95_ms": round(latencies[int(LATENCY_ROUNDS * 0.95)] * 1000, 1),
            "single_write_ms": round(statistics.median(singles) * 1000, 1),
            "writes_by_16_clients_per_s": round(CLIENTS * LATENCY_ROUNDS / together_s),
            "burst_of_1000_s": round(burst_s, 2),
            "apart_5000_and_5000_s": round(joined_s, 1),
        } | cold

    def _burst(self, count: int) -> None:
        self._fill(self.a, count)
        self._arrived()

    def _cold(self, count: int) -> dict[str, Any]:
        """B lacks ``count`` records, starts, and has them."""
        self.b.down()
        self._fill(self.a, count)
        self.b.up()
        seconds = _timed(self._arrived)
        assert _call(self.a, "digest")["digest"] == _call(self.b, "digest")["digest"]
        peak = peak_mib(_pid(self.b))
        in_sync = self.b("sync", "--once")
        self.b.down()
        restart_s = _timed(self.b.up)
        first_s = _timed(lambda: self._search(0))
        searches = sorted(_timed(lambda i=i: self._search(i)) for i in range(SEARCHES))  # type: ignore[misc]
        return {
            "records_in_the_end": self.written,
            "cold_sync_per_s": round(count / seconds),
            "cold_sync_peak_mib": peak,
            "in_sync_check_bytes": in_sync["bytes"],
            "restart_s": round(restart_s, 2),
            "first_search_ms": round(first_s * 1000, 1),
            "node_search_p50_ms": round(searches[SEARCHES // 2] * 1000, 1),
            "node_search_p95_ms": round(searches[int(SEARCHES * 0.95)] * 1000, 1),
            "idle_rss_mib": _resident_mib(_pid(self.b)),
        }

    def _apart(self, count: int) -> float:
        """Seconds until both have what each wrote while the other was away."""
        self.b.down()
        self._fill(self.a, count)
        self.a.down()
        self.b.up()
        self._fill(self.b, count)
        self.a.up()
        return _timed(self._arrived)

    def _latency(self, number: int) -> float:
        """Seconds from the acknowledgement of a write on A to a search on B that shows it."""
        word = f"zebra{number}"
        record = _call(self.a, "remember", text=f"probe {word}")["record"]
        self.written += 1
        return _timed(lambda: _until(lambda: _shows(self.b, word, record), pause_s=0.001))

    def _write(self, node: Node) -> float:
        text = note(10**6 + self.written).text
        self.written += 1
        return _timed(lambda: _call(node, "remember", text=text))

    def _together(self) -> float:
        """Seconds for 16 clients that write one after the other, all at once."""
        first = 2 * 10**6

        def client(number: int) -> None:
            for i in range(LATENCY_ROUNDS):
                text = note(first + number * LATENCY_ROUNDS + i).text
                _call(self.a, "remember", text=text)

        with ThreadPoolExecutor(CLIENTS) as pool:
            seconds = _timed(lambda: list(pool.map(client, range(CLIENTS))))
        self.written += CLIENTS * LATENCY_ROUNDS
        return seconds

    def _fill(self, node: Node, count: int) -> None:
        for first in range(self.written, self.written + count, BATCH):
            notes = [note(i) for i in range(first, first + BATCH)]
            rows = [{"text": n.text, "tags": list(n.tags)} for n in notes]
            _call(node, "remember.batch", rows=rows)
        self.written += count

    def _search(self, number: int) -> None:
        assert _call(self.b, "search", query=f"visitor shelf {number % 97}")["results"]

    def _arrived(self) -> None:
        """Wait until both hold all that was written."""
        for node in (self.b, self.a):
            _until(lambda node=node: _records(node) >= self.written)  # type: ignore[misc]


def _records(node: Node) -> int:
    agents = Session(node.home).call("agent.list", {})["agents"]
    return sum(int(agent.get("records", 0)) for agent in agents) if agents else -1


def _shows(node: Node, word: str, record: str) -> bool:
    return any(r["record"] == record for r in _call(node, "search", query=word)["results"])


def _call(node: Node, verb: str, **params: Any) -> dict[str, Any]:
    return Session(node.home).call(verb, {"agent": AGENT} | params)


def _until(seen: Callable[[], bool], pause_s: float = LOOK_S) -> None:
    give_up = time.monotonic() + WAIT_S
    while not seen():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(pause_s)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _pid(node: Node) -> int:
    assert node.process is not None
    return node.process.pid


def _resident_mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) // 1024
