"""Local acts that share a transaction, and so the one wait for the disk that it costs.

1. While one transaction waits for the disk, others come in. The next hop to the store's thread
   takes all of them into one transaction; each stays a commit of its own, signed, with its own
   result or its own error.
2. None is told that it was written before the transaction is durable and the marker knows (R38).
3. A transaction that cannot be committed is undone whole, and its acts run again one at a time, so
   that each fails, or not, by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from keys.errors import StoreError
from memory.authoring import Author

T = TypeVar("T")
ACTS_MAX: Final = 32  # in one transaction: bounds how long the first of them waits


class Act(Generic[T]):
    """One local act, and how it went."""

    __slots__ = ("_error", "_result", "_work", "finished", "now_us")

    def __init__(self, work: Callable[[], T], now_us: int) -> None:
        self._work, self.now_us = work, now_us
        self._result: T | None = None
        self._error: Exception | None = None
        self.finished = False

    def attempt(self) -> None:
        """Do it, again if it was done in a transaction that was undone."""
        self._result, self._error = None, None
        try:
            self._result = self._work()
        except Exception as exc:  # noqa: BLE001 - each caller gets its own, in ``outcome``
            self._error = exc

    def fail(self, exc: Exception) -> None:
        """It was done, but what had to follow was not."""
        self._error = self._error or exc

    def outcome(self) -> T:
        """What it gave; raises what it raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._result)  # what ``work`` returned


class Together:
    """The acts that wait for one agent's store. ``add`` may be called from any thread."""

    def __init__(self, author: Author, committed: Callable[[], None]) -> None:
        self._author, self._committed = author, committed
        self._waiting: deque[Act[Any]] = deque()

    def add(self, act: Act[T]) -> None:
        """Let an act wait; ``run`` must follow, in the store's thread."""
        self._waiting.append(act)

    def run(self, act: Act[T]) -> T:
        """The outcome of an act that was added, which others may have run meanwhile."""
        while not act.finished:
            count = min(len(self._waiting), ACTS_MAX)
            self._run([self._waiting.popleft() for _ in range(count)])
        return act.outcome()

    def _run(self, acts: Sequence[Act[Any]]) -> None:
        try:
            if len(acts) == 1 or not self._in_one(acts):
                for act in acts:
                    self._attempt(act)
            self._committed()
        except StoreError as exc:  # of the marker
            for act in acts:
                act.fail(exc)
        finally:
            for act in acts:
                act.finished = True

    def _in_one(self, acts: Sequence[Act[Any]]) -> bool:
        """Run acts in one transaction; False when it was undone."""
        try:
            with self._author.together():
                for act in acts:
                    self._attempt(act)
                    if not self._author.store.connection.in_transaction:
                        raise StoreError("the transaction was undone")
        except StoreError:
            return False
        return True

    def _attempt(self, act: Act[Any]) -> None:
        self._author.stamp(act.now_us)
        act.attempt()
