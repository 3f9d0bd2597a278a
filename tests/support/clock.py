"""A clock that moves when the test says so."""

import asyncio
import heapq
import itertools

START_US = 1_700_000_000_000_000
SETTLE_TURNS = 20


class VirtualClock:
    """``advance`` moves both clocks and wakes the sleepers in the order of their times."""

    def __init__(self, now_us: int = START_US) -> None:
        self._wall_us = now_us
        self._monotonic_s = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_us(self) -> int:
        return self._wall_us

    def monotonic_s(self) -> float:
        return self._monotonic_s

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic_s + seconds, next(self._order), woken))
        await woken

    def jump(self, us: int) -> None:
        """Move the wall clock alone, as a person or a time server does."""
        self._wall_us += us

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass; whoever wakes runs before time goes on."""
        end = self._monotonic_s + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._move_to(at)
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._move_to(end)

    async def settle(self) -> None:
        """Let everything that can run without time passing run."""
        for _ in range(SETTLE_TURNS):
            await asyncio.sleep(0)

    def _move_to(self, monotonic_s: float) -> None:
        self._wall_us += round((monotonic_s - self._monotonic_s) * 1_000_000)
        self._monotonic_s = monotonic_s
