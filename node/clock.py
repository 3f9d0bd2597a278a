"""Time, handed in. ``SystemClock`` is the only code that asks the system for it or sleeps."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the node knows of time."""

    def now_us(self) -> int:
        """The wall clock of the device, microseconds since 1970 UTC; may jump either way."""

    def monotonic_s(self) -> float:
        """Seconds that never go back, from an arbitrary start."""

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less lets others run once."""


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""
        return time.time_ns() // 1_000  # noqa: TID251 - the one place

    def monotonic_s(self) -> float:
        """Seconds since some moment before this process."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for ``seconds``."""
        await asyncio.sleep(max(seconds, 0))  # noqa: TID251 - the one place
