"""Commands about memories as a whole: supersede, merge, pin, unpin."""

from __future__ import annotations

from typing import Any

import click

from cli.context import Cli, RoostCommand, agent_argument, pass_cli, reason_option, record_argument
from cli.output import bold, dim
from cli.text import count


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("old")
@click.option("--by", required=True, metavar="NEW", help="The live memory that replaces it.")
@reason_option
@pass_cli
def supersede(cli: Cli, /, agent: str, old: str, by: str, reason: str) -> None:
    """Say that one memory replaces another."""
    result = cli.call("supersede", agent=agent, record=old, by=by, reason=reason)
    shown = f"  replaces {result['supersedes']}"
    cli.output.result(result, lambda: cli.output.line(bold(str(result["record"])), dim(shown)))


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("records", nargs=-1, required=True)
@click.option("--text", required=True, metavar="T", help="What the new memory says.")
@reason_option
@pass_cli
def merge(cli: Cli, /, agent: str, records: tuple[str, ...], text: str, reason: str) -> None:
    """Make one memory of several."""
    result = cli.call("merge", agent=agent, records=list(records), text=text, reason=reason)

    def show() -> None:
        replaced = count(len(result["supersedes"]), "memory")
        cli.output.line(bold(str(result["record"])), dim(f"  {result['state']}"))
        if result["state"] == "proposed":
            cli.output.note(f"it waits for you; until then {replaced} stay as they are")
        else:
            cli.output.line(dim(f"{replaced} superseded"))

    cli.output.result(result, show)


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@pass_cli
def pin(cli: Cli, agent: str, record: str) -> None:
    """Keep a memory in every context block."""
    _shown(cli, cli.call("pin", agent=agent, record=record), "pinned")


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@pass_cli
def unpin(cli: Cli, agent: str, record: str) -> None:
    """Let a memory compete for its place again."""
    _shown(cli, cli.call("unpin", agent=agent, record=record), "no longer pinned")


def _shown(cli: Cli, result: dict[str, Any], words: str) -> None:
    record = bold(str(result["record"]))
    cli.output.result(result, lambda: cli.output.line(record, dim(f"  {words}")))
