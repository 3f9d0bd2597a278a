"""Jobs of the keeper in ``node.db``: when each ran, whether it is paused, what its runs wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from keys.ids import AgentId, RecordId
from keys.limits import RECORD_BYTES
from memory.transaction import transaction

RUNS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class JobName:
    """A job: what it does to which agent; ``layer`` is empty where the kind has none."""

    agent: AgentId
    kind: str
    layer: str = ""

    @property
    def text(self) -> str:
        """As people name it: ``review.day``."""
        return f"{self.kind}.{self.layer}" if self.layer else self.kind


@dataclass(frozen=True, slots=True)
class JobState:
    """When a job was first seen or last ran (microseconds UTC), and whether it is paused."""

    since_us: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job. Times in microseconds UTC; ``reason`` is a code or a short sentence."""

    run: bytes
    job: JobName
    started_us: int
    ended_us: int
    outcome: str
    reason: str
    wrote: tuple[RecordId, ...]


class Jobs:
    """The jobs of this node."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def state(self, job: JobName, now_us: int) -> JobState:
        """The state of a job; a new one counts from now, and so does one of a clock set back."""
        self._db.execute(
            "INSERT OR IGNORE INTO job (agent, kind, layer, since_us) VALUES (?, ?, ?, ?)",
            (job.agent, job.kind, job.layer, now_us),
        )
        self._db.execute(
            "UPDATE job SET since_us = ? WHERE agent = ? AND kind = ? AND layer = ?"
            " AND since_us > ?",
            (now_us, job.agent, job.kind, job.layer, now_us),
        )
        found = self._db.execute(
            "SELECT since_us, paused FROM job WHERE agent = ? AND kind = ? AND layer = ?",
            (job.agent, job.kind, job.layer),
        ).fetchone()
        return JobState(found[0], bool(found[1]))

    def pause(self, job: JobName, *, paused: bool, now_us: int) -> None:
        """Pause a job of this node, or let it go on."""
        with transaction(self._db):
            self.state(job, now_us)
            self._db.execute(
                "UPDATE job SET paused = ? WHERE agent = ? AND kind = ? AND layer = ?",
                (int(paused), job.agent, job.kind, job.layer),
            )

    def ended(self, run: Run, *, counts: bool) -> None:
        """Note a run; one that ``counts`` is what the next due time counts from."""
        with transaction(self._db):
            self._db.execute(
                "INSERT INTO job_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.run,
                    run.job.agent,
                    run.job.kind,
                    run.job.layer,
                    run.started_us,
                    run.ended_us,
                    run.outcome,
                    run.reason,
                    b"".join(run.wrote),
                ),
            )
            self._db.execute(
                "DELETE FROM job_run WHERE run IN (SELECT run FROM job_run"
                " ORDER BY started_us DESC LIMIT -1 OFFSET ?)",
                (RUNS_MAX,),
            )
            if counts:
                self.state(run.job, run.started_us)
                self._db.execute(
                    "UPDATE job SET since_us = ? WHERE agent = ? AND kind = ? AND layer = ?",
                    (run.started_us, run.job.agent, run.job.kind, run.job.layer),
                )

    def runs(self, agent: AgentId | None, limit: int) -> list[Run]:
        """The newest runs first, of one agent or of all."""
        rows = self._db.execute(
            "SELECT run, agent, kind, layer, started_us, ended_us, outcome, reason, wrote"
            " FROM job_run WHERE ? IS NULL OR agent = ? ORDER BY started_us DESC, run LIMIT ?",
            (agent, agent, limit),
        )
        return [
            Run(r[0], JobName(AgentId(r[1]), r[2], r[3]), r[4], r[5], r[6], r[7], _ids(r[8]))
            for r in rows
        ]

    def last(self, job: JobName) -> Run | None:
        """The last run of a job."""
        return next((r for r in self.runs(job.agent, RUNS_MAX) if r.job == job), None)

    def drop(self, agent: AgentId) -> None:
        """Forget all jobs and runs of an agent."""
        with transaction(self._db):
            for table in ("job", "job_run"):
                self._db.execute(f"DELETE FROM {table} WHERE agent = ?", (agent,))  # noqa: S608 - constants


def _ids(packed: bytes) -> tuple[RecordId, ...]:
    places: Sequence[int] = range(0, len(packed), RECORD_BYTES)
    return tuple(RecordId(packed[i : i + RECORD_BYTES]) for i in places)
