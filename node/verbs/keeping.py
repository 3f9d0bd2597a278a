"""Verbs of the keeper: run a job now, list jobs, pause them, read what they did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import UsageError
from keys.ids import AgentId
from memory.jobs import JobName, Run
from memory.rows import LAYERS
from node.core import NodeCore
from node.keeper import plan
from node.keeping import KINDS, run_job
from node.params import Params
from node.times import iso

Result = dict[str, Any]
NOT_BY_RULES: Final = ("perspective", "report")
LOG_LIMIT: Final = 50


def _run_of(run: Run) -> Result:
    return {
        "run": run.run.hex(),
        "agent": str(run.job.agent),
        "kind": run.job.kind,
        "layer": run.job.layer or None,
        "started": iso(run.started_us),
        "ended": iso(run.ended_us),
        "outcome": run.outcome,
        "reason": run.reason or None,
        "wrote": [str(record) for record in run.wrote],
    }


async def consolidate(core: NodeCore, params: Params) -> Result:
    """Run intake, or the review of one layer or of all, now."""
    handle = await core.agents.resolve(params.text("agent"))
    kind, layer = params.optional_text("kind"), params.optional_text("layer")
    params.done()
    if kind in NOT_BY_RULES:
        raise UsageError(f"the built-in rules write no {kind}", hint="roost perspective set …")
    agent = AgentId(handle.agent)
    jobs: list[JobName] = []
    if kind in (None, "intake") and layer is None:
        jobs.append(JobName(agent, "intake"))
    if kind in (None, "review"):
        jobs += [JobName(agent, "review", name) for name in ([layer] if layer else LAYERS[:-1])]
    if kind == "expiry":
        jobs.append(JobName(agent, "expiry"))
    if not jobs:
        raise UsageError(f"no job {str(kind)[:32]!r}", hint="one of " + ", ".join(KINDS))
    now_us = core.clock.now_us()
    return {"runs": [_run_of(await run_job(core, j, asked=True, started_us=now_us)) for j in jobs]}


async def jobs_list(core: NodeCore, params: Params) -> Result:
    """Every job with its next and its last run."""
    params.done()
    rows = []
    for planned in await plan(core):
        last = await core.db.run(lambda db, job=planned.job: db.jobs.last(job))  # type: ignore[misc]
        rows.append(
            {
                "job": planned.job.text,
                "agent": str(planned.job.agent),
                "kind": planned.job.kind,
                "layer": planned.job.layer or None,
                "cron": planned.cron or None,
                "next_run": None if planned.paused else iso(planned.due_us),
                "paused": planned.paused,
                "last_run": iso(last.ended_us) if last else None,
                "last_outcome": last.outcome if last else None,
            }
        )
    return {"jobs": rows}


async def jobs_run(core: NodeCore, params: Params) -> Result:
    """Run one job now."""
    job = await _job(core, params)
    params.done()
    return _run_of(await run_job(core, job, asked=True, started_us=core.clock.now_us()))


async def jobs_pause(core: NodeCore, params: Params) -> Result:
    """Pause a job on this device, or let it go on."""
    job, resume = await _job(core, params), params.flag("resume")
    params.done()
    now_us = core.clock.now_us()
    await core.db.run(lambda db: db.jobs.pause(job, paused=not resume, now_us=now_us))
    return {"job": job.text, "agent": str(job.agent), "paused": not resume}


async def jobs_log(core: NodeCore, params: Params) -> Result:
    """What the jobs did, newest first."""
    wanted, limit = params.optional_text("agent"), params.number("limit", LOG_LIMIT)
    params.done()
    if not 1 <= limit <= 1_000:
        raise UsageError("a limit is from 1 to 1000")
    agent = None if wanted is None else AgentId((await core.agents.resolve(wanted)).agent)
    runs = await core.db.run(lambda db: db.jobs.runs(agent, limit))
    return {"runs": [_run_of(run) for run in runs]}


async def _job(core: NodeCore, params: Params) -> JobName:
    handle = await core.agents.resolve(params.text("agent"))
    kind, _, layer = params.text("job").partition(".")
    if kind not in KINDS:
        raise UsageError(f"no job {kind[:32]!r}", hint="intake, review.day, …, expiry")
    return JobName(AgentId(handle.agent), kind, layer)


KEEPING: Final[Mapping[str, Callable[[NodeCore, Params], Awaitable[Result]]]] = {
    "consolidate": consolidate,
    "jobs.list": jobs_list,
    "jobs.run": jobs_run,
    "jobs.pause": jobs_pause,
    "jobs.log": jobs_log,
}
