"""Every await line of memory/, sync/ and node/, counted when it is reached, and a place to die at.

The modules are imported through a finder that puts a call before and one after each ``await`` (and
before what an ``async for`` or ``async with`` takes). Nothing of it is in the product: a process
that does not ``install`` imports the files as they are.

The counters lie in memory that forked processes share, so that whoever reaches a line is counted,
and one order to die is obeyed once, in whichever process it happens.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import mmap
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("memory", "sync", "node")
BEFORE, AFTER = "_await_before", "_await_after"
FAR = 2**40  # times: never
LOOK_S = 0.001
PHASES = 2  # before the await, and after it


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A line with an await."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


class _Rewriter(ast.NodeTransformer):
    """Wraps what is awaited; ``place`` gives a line its number, once."""

    def __init__(self, file: str, table: dict[Line, int]) -> None:
        self._file, self._table = file, table

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        number = self._place(node)
        node.value = _call(BEFORE, number, node.value)
        return _call(AFTER, number, node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call(BEFORE, self._place(node), node.iter)
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = _call(BEFORE, self._place(node), item.context_expr)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if node.is_async:
            node.iter = _call(BEFORE, self._place(node.iter), node.iter)
        return node

    def _place(self, node: ast.stmt | ast.expr) -> int:
        line = Line(self._file, node.lineno)
        return self._table.setdefault(line, len(self._table))


def _call(name: str, number: int, value: ast.expr) -> ast.Call:
    called = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), value], [])
    return ast.fix_missing_locations(ast.copy_location(called, value))


def _rewritten(path: Path, table: dict[Line, int]) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    changed = _Rewriter(str(path.relative_to(ROOT)), table).visit(tree)
    assert isinstance(changed, ast.Module)
    return changed


def all_lines() -> dict[Line, int]:
    """Every await line and its number, the same in every run on the same tree."""
    table: dict[Line, int] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            _rewritten(path, table)
    return table


class Shared:
    """What forked processes share: a counter per line and phase, and the order to die."""

    _ORDER, _LEFT, _DEAD, _HEAD = 0, 1, 2, 3

    def __init__(self, lines: int) -> None:
        memory = mmap.mmap(-1, 8 * (self._HEAD + PHASES * lines))
        self._cells = memoryview(memory).cast("q")
        self._cells[self._ORDER], self._cells[self._LEFT] = -1, FAR

    def arm(self, point: int, hit: int) -> None:
        """Whoever reaches ``point`` for the ``hit``-th time from now on dies there."""
        self._cells[self._DEAD] = 0
        self._cells[self._LEFT] = hit
        self._cells[self._ORDER] = point

    def disarm(self) -> None:
        """Nobody dies from now on, and who is about to is dead when this returns."""
        cells = self._cells
        cells[self._ORDER] = -1
        if cells[self._LEFT] > 0:
            cells[self._LEFT] = FAR
        while cells[self._LEFT] <= 0 and not _is_gone(cells[self._DEAD]):
            time.sleep(LOOK_S)

    def forget_dead(self) -> None:
        """Nobody has died."""
        self._cells[self._DEAD], self._cells[self._LEFT] = 0, FAR

    @property
    def dead(self) -> int:
        """The process that died of the last order, 0 when nobody has."""
        return self._cells[self._DEAD]

    def reach(self, point: int) -> None:
        """Called at every await."""
        cells = self._cells
        cells[self._HEAD + point] += 1
        if cells[self._ORDER] == point:
            cells[self._LEFT] -= 1
            if cells[self._LEFT] == 0:
                cells[self._DEAD] = os.getpid()
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()  # a thread of ours may still run until the signal is there

    def counts(self) -> list[int]:
        """How often each point was reached."""
        return list(self._cells[self._HEAD :])


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, waited for or not; no process is 0."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except FileNotFoundError:
        return pid != 0
    return state in b"ZX"


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the rewritten source; no byte code is read or written."""

    table: dict[Line, int]

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        code = compile(_rewritten(path, self.table), str(path), "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, table: dict[Line, int]) -> None:
        self._table = table

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module of one of the packages, to be compiled by us."""
        if name.partition(".")[0] not in PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin is not None:
            loader = _Loader(name, spec.origin)
            loader.table = self._table
            spec.loader = loader
        return spec


def install(shared: Shared, table: dict[Line, int]) -> None:
    """Count and obey in every module of the packages that is imported from now on."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    assert not loaded, f"too late for {loaded}"
    reach = shared.reach

    def before(number: int, value: Any) -> Any:
        reach(PHASES * number)
        return value

    def after(number: int, value: Any) -> Any:
        reach(PHASES * number + 1)
        return value

    setattr(builtins, BEFORE, before)
    setattr(builtins, AFTER, after)
    sys.meta_path.insert(0, _Finder(table))
