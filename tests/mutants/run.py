"""``python -m tests.mutants.run``: plants each bug in a copy of the tree and runs the suites on it.

The working tree is never touched. With ``--table`` the outcome is written to docs/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "mutants.md"
FOUND = 1  # pytest: tests ran and some failed
TIMEOUT_S = 900
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*?)?(?: - .*)?$", re.MULTILINE)
HEAD = """# Planted bugs

Each of these bugs of one line is planted in a copy of the tree, and the ordinary suites are run on
it until a test fails (`make mutants`, which rewrites this table; the bugs are listed in
`tests/mutants/planted.py`).
`make test` checks that every planted text still stands in the tree exactly once and that this table
names each bug.

| bug | where | found by |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one planted bug: the test that found it, or None."""

    mutant: Mutant
    test: str | None
    seconds: float


def tracked() -> list[str]:
    """The files of the tree, without what is ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    """A scratch copy; a suite that asks git sees a folder without one."""
    with tempfile.TemporaryDirectory(prefix="roost-mutants-") as folder:
        for name in tracked():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        yield Path(folder)


@contextmanager
def planted(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The tree with one bug in it. Raises ``ValueError`` unless ``old`` stands there once."""
    path = tree / mutant.file
    whole = path.read_text(encoding="utf-8")
    if whole.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: the text is not once in {mutant.file}")
    path.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(whole, encoding="utf-8")


def suites_on(tree: Path, suites: Sequence[str]) -> str | None:
    """The first test that fails in ``suites``, None when all pass.

    Raises ``RuntimeError`` when the tests cannot run: that finds nothing.
    """
    for suite in suites:
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "-p", "no:randomly", suite],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        named = FAILED.search(done.stdout)
        if done.returncode == FOUND and named:
            return named.group(1)
        if done.returncode:
            raise RuntimeError(f"{suite}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return None


def try_all(mutants: Sequence[Mutant]) -> list[Outcome]:
    """Plant one after the other, and tell of each."""
    outcomes = []
    with copy_of_the_tree() as tree:
        where = "import memory.store; print(memory.store.__file__)"
        said = subprocess.run(
            [sys.executable, "-c", where],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert Path(said.strip()).is_relative_to(tree), "the suites must run on the copy"
        for mutant in mutants:
            started_s = time.monotonic()
            with planted(tree, mutant):
                test = suites_on(tree, mutant.suites)
            outcomes.append(Outcome(mutant, test, time.monotonic() - started_s))
            print(f"{'found' if test else 'NOT FOUND':9} {mutant.name}: {test or ''}", flush=True)
    return outcomes


def table_of(outcomes: Sequence[Outcome]) -> str:
    """The page that is committed."""
    rows = [
        f"| {o.mutant.name} | `{o.mutant.file}` | {f'`{o.test}`' if o.test else '**nothing**'} |"
        for o in outcomes
    ]
    found = sum(o.test is not None for o in outcomes)
    return HEAD + "\n".join(rows) + f"\n\n{found} of {len(outcomes)} found.\n"


def main() -> int:
    """Run them; 1 when a bug was not found."""
    parser = argparse.ArgumentParser(prog="tests.mutants.run")
    parser.add_argument("--only", default="", help="bugs whose name or file holds this")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if options.only in m.name or options.only in m.file]
    outcomes = try_all(chosen)
    found = sum(o.test is not None for o in outcomes)
    print(f"{found} of {len(outcomes)} planted bugs found")
    if len(chosen) == len(MUTANTS):
        TABLE.write_text(table_of(outcomes), encoding="utf-8")
    return 0 if found == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
