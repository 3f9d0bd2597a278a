"""One run of a job: intake, review or expiry of one agent, by this device or not.

1. Intake is of what this device wrote. Review and expiry are one device's: the one that rendezvous
   hashing picks among the writers heard of lately; when it is gone, another is picked.
2. Expiry does not run while this node's clock differs by more than an hour from the median of the
   peers that were met since it started (R36).
3. A run is noted after its results are durable. What could not run is not noted as done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from keys.errors import RoostError, UsageError
from keys.ids import RecordId, hash256
from keys.signing import random_bytes
from memory import expiring, intake, reviewing
from memory.authoring import Author
from memory.jobs import JobName, Run
from memory.rows import LAYERS
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle

KINDS: Final = ("intake", "review", "expiry")
RUN_ID_BYTES: Final = 16
LATELY_US: Final = 2 * 86_400 * 1_000_000
CLOCK_TOLERANCE_MS: Final = 3_600_000
BATCHES_MAX: Final = 500  # of one run


@dataclass(frozen=True, slots=True)
class _Done:
    """What one batch did."""

    wrote: Sequence[RecordId]
    more: bool
    said: str = ""


async def run_job(core: NodeCore, job: JobName, *, asked: bool, started_us: int) -> Run:
    """Run a job and note it. ``asked``: a person asks for it, so this device does it.

    ``started_us`` is when the keeper began to count. Raises ``UsageError`` for no such job.
    """
    _check(job)
    run = random_bytes(RUN_ID_BYTES)
    begun_us = core.clock.now_us()
    outcome, reason, wrote, counts = "done", "", list[RecordId](), True
    try:
        handle = await core.agents.resolve(str(job.agent))
        why = await _hindered(core, handle, job, asked=asked, started_us=started_us)
        if why is not None:
            outcome, reason = why
            counts = outcome == "elsewhere"
        else:
            wrote, reason = await _work(handle, job, run)
            outcome = "done" if wrote else "nothing"
    except RoostError as exc:
        outcome, reason, counts = "failed", exc.code, False
    except Exception as exc:  # noqa: BLE001 - one job is not the node's end
        core.journal.error("job.failed", exc, agent=job.agent, job=job.text)
        outcome, reason, counts = "failed", type(exc).__name__, False
    ended_us = core.clock.now_us()
    made = Run(run, job, begun_us, ended_us, outcome, reason, tuple(wrote))
    await core.db.run(lambda db: db.jobs.ended(made, counts=counts))
    return made


def _check(job: JobName) -> None:
    if job.kind not in KINDS:
        raise UsageError(f"no job {job.kind[:32]!r}", hint="one of " + ", ".join(KINDS))
    if (job.kind == "review") != bool(job.layer):
        raise UsageError("a review is of a layer, and nothing else is", hint="--layer day")
    if job.layer and job.layer not in LAYERS:
        raise UsageError(f"no layer {job.layer[:32]!r}", hint="one of " + ", ".join(LAYERS))


async def _hindered(
    core: NodeCore, handle: AgentHandle, job: JobName, *, asked: bool, started_us: int
) -> tuple[str, str] | None:
    """Why this device does not do it now: an outcome and its reason."""
    if not handle.author.may_write:
        return "skipped", "this device may not write"
    if job.kind == "expiry":
        off_ms = await _clock_off(core, started_us)
        if abs(off_ms) > CLOCK_TOLERANCE_MS:
            return "skipped", "this node's clock differs from its peers'"
    if asked or job.kind == "intake":
        return None
    since_us = core.clock.now_us() - LATELY_US
    chosen = await handle.read(lambda store: _chosen(store, handle.author, job, since_us))
    return None if chosen == handle.author.device else ("elsewhere", "another device does it")


def _chosen(store: AgentStore, author: Author, job: JobName, since_us: int) -> bytes:
    heard = reviewing.heard_since(store, since_us)  # this device too, where it wrote lately
    authority = store.authority
    writers = [d for d in authority.devices() if authority.holds_device(d, "write").held]
    at_hand = [bytes(d) for d in writers if bytes(d) in heard]
    key = job.text.encode()
    return max(at_hand, key=lambda d: hash256(key, d), default=bytes(author.device))


async def _clock_off(core: NodeCore, started_us: int) -> float:
    """By how many milliseconds the median peer's clock is ahead of ours; 0 where none was met."""
    peers = await core.db.run(lambda db: db.peers.all())
    met = [
        p.clock_offset_ms
        for p in peers
        if p.clock_offset_ms is not None and (p.last_seen_us or 0) >= started_us
    ]
    return median(met) if met else 0.0


async def _work(handle: AgentHandle, job: JobName, run: bytes) -> tuple[list[RecordId], str]:
    """Batch after batch, each in a hop of its own, so that others write in between."""
    wrote: list[RecordId] = []
    said = ""
    for _ in range(BATCHES_MAX):
        done = await handle.write(_batch(job, run), erases=job.kind == "expiry")
        wrote += done.wrote
        said = done.said or said
        if not done.more:
            break
    return wrote, said


def _batch(job: JobName, run: bytes) -> Callable[[AgentStore, Author, int], _Done]:
    def act(_store: AgentStore, author: Author, now_us: int) -> _Done:
        if job.kind == "intake":
            taken = intake.take_in(author, run, now_us)
            refused = f"{len(taken.refused)} may not return" if taken.refused else ""
            return _Done(taken.wrote, taken.more, refused)
        if job.kind == "expiry":
            gone = expiring.expire(author, now_us)
            return _Done(gone, more=len(gone) >= expiring.BATCH)
        found = reviewing.review(author, job.layer, run, now_us)
        waits = f"{len(found.proposed)} verdicts wait for a person" if found.proposed else ""
        changed = [*found.promoted, *found.demoted, *found.proposed]
        return _Done(changed, bool(changed) and found.looked_at >= reviewing.BATCH, waits)

    return act
