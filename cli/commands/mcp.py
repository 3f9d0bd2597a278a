"""``roost mcp``: an agent's memory as tools for whatever speaks MCP."""

from __future__ import annotations

import click

from cli import backend
from cli.context import Cli, RoostCommand, pass_cli


@click.command(cls=RoostCommand)
@click.option("--agent", required=True, metavar="AGENT", help="Whose memory.")
@click.option("--session", metavar="KIND", default="default", help="What the session may do.")
@click.option("--channel", metavar="C", help="The only channel it sees.")
@click.option(
    "--profile",
    type=click.Choice(["default", "full", "graph"]),
    default="default",
    help="Which tools it is offered.",
)
@click.option("--print-config", metavar="CLIENT", help="Print what to paste into a client instead.")
@pass_cli
def mcp(
    cli: Cli,
    agent: str,
    session: str,
    channel: str | None,
    profile: str,
    print_config: str | None,
) -> None:
    """Serve an agent's memory to a client, on standard input and output.

    A node is started in the background where none runs. A client over HTTP needs a token instead:
    roost up --api, and roost agent token.
    """
    options: dict[str, str | None] = {"session": session, "channel": channel, "profile": profile}
    if print_config is None:
        backend.serve_mcp(cli.home, agent, options)
        return
    usual = {"session": "default", "profile": "default", "channel": None}
    words = [w for k, v in options.items() if v and v != usual[k] for w in (f"--{k}", v)]
    cli.output.script(backend.mcp_config(cli.home, print_config, ["--agent", agent, *words]))
