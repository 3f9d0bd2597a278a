"""``make bench``: figures as one JSON object, medians of several rounds.

Figures in one process use the real store on real files, and are medians; those of ``nodes.py`` are
of two real nodes over TLS on loopback, the large ones once. Compare only figures of one run:
machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crdt.chain import verify_run
from crdt.entry import Via
from crdt.log import ServedRun, Stretch
from keys.limits import RUN_BYTES_TARGET
from memory.query import Filters, search
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import remember
from tests.bench.floor import floor_seconds
from tests.bench.nodes import two_nodes
from tests.bench.world import World, fill, note

NOW_US = 1_800_000_000_000_000


def main() -> int:
    """Run the benches and print the figures."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--skip-nodes", action="store_true", help="only what one process can show")
    chosen = parser.parse_args()
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "records": chosen.records,
        "rounds": chosen.rounds,
    }
    rounds = [_one_process(chosen.records) for _ in range(chosen.rounds)]
    figures |= {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    if not chosen.skip_nodes:
        figures |= two_nodes(chosen.records)
        figures["cold_sync_to_floor"] = figures["cold_sync_per_s"] / figures["floor_per_s"]
    figures["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


def _one_process(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        world = World(Path(folder))
        writer, author = world.open(0)
        reader, _ = world.open(1)
        batch_s = _timed(lambda: fill(author, count, NOW_US))
        runs = _runs(writer)
        receive_s = _timed(lambda: _receive(reader, runs))
        assert writer.digest() == reader.digest()
        floor_s = floor_seconds(world.folder, world.agent, world.key, runs)
        single = [
            _timed(lambda i=i: remember(author, note(count + i), Via.LOCAL, NOW_US))  # type: ignore[misc]
            for i in range(50)
        ]
        scope = Scope(reader.agent, every_state=False)
        searches = sorted(
            _timed(
                lambda i=i: search(  # type: ignore[misc]
                    reader, scope, f"visitor shelf {i % 97}", Filters(), limit=10, now_us=NOW_US
                )
            )
            for i in range(100)
        )
        return {
            "batch_write_per_s": count / batch_s,
            "receive_per_s": count / receive_s,
            "floor_per_s": count / floor_s,
            "receive_to_floor": floor_s / receive_s,
            "single_write_ms": statistics.median(single) * 1000,
            "search_p50_ms": searches[50] * 1000,
            "search_p95_ms": searches[95] * 1000,
            "bytes_per_record_on_the_wire": sum(
                len(e.raw.header) + len(e.raw.payload or b"") for r in runs for e in r.entries
            )
            / count,
        }


def _runs(store: AgentStore) -> list[ServedRun]:
    out: list[ServedRun] = []
    for stretch in store.plan({}):
        rest: Stretch | None = stretch
        while rest is not None:
            run, rest = store.read_run(rest, RUN_BYTES_TARGET)
            out.append(run)
    return out


def _receive(store: AgentStore, runs: list[ServedRun]) -> None:
    for run in runs:
        store.append_runs([verify_run(store.agent, [e.raw for e in run.entries])], NOW_US)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
