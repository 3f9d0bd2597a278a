"""``python -m tests.sim.soak --minutes M``: world after world, each with a seed of its own."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter

from tests.sim.trial import STEPS, FoundError, live

LONGEST = 4  # times the usual length


def main() -> int:
    """Run until the time is over; 1 if an invariant did not hold in any world."""
    parser = argparse.ArgumentParser(prog="tests.sim.soak")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, help="the first world (default: any)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    end_s = time.monotonic() + 60 * options.minutes
    counts: Counter[str] = Counter()
    worlds, failed = 0, []
    print(f"from seed {seed}", flush=True)
    while time.monotonic() < end_s:
        steps = STEPS * (1 + seed % LONGEST)
        try:
            counts += live(seed, steps).counts
        except FoundError as exc:
            failed.append(seed)
            print(exc, flush=True)
            print(f"repeat: make sim SEED={seed} ARGS='--steps {steps}'", flush=True)
        worlds, seed = worlds + 1, seed + 1
    for name, count in sorted(counts.items()):
        print(f"  {name:32} {count}")
    print(f"{worlds} worlds, {len(failed)} failed {failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
