"""The clocks: the system's, and the one tests turn."""

import asyncio
import time

from node.clock import SystemClock
from tests.support.clock import START_US, VirtualClock


async def test_the_system_clock_tells_the_time_and_sleeps() -> None:
    """Microseconds of the wall clock, seconds of the monotonic one."""
    clock = SystemClock()
    before = clock.monotonic_s()
    assert abs(clock.now_us() / 1e6 - time.time()) < 60
    await clock.sleep(0.02)
    await clock.sleep(-1)
    assert clock.monotonic_s() - before >= 0.02


async def test_the_virtual_clock_wakes_sleepers_in_their_order() -> None:
    """Time passes only when the test says so, and stands still while somebody runs."""
    clock, seen = VirtualClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append((seconds, clock.monotonic_s()))
        await clock.sleep(1)
        seen.append((seconds + 1, clock.monotonic_s()))

    async with asyncio.TaskGroup() as tasks:
        for seconds in (3, 1, 2):
            tasks.create_task(sleeper(seconds))
        await clock.advance(2.5)
        assert seen == [(1, 1), (2, 2), (2, 2)]
        clock.jump(-5_000_000)
        await clock.advance(10)
    assert seen[3:] == [(3, 3), (3, 3), (4, 4)]
    assert clock.now_us() == START_US + 7_500_000
