"""``roost agent``: whose memories are here."""

from __future__ import annotations

from typing import Any

import click

from cli.context import Cli, RoostGroup, agent_argument, pass_cli, passphrase_option
from cli.output import Row, bold, dim
from cli.text import flat, short_ids, word


@click.group(cls=RoostGroup)
def agent() -> None:
    """Create and list agents."""


@agent.command("create")
@click.argument("name")
@passphrase_option
@pass_cli
def agent_create(cli: Cli, /, name: str, **options: object) -> None:
    """Begin the memory of a new agent; you are its owner."""
    result = cli.call("agent.create", name=name, passphrase=cli.passphrase(options))

    def show() -> None:
        cli.output.line("agent ", bold(name), " created  ", dim(str(result["agent"])))
        cli.output.next_steps(
            (f"roost remember {word(name)} TEXT", "write its first memory"),
            (f"roost grant {word(name)} DEVICE read", "share it with somebody else's device"),
        )

    cli.output.result(result, show)


@agent.command("list")
@pass_cli
def agent_list(cli: Cli) -> None:
    """List the agents of this node."""
    result = cli.call("agent.list")
    agents = result.get("agents", [])

    def show() -> None:
        if not agents:
            cli.output.line(dim("no agents"))
            cli.output.next_steps(("roost agent create NAME", "begin an agent's memory"))
            return
        ids = short_ids(str(found["agent"]) for found in agents)
        rows: list[Row] = [
            [
                bold(str(found.get("name"))),
                ids[str(found["agent"])],
                str(found.get("records", "-")),
                _standing(found),
            ]
            for found in agents
        ]
        cli.output.table(["name", "id", "records", "standing"], rows)

    cli.output.result(result, show)


def _standing(found: dict[str, Any]) -> str:
    """What a person has to know about an agent of somebody else."""
    if found.get("accepted") is False:
        return f"offered: roost agent accept {found.get('agent')}"
    return flat(found.get("rights"))


@agent.command("show")
@agent_argument
@pass_cli
def agent_show(cli: Cli, agent: str) -> None:
    """Show one agent."""
    result = cli.call("agent.show", agent=agent)

    def show() -> None:
        cli.output.line(bold(str(result.get("name"))), dim(f"  {result.get('agent')}"))
        cli.output.fields(
            [  # the permissions have a command of their own
                (key, flat(value))
                for key, value in result.items()
                if key not in {"name", "agent", "permissions"} and value is not None
            ]
        )

    cli.output.result(result, show)


@agent.command("accept")
@agent_argument
@passphrase_option
@pass_cli
def agent_accept(cli: Cli, /, agent: str, **options: object) -> None:
    """Take in an agent that somebody else shares with you."""
    result = cli.call("agent.accept", agent=agent, passphrase=cli.passphrase(options))

    def show() -> None:
        name = str(result.get("name") or agent)
        cli.output.line("agent ", bold(name), " accepted")
        cli.output.next_steps((f"roost search {word(name)} QUERY", "find what it remembers"))

    cli.output.result(result, show)
