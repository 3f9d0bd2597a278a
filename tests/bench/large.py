"""One agent with very many records: python -m tests.bench.large.

A home holds one agent, written in place by one process in batches; a second home knows the agent
and is given a copy of its file, since pulling a million entries says nothing that 100,000 do not.
Both are served by real processes. The same is done with a small agent, and the ratios printed: only
figures of one run compare. With ``--keep`` the homes stay, and are used again by the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from crdt.fingerprint import FingerprintKey
from keys.ids import AgentId
from keys.keyfile import read_secret
from keys.limits import KEY_BYTES
from memory.door import open_connection
from memory.store import AgentStore
from tests.bench.served import (
    call,
    cpu_s,
    homes,
    middle,
    resident_mib,
    timed,
    up,
    write_notes,
)
from tests.support.big_home import peak_mib
from tests.support.cluster import Node
from tests.support.peers import PASSPHRASE, befriend, running, share
from tests.support.peers import Node as InProcess

AGENT = "muse"
SMALL = 10_000
STEP = 50_000
ROUNDS = 5
SEARCHES = 100
QUERIES = {
    "search": "visitor shelf {}",  # two words of every record and one of each 97th
    "rare_search": "note {}",
    "common_search": "visitor shelf noon",
}


def main() -> None:
    """Run once and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="build the homes here, or use those that are")
    args = parser.parse_args()
    sys.stdout.write(json.dumps(large(args.records, args.keep)) + "\n")


def large(records: int, keep: Path | None = None) -> dict[str, Any]:
    """Figures of an agent with ``records`` records, of a small one, and their ratios."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        root = keep or Path(folder)
        small = _size(root / str(SMALL), SMALL)
        big = _size(root / str(records), records)
    ratios = {
        f"large_{name}_ratio": round(big[name] / small[name], 2)
        for name in big
        if name.endswith(("_s", "_ms", "_mib", "bytes")) and small[name]
    }
    out = {f"large_{name}": value for name, value in big.items()}
    return out | {f"small_{name}": value for name, value in small.items()} | ratios


def _size(root: Path, records: int) -> dict[str, Any]:
    built: dict[str, Any] = {}
    if not (root / "built.json").exists():
        root.mkdir(parents=True)
        homes(root)
        built = asyncio.run(_build(root, records))
        (root / "built.json").write_text(json.dumps(built))
    built = json.loads((root / "built.json").read_text())
    nodes = [Node(root, name) for name in ("a", "b")]
    nodes[0].options = ("--listen", f"127.0.0.1:{built.pop('port')}", "--no-discovery")
    return built | _loaded(nodes[0].home) | _served(nodes[0]) | _in_sync(*nodes)


async def _build(root: Path, records: int) -> dict[str, Any]:
    """Two homes that are peers; the first writes, then the second gets a copy of the file."""
    a, b = InProcess(root / "a"), InProcess(root / "b")
    async with running(a, b):
        await a("agent.create", name=AGENT, passphrase=PASSPHRASE)
        await befriend(a, b)
        await share(a, AGENT, b, "read", "write")
    rates: list[float] = []
    async with running(a):
        for first in range(0, records, STEP):
            count = min(STEP, records - first)
            start = time.process_time()
            await write_notes(a, AGENT, first, count)
            rates.append(count / (time.process_time() - start))
    (name,) = (path.name for path in (root / "a" / "agents").glob("*.db"))
    here, there = root / "a" / "agents" / name, root / "b" / "agents" / name
    shutil.copyfile(here, there)
    with sqlite3.connect(there) as db:  # under what b writes is b's own affair
        db.execute("DELETE FROM meta WHERE key = 'incarnation'")
    return {
        "records": records,
        "port": a.port,
        "batch_writes_per_cpu_s_first": round(rates[0]),
        "batch_writes_per_cpu_s_last": round(rates[-1]),
        "file_mib": here.stat().st_size // 2**20,
        "file_bytes_per_record": here.stat().st_size // records,
    }


def _loaded(home: Path) -> dict[str, Any]:
    """Opening the store in this process, nothing else."""
    (path,) = (home / "agents").glob("*.db")
    agent = AgentId.parse(path.stem)
    secret = read_secret(home / "keys" / f"{agent}.values", KEY_BYTES)
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        connection = open_connection(path)
        store = AgentStore(connection, agent, [FingerprintKey(secret)])
        assert store.vector()
        seconds.append(time.process_time() - start)
        connection.close()
    return {"load_cpu_ms": round(middle(seconds) * 1000, 2)}


def _served(node: Node) -> dict[str, Any]:
    """Restarts of a node, the first search of each, and then many."""
    wall: list[float] = []
    cpu: list[float] = []
    first: list[float] = []
    for i in range(ROUNDS):
        start = time.perf_counter()
        with up(node) as pid:
            wall.append(time.perf_counter() - start)
            cpu.append(cpu_s(pid))
            first.append(timed(lambda i=i: _search(node, QUERIES["search"], i)))  # type: ignore[misc]
    with up(node) as pid:
        found = _searches(node, pid) | {
            "resident_mib": resident_mib(pid),
            "peak_mib": peak_mib(pid),
        }
    return {
        "restart_s": round(middle(wall), 2),
        "restart_cpu_s": round(middle(cpu), 2),
        "first_search_ms": round(middle(first) * 1000, 1),
    } | found


def _searches(node: Node, pid: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, query in QUERIES.items():
        count = SEARCHES if "{}" in query else ROUNDS
        before = cpu_s(pid)
        seconds = [
            timed(lambda i=i, query=query: _search(node, query, i % 97))  # type: ignore[misc]
            for i in range(count)
        ]
        out |= {
            f"{name}_p50_ms": round(middle(seconds) * 1000, 1),
            f"{name}_p95_ms": round(middle(seconds, 0.95) * 1000, 1),
            f"{name}_cpu_ms": round((cpu_s(pid) - before) * 1000 / count, 1),
        }
    return out


def _search(node: Node, query: str, number: int) -> None:
    assert call(node, "search", agent=AGENT, query=query.format(number))["results"]


def _in_sync(a: Node, b: Node) -> dict[str, Any]:
    """Rounds of two nodes that hold the same, each with a file of the whole size."""
    with up(a), up(b) as pid:
        assert call(a, "digest", agent=AGENT) == call(b, "digest", agent=AGENT)
        call(b, "sync", once=True)
        before = cpu_s(pid)
        rounds: list[dict[str, Any]] = []
        seconds = [timed(lambda: rounds.append(call(b, "sync", once=True))) for _ in range(ROUNDS)]
        used = cpu_s(pid) - before
        digest = timed(lambda: call(b, "digest", agent=AGENT))
    return {
        "in_sync_bytes": middle([float(r["bytes"]) for r in rounds]),
        "in_sync_ms": round(middle(seconds) * 1000, 1),
        "in_sync_cpu_ms": round(used * 1000 / ROUNDS, 1),
        "digest_of_everything_s": round(digest, 2),
        "cores": os.cpu_count() or 0,
    }


if __name__ == "__main__":
    main()
