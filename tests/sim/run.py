"""``python -m tests.sim.run --seed N``: one world, or some after each other."""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from tests.sim.trial import STEPS, FoundError, live


def main() -> int:
    """Run the worlds; 1 as soon as an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="tests.sim.run")
    parser.add_argument("--seed", type=int, help="the first world (default: any)")
    parser.add_argument("--worlds", type=int, default=1, help="how many, with rising seeds")
    parser.add_argument("--steps", type=int, default=STEPS, help="how long each lives")
    options = parser.parse_args()
    first = secrets.randbelow(2**31) if options.seed is None else options.seed
    for seed in range(first, first + options.worlds):
        try:
            report = live(seed, options.steps)
        except FoundError as exc:
            print(exc, file=sys.stderr)
            print(f"repeat: make sim SEED={seed} ARGS='--steps {options.steps}'", file=sys.stderr)
            if os.environ.get("ROOST_DEBUG"):
                raise
            return 1
        print(f"seed {seed}: {report.fingerprint}, quiet after {report.rounds} rounds")
        if options.worlds == 1:
            for name, count in sorted(report.counts.items()):
                print(f"  {name:32} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
