"""The planted bugs cannot rot: each still fits the tree, and the table tells of each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.planted import MUTANTS, Mutant
from tests.mutants.run import TABLE, planted

ROOT = Path(__file__).parents[2]
FEWEST = 15


def named(mutant: Mutant) -> str:
    return mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_a_planted_text_stands_once_in_the_tree(mutant: Mutant, tmp_path: Path) -> None:
    """What is replaced is there, once, and what comes in its place is Python on the same lines."""
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    whole = (ROOT / mutant.file).read_text(encoding="utf-8")
    copy.write_text(whole, encoding="utf-8")
    with planted(tmp_path, mutant):
        changed = copy.read_text(encoding="utf-8")
        assert changed != whole
        ast.parse(changed)
    assert copy.read_text(encoding="utf-8") == whole
    assert all((ROOT / suite).is_file() for suite in mutant.suites)
    assert max(mutant.old.rstrip("\n").count("\n"), mutant.new.rstrip("\n").count("\n")) == 0


def test_a_text_that_is_not_there_once_is_no_mutant(tmp_path: Path) -> None:
    """Neither a text that is gone nor one that is there twice is planted."""
    (tmp_path / "file.py").write_text("a\na\nb\n")
    for old in ("a\n", "c\n"):
        with (
            pytest.raises(ValueError, match="not once"),
            planted(tmp_path, Mutant("", "file.py", old, "d\n", ())),
        ):
            pass


def test_the_table_names_every_planted_bug_and_who_found_it() -> None:
    """Fifteen at least, none of them unfound, each found by a test that is there."""
    rows = [line.split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines()]
    told = {row[0].removeprefix("| "): row[2].strip("`| ") for row in rows if len(row) == 3}
    told = {bug: test for bug, test in told.items() if bug not in {"bug"}}
    assert {m.name for m in MUTANTS} == set(told)
    assert len(told) >= FEWEST
    for mutant in MUTANTS:
        suite, _, name = told[mutant.name].partition("::")
        assert suite in mutant.suites, mutant.name
        assert f"def {name}(" in (ROOT / suite).read_text(encoding="utf-8")
