"""Commands of the keeper: consolidate, jobs."""

from __future__ import annotations

from typing import Any

import click

from cli.context import Cli, RoostCommand, RoostGroup, agent_argument, given, pass_cli
from cli.output import Row, Span, bold, dim
from cli.text import count, flat, local_time

_KINDS = ("intake", "review", "perspective", "report", "expiry")
_STYLES = {"done": "green", "failed": "red", "skipped": "yellow"}


@click.command(cls=RoostCommand)
@agent_argument
@click.option("--kind", type=click.Choice(_KINDS), help="Only this kind of job.")
@click.option("--layer", metavar="L", help="Review only this layer.")
@pass_cli
def consolidate(cli: Cli, /, agent: str, **options: object) -> int:
    """Take in what was written and review the layers, now."""
    result = cli.call("consolidate", agent=agent, **given(options))
    cli.output.result(result, lambda: _show_runs(cli, result["runs"]))
    return _code(result["runs"])


def _code(runs: list[dict[str, Any]]) -> int:
    return 1 if any(run["outcome"] == "failed" for run in runs) else 0


def _show_runs(cli: Cli, runs: list[dict[str, Any]]) -> None:
    if not runs:
        cli.output.line(dim("nothing ran yet"))
    for run in runs:
        outcome = str(run["outcome"])
        name = ".".join(filter(None, [run["kind"], run["layer"]]))
        cli.output.line(
            bold(name),
            "  ",
            Span(outcome, _STYLES.get(outcome, "dim")),
            f"  {count(len(run['wrote']), 'record')}",
            dim(f"  {local_time(run['ended'])}  {flat(run.get('reason') or '')}"),
        )


@click.group(cls=RoostGroup)
def jobs() -> None:
    """See and steer what the node does by itself."""


@jobs.command("list")
@pass_cli
def jobs_list(cli: Cli) -> None:
    """List the jobs with their next and last runs."""
    result = cli.call("jobs.list")

    def show() -> None:
        rows: list[Row] = [
            [
                bold(str(job["job"])),
                str(job["agent"])[:8],
                "paused" if job["paused"] else local_time(job["next_run"]) or "never by itself",
                local_time(job["last_run"]) or "-",
                flat(job["last_outcome"] or "-"),
            ]
            for job in result["jobs"]
        ]
        cli.output.table(["job", "agent", "next", "last", "outcome"], rows)

    cli.output.result(result, show)


@jobs.command("run")
@agent_argument
@click.argument("job")
@pass_cli
def jobs_run(cli: Cli, agent: str, job: str) -> int:
    """Run a job now: intake, review.day, …, expiry."""
    result = cli.call("jobs.run", agent=agent, job=job)
    cli.output.result(result, lambda: _show_runs(cli, [result]))
    return _code([result])


@jobs.command("pause")
@agent_argument
@click.argument("job")
@click.option("--resume", is_flag=True, help="Let it go on.")
@pass_cli
def jobs_pause(cli: Cli, /, **options: object) -> None:
    """Pause a job on this device."""
    result = cli.call("jobs.pause", **given(options))
    said = "paused" if result["paused"] else "goes on"
    cli.output.result(result, lambda: cli.output.line(f"{result['job']} {said}"))


@jobs.command("log")
@click.argument("agent", required=False)
@click.option("--limit", type=click.IntRange(1, 1_000), metavar="N", help="At most so many.")
@pass_cli
def jobs_log(cli: Cli, /, **options: object) -> None:
    """Show what the jobs did, newest first."""
    result = cli.call("jobs.log", **given(options))
    cli.output.result(result, lambda: _show_runs(cli, result["runs"]))
