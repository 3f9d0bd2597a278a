"""``python -m tests.fuzz.run``: decoders, running nodes, regeneration and convergence, at length.

What each was given is printed; a fault is printed with its seed, and the rest goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz import nodes
from tests.fuzz.clusters import cluster
from tests.fuzz.convergence import TRIAL_STEPS, live
from tests.fuzz.decoders import all_decoders
from tests.fuzz.judge import alarm, judge
from tests.fuzz.stores import all_deep


def decoded(name: str, seed: int, inputs: int) -> str:
    """One decoder."""
    with tempfile.TemporaryDirectory() as folder:
        (decoder,) = [d for d in [*all_decoders(Path(folder)), *all_deep()] if d.name == name]
        with alarm() as again:
            return str(judge(decoder, seed, inputs, again))


def served(name: str, seed: int, inputs: int) -> str:
    """A running node."""
    with tempfile.TemporaryDirectory() as folder:
        codes = asyncio.run(NODES[name](Path(folder), seed, inputs))
    return f"{inputs:8} inputs, {dict(codes.most_common())}"


def regenerated(_name: str, seed: int, inputs: int) -> str:
    """X-50."""
    rng, changes, folds = random.Random(f"clusters {seed}"), 0, 0
    for _ in range(inputs):
        made, folded = cluster(rng)
        changes, folds = changes + made, folds + folded
    return f"{inputs:8} clusters, {changes} changes, {folds} replicas"


def converged(_name: str, seed: int, inputs: int) -> str:
    """X-55."""
    counts: Counter[str] = Counter()
    for number in range(-(-inputs // TRIAL_STEPS)):
        counts += live(seed + number)
    return f"{counts.total():8} steps, {dict(counts.most_common())}"


NODES = {"local API": nodes.local_api, "port for peers": nodes.peer_port, "pulls": nodes.pulls}
Job = tuple[Callable[[str, int, int], str], str, int]


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """What is to be done, the longest first."""
    yield served, "local API", options.inputs
    yield converged, "convergence", options.steps
    yield served, "port for peers", options.inputs
    yield served, "pulls", options.pulls
    yield regenerated, "regeneration", options.clusters
    with tempfile.TemporaryDirectory() as folder:
        names = [d.name for d in [*all_deep(), *all_decoders(Path(folder))]]
    for name in names:
        yield decoded, name, options.inputs


def main() -> int:
    """Run all; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.run")
    parser.add_argument("--inputs", type=int, default=200_000, help="for each decoder")
    parser.add_argument("--pulls", type=int, default=5_000, help="rounds with a hostile peer")
    parser.add_argument("--clusters", type=int, default=10_000, help="regenerated (X-50)")
    parser.add_argument("--steps", type=int, default=100_000, help="of edits at once (X-55)")
    parser.add_argument("--seed", type=int, help="repeats a run (default: any)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", help="one of the names that are printed")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"fuzzing from seed {seed}", flush=True)
    wanted = [job for job in jobs(options) if options.only in {None, job[1]}]
    started_s, failed = time.monotonic(), []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(do, name, seed, size): name for do, name, size in wanted}
        for done in as_completed(running):
            name, error = running[done], done.exception()
            print(f"  {name:24} {'FAULT ' + repr(error) if error else done.result()}", flush=True)
            if error:
                failed.append(name)
                print(f"  repeat: make soak FUZZ='--seed {seed} --only \"{name}\"'", flush=True)
    print(f"{len(wanted)} parts in {time.monotonic() - started_s:.0f} s, {len(failed)} with faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
