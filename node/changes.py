"""Waiting for an agent's memory to change: what subscriptions of agents rest on."""

from __future__ import annotations

import asyncio
import contextlib

from keys.ids import AgentId


class Changes:
    """Counts the commits of each agent since the node started, and wakes who waits for one."""

    def __init__(self) -> None:
        self._counts: dict[AgentId, int] = {}
        self._wakes: dict[AgentId, asyncio.Event] = {}

    def note(self, agent: AgentId) -> None:
        """An agent may have changed; cheap."""
        self._counts[agent] = self._counts.get(agent, 0) + 1
        wake = self._wakes.pop(agent, None)
        if wake is not None:
            wake.set()

    def count(self, agent: AgentId) -> int:
        """How often it changed."""
        return self._counts.get(agent, 0)

    async def wait(self, agent: AgentId, since: int, wait_s: float) -> int:
        """The count once it is another than ``since``, or after ``wait_s`` seconds."""
        if self.count(agent) == since:
            wake = self._wakes.setdefault(agent, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await wake.wait()
        return self.count(agent)
