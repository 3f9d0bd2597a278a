"""What a decoder may do with an input: take it or refuse it, within its bounds, and nothing else.

1. It raises only the errors that it documents.
2. Its work is bounded: calls of functions, Python's and C's, counted by the interpreter, so that
   the same input costs the same on a slow or busy machine. A call into C that does not come back is
   ended by an alarm on processor time.
3. What it allocates at once is at most four times the input and a constant that the decoder states.
Counting is dear, and a trace of all allocations dearer: they are done for every ``COUNTED``-th and
every ``TRACED``-th input, and for large ones.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from tests.fuzz.mutate import Maker

COUNTED: Final = 4
TRACED: Final = 16
LARGE_BYTES: Final = 4 * 1024
GROWTH: Final = 4
CALLS_PER_BYTE: Final = 12
CALLS_FREE: Final = 4_000
HANG_S: Final = 30  # of processor time, for one input: the slowest takes a thousandth
SHOWN_BYTES: Final = 300


@dataclass(frozen=True)
class Decoder:
    """One reader of bytes from outside.

    ``free_bytes`` is what it may allocate whatever the input; ``errors`` are all it may raise.
    """

    name: str
    make: Maker
    read: Callable[[bytes], object]
    errors: tuple[type[BaseException], ...]
    free_bytes: int = 256 * 1024


class FaultyError(AssertionError):
    """A decoder that did what it may not do; says with which input."""


@dataclass
class Result:
    """How many inputs a decoder was given, and what the dearest of them cost."""

    inputs: int = 0
    taken: int = 0
    traced: int = 0
    calls_max: int = 0
    bytes_max: int = 0

    def __str__(self) -> str:
        return (
            f"{self.inputs:8} inputs, {self.taken:7} taken, at most {self.calls_max:6} calls,"
            f" {self.bytes_max // 1024:6} KiB in {self.traced} traced"
        )


def judge(
    decoder: Decoder, seed: int, inputs: int, again: Callable[[], None] = lambda: None
) -> Result:
    """Give a decoder so many inputs; raises ``FaultyError`` at the first that it does not bear.

    ``again`` is called before each, to set an alarm anew.
    """
    rng, result = random.Random(f"{decoder.name} {seed}"), Result()
    with contextlib.suppress(Exception):  # what is loaded or cached at first use
        taken(decoder, decoder.make(random.Random(0)))
    for number in range(inputs):
        again()
        data = decoder.make(rng)
        try:
            _judge_one(decoder, data, number, result)
        except Exception as exc:
            shown = data[:SHOWN_BYTES].hex() + ("…" if len(data) > SHOWN_BYTES else "")
            place = f"{decoder.name}, seed {seed}, input {number} of {len(data)} bytes"
            raise FaultyError(f"{place}: {type(exc).__name__}: {exc}\n{shown}") from exc
    return result


def _judge_one(decoder: Decoder, data: bytes, number: int, result: Result) -> None:
    large = len(data) > LARGE_BYTES
    if number % COUNTED and not large:
        result.taken += taken(decoder, data)
    else:
        calls, took = counted(decoder, data)
        check(calls <= CALLS_FREE + CALLS_PER_BYTE * len(data), f"{calls} calls")
        result.taken += took
        result.calls_max = max(result.calls_max, calls)
    if number % TRACED == 0 or large:
        grown, allowed = allocated(decoder, data), GROWTH * len(data) + decoder.free_bytes
        check(grown <= allowed, f"{grown} bytes, {allowed} allowed")
        result.traced += 1
        result.bytes_max = max(result.bytes_max, grown)
    result.inputs += 1


def taken(decoder: Decoder, data: bytes) -> bool:
    """Whether a decoder took an input; unforeseen errors go through."""
    try:
        decoder.read(data)
    except decoder.errors:
        return False
    return True


def check(holds: bool, what: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise FaultyError(what)


def counted(decoder: Decoder, data: bytes) -> tuple[int, bool]:
    """How many calls an input took, and whether it was taken."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = taken(decoder, data)
    finally:
        sys.setprofile(before)
    return calls, found


def allocated(decoder: Decoder, data: bytes) -> int:
    """The most bytes that a decoder holds at once while it reads an input."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        taken(decoder, data)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@contextmanager
def alarm() -> Iterator[Callable[[], None]]:
    """Raises in this process when ``HANG_S`` of its processor time pass between two calls."""

    def ring(_number: int, _frame: object) -> None:
        raise FaultyError(f"no answer after {HANG_S} s of processor time")

    def again() -> None:
        signal.setitimer(signal.ITIMER_PROF, HANG_S)

    before = signal.signal(signal.SIGPROF, ring)
    again()
    try:
        yield again
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
