"""The keeper: runs the jobs of every agent when they are due, one at a time.

1. Jobs follow the records: a change of an agent's layers, here or by sync, is seen at once.
2. What was missed while the node or the machine slept is one run, not many. Due counts from the
   last run that was done; one that failed is tried again at the next pass.
3. It sleeps until something is due, and never for longer than ``LOOK_S``.
APScheduler's triggers say when; its loop is not used, since it asks the system for the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from keys.errors import RoostError
from keys.ids import AgentId
from memory.jobs import JobName
from memory.layers import layers
from memory.nodedb import NodeDb
from memory.scope import Scope
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from node.keeping import run_job

EXPIRY_CRON: Final = "17 * * * *"
LOOK_S: Final = 300.0
SETTLE_S: Final = 1.0  # many changes are one pass
SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A job with its cron, and when it is due next (microseconds UTC; None: never by itself)."""

    job: JobName
    cron: str
    due_us: int | None
    paused: bool


def next_after(cron: str, since_us: int) -> int | None:
    """The first time after ``since_us`` that a cron line names, in this device's zone."""
    if not cron:
        return None
    from apscheduler.triggers.cron import CronTrigger  # costs more to load than a command takes

    try:
        trigger = CronTrigger.from_crontab(cron)
    except ValueError:
        return None  # a line of a newer version, or nonsense: it never runs by itself
    start = datetime.fromtimestamp(since_us / SECOND_US, UTC)
    found = trigger.get_next_fire_time(start, start)
    if found is not None and int(found.timestamp() * SECOND_US) <= since_us:
        later = datetime.fromtimestamp(since_us / SECOND_US + 1, UTC)
        found = trigger.get_next_fire_time(later, later)
    return None if found is None else int(found.timestamp() * SECOND_US)


async def plan(core: NodeCore) -> list[Planned]:
    """Every job of every agent that this device may write."""
    now_us = core.clock.now_us()
    out: list[Planned] = []
    for handle in await core.agents.living():
        if handle.author.may_write and not handle.store.waiting_for_key:
            crons = await jobs_of(handle, now_us)
            out += await core.db.run(lambda db, crons=crons: _planned(db, crons, now_us))  # type: ignore[misc]
    return out


async def jobs_of(handle: AgentHandle, now_us: int) -> list[tuple[JobName, str]]:
    """The jobs of an agent with their crons."""
    return await handle.read(lambda store: _jobs(store, now_us))


def _planned(db: NodeDb, crons: Sequence[tuple[JobName, str]], now_us: int) -> list[Planned]:
    out = []
    for job, cron in crons:
        held = db.jobs.state(job, now_us)
        out.append(Planned(job, cron, next_after(cron, held.since_us), held.paused))
    return out


def _jobs(store: AgentStore, now_us: int) -> list[tuple[JobName, str]]:
    held = layers(store, Scope(store.agent, every_state=False), now_us)
    agent = AgentId(store.agent)
    found = [(JobName(agent, "intake"), held[0].intake_cron)]
    found += [(JobName(agent, "review", x.name), x.review_cron) for x in held]
    return [*found, (JobName(agent, "expiry"), EXPIRY_CRON)]


class Keeper:
    """The service that runs jobs."""

    name = "keeper"

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        self._wake = asyncio.Event()
        self._changed: dict[AgentId, AgentHandle] = {}
        self._known: dict[AgentId, list[tuple[JobName, str]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._started_us = core.clock.now_us()

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to look for what is due."""
        self._started_us = self._core.clock.now_us()
        self._core.agents.kept = self._note
        self._task = tasks.create_task(self._run(), name="keeper")

    async def stop(self) -> None:
        """A job that runs is cut off between two batches; its results so far are durable."""
        self._core.agents.kept = None
        if self._task is not None:
            self._task.cancel()

    def _note(self, handle: AgentHandle) -> None:
        self._changed[handle.agent] = handle
        self._wake.set()

    async def _run(self) -> None:
        clock = self._core.clock
        while True:
            try:
                wait_s = await self.run_due()
            except Exception as exc:  # noqa: BLE001 - a fault of the keeper is not the node's end
                self._core.journal.error("keeper.failed", exc)
                wait_s = LOOK_S
            until_s = clock.monotonic_s() + wait_s
            while (left_s := until_s - clock.monotonic_s()) > 0 and not await self._moved(left_s):
                pass

    async def _moved(self, seconds: float) -> bool:
        """Wait so long at most; whether jobs changed meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return True
        await self._core.clock.sleep(SETTLE_S)
        self._wake.clear()
        changed, self._changed = self._changed, {}
        now_us = self._core.clock.now_us()
        try:
            found = {agent: await jobs_of(handle, now_us) for agent, handle in changed.items()}
        except RoostError:
            return True
        moved = any(self._known.get(agent) != jobs for agent, jobs in found.items())
        self._known.update(found)
        return moved

    async def run_due(self) -> float:
        """Run what is due now; the seconds until something may be due again."""
        for planned in await plan(self._core):
            now_us = self._core.clock.now_us()
            if planned.due_us is not None and planned.due_us <= now_us and not planned.paused:
                await run_job(self._core, planned.job, asked=False, started_us=self._started_us)
        now_us = self._core.clock.now_us()
        waits = [p.due_us for p in await plan(self._core) if p.due_us is not None and not p.paused]
        return min([LOOK_S, *(max(SETTLE_S, (at - now_us) / SECOND_US) for at in waits)])
