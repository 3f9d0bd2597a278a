"""A scheduler of coroutines in virtual time. Who runs next is drawn from the seed alone."""

from __future__ import annotations

import heapq
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

MILLISECOND_US = 1_000
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Pause(Awaitable[None]):
    """``await Pause(us)``: go on when that much virtual time has passed."""

    us: int

    def __await__(self) -> Generator[Any, None, None]:
        yield self


class Signal(Awaitable[None]):
    """``await signal``: go on after somebody has set it."""

    def __init__(self) -> None:
        self.waiting: list[Task] = []

    def __await__(self) -> Generator[Any, None, None]:
        yield self


@dataclass(eq=False, slots=True)
class Task:
    """A coroutine, and the device in whose process it runs (None: nobody's)."""

    coro: Coroutine[Any, None, None]
    owner: object
    name: str
    over: bool = False


class Schedule:
    """Runs tasks one step at a time. ``ended`` hears of every task that ends, and how."""

    def __init__(self, source: random.Random) -> None:
        self.now_us = 0
        self.steps = 0
        self._random = source
        self._due: list[tuple[int, float, int, Task]] = []
        self._count = 0
        self.tasks: list[Task] = []
        self.ended: Callable[[Task, BaseException | None], None] = lambda _task, _exc: None

    def spawn(self, owner: object, name: str, coro: Coroutine[Any, None, None]) -> Task:
        """Start a task; its first step comes later."""
        task = Task(coro, owner, name)
        self.tasks.append(task)
        self._at(task, self._random.randrange(MILLISECOND_US))
        return task

    def kill(self, owner: object) -> int:
        """Drop every task of a device at the await where it is; how many."""
        killed = [t for t in self.tasks if t.owner is owner]
        for task in killed:
            task.over = True
            task.coro.close()
        self.tasks = [t for t in self.tasks if t.owner is not owner]
        return len(killed)

    def set(self, signal: Signal) -> None:
        """Wake whoever waits for a signal."""
        woken, signal.waiting = signal.waiting, []
        for task in woken:
            self._at(task, self._random.randrange(MILLISECOND_US))

    def run(self, until_us: int | None = None) -> None:
        """Run until ``until_us``, or until nothing is left to run."""
        while self._due and (until_us is None or self._due[0][0] <= until_us):
            at, _, _, task = heapq.heappop(self._due)
            self.now_us = max(self.now_us, at)
            if not task.over:
                self._step(task)
        if until_us is not None:
            self.now_us = max(self.now_us, until_us)

    def _at(self, task: Task, after_us: int) -> None:
        self._count += 1
        due = (self.now_us + after_us, self._random.random(), self._count, task)
        heapq.heappush(self._due, due)

    def _step(self, task: Task) -> None:
        self.steps += 1
        error: BaseException | None = None
        try:
            wish = task.coro.send(None)
        except StopIteration:
            pass
        except BaseException as exc:  # noqa: BLE001 - whoever listens decides
            error = exc
        else:
            if isinstance(wish, Pause):
                self._at(task, wish.us)
            else:
                wish.waiting.append(task)
            return
        task.over = True
        self.tasks.remove(task)
        self.ended(task, error)
