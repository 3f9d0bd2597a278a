"""``roost agent``: whose memories are here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import click

from cli.context import (
    FAILED,
    Cli,
    RoostGroup,
    agent_argument,
    given,
    pass_cli,
    passphrase_option,
)
from cli.output import Output, Row, bold, dim
from cli.text import count, flat, local_time, short_ids, word
from keys.errors import RoostError


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


@agent.command("forget")
@agent_argument
@click.option("--reason", required=True, metavar="R", help="Why.")
@passphrase_option
@pass_cli
def agent_forget(cli: Cli, /, agent: str, reason: str, **options: object) -> int:
    """Erase an agent and all it remembers, on every node, for good.

    Its name may be used again, for another agent. Ends with 1 when something is left.
    """
    passphrase = cli.passphrase(options)
    result = cli.call("agent.forget", agent=agent, reason=reason, passphrase=passphrase)

    def show() -> None:
        erased = count(len(result["erased"]), "record")
        cli.output.line("forgot ", bold(str(result["name"])), dim(f"  {erased} erased"))
        for row in result["receipts"]:
            state = "erased there too" if row["done"] else "not yet erased there"
            cli.output.line("  ", str(row["name"]), dim(f"  {state}"))
        if not all(row["done"] for row in result["receipts"]):
            again = f"roost agent forget {result['agent']} --reason …"
            cli.output.next_steps((again, "see later who has erased it"))

    cli.output.result(result, show)
    return FAILED if result["left"] else 0


@agent.command("policy")
@agent_argument
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Say otherwise.")
@passphrase_option
@pass_cli
def agent_policy(cli: Cli, /, agent: str, settings: tuple[str, ...], **options: object) -> None:
    """See or set what waits for you before the agent can read it.

    It holds for what is there already, too: before you are asked, you see how many memories that
    releases or withholds.
    """
    shown = cli.call("agent.policy", agent=agent, settings=list(settings))
    if not settings:
        cli.output.result(shown, lambda: _show_policy(cli.output, shown))
        return
    effect = f"{shown['released']} released, {shown['withheld']} withheld"
    if cli.output.can_ask and cli.output.on_terminal:
        cli.output.note(f"memories: {effect}")
        if not cli.output.confirm("set it?"):
            raise RoostError("nothing was changed")
    given_passphrase = cli.passphrase(options)
    result = cli.call(
        "agent.policy.set", agent=agent, settings=list(settings), passphrase=given_passphrase
    )
    cli.output.result(
        result,
        lambda: cli.output.line(
            bold(", ".join(settings)),
            f"  memories: {result['released']} released, {result['withheld']} withheld",
        ),
    )


def _show_policy(out: Output, shown: dict[str, Any]) -> None:
    usual, words = shown.get("defaults", {}), shown.get("words", {})
    rows: list[Row] = [
        [key, word if usual.get(key) == word else bold(word), " | ".join(words.get(key, ()))]
        for key, word in shown.get("policy", {}).items()
    ]
    out.table(["setting", "in force", "can be"], rows)


@agent.command("token")
@agent_argument
@click.option("--session", metavar="KIND", help="Which verbs: default, intake, review.")
@click.option("--channel", metavar="C", help="The only channel it sees.")
@click.option("--expires", metavar="TIME", help="When it ends; else when it is revoked.")
@click.option("--profile", metavar="P", help="Which tools it is offered: default, full, graph.")
@click.option("--calls-per-minute", type=int, metavar="N", help="Its quota of calls.")
@click.option("--bytes-per-minute", type=int, metavar="N", help="Its quota of bytes sent.")
@click.option("--records-per-hour", type=int, metavar="N", help="Its quota of new memories.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write it to a new file.")
@passphrase_option
@pass_cli
def agent_token(cli: Cli, /, agent: str, out: str | None, **options: object) -> None:
    """Make a bearer token for an agent's tools; it is shown once."""
    target = reserve_secret_file(Path(out)) if out is not None else None
    try:
        result = cli.call(
            "token.create", agent=agent, passphrase=cli.passphrase(options), **given(options)
        )
        if target is not None:
            target.write(str(result.pop("token")).encode() + b"\n")
    except BaseException:
        if target is not None:
            Path(str(out)).unlink(missing_ok=True)
        raise
    finally:
        if target is not None:
            target.close()

    def show() -> None:
        ends = local_time(result["expires"]) if result.get("expires") else "when it is revoked"
        cli.output.line("token ", bold(str(result["id"])), f" for {result.get('name')}")
        cli.output.fields([("session", str(result["session"])), ("ends", ends)])
        if target is None:
            cli.output.line()
            cli.output.line("    ", bold(str(result["token"])))
            cli.output.note("this is the only time it is shown")
        cli.output.next_steps((f"roost token revoke {result['id']}", "end it"))

    cli.output.result(result, show)


def reserve_secret_file(path: Path) -> BinaryIO:
    """A new file of mode 0600, which no link stands for (X-88); raises ``OSError``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb")


@click.group(cls=RoostGroup)
def token() -> None:
    """List and revoke the tokens of agents."""


@token.command("list")
@click.argument("agent", required=False)
@pass_cli
def token_list(cli: Cli, agent: str | None) -> None:
    """List the tokens of one agent, or of all."""
    result = cli.call("token.list", agent=agent)
    tokens = result.get("tokens", [])

    def show() -> None:
        if not tokens:
            cli.output.line(dim("no tokens"))
            cli.output.next_steps(("roost agent token AGENT", "make one"))
            return
        rows: list[Row] = [
            [
                str(found["id"]),
                bold(str(found.get("name"))),
                str(found["session"]),
                str(found.get("channel") or "every"),
                local_time(found["expires"]) if found.get("expires") else "-",
                "in force" if found.get("in_force") else "ended",
            ]
            for found in tokens
        ]
        cli.output.table(["id", "agent", "session", "channel", "ends", "standing"], rows)

    cli.output.result(result, show)


@token.command("revoke")
@click.argument("token_id", metavar="TOKEN")
@pass_cli
def token_revoke(cli: Cli, token_id: str) -> None:
    """Let a token open nothing any more."""
    result = cli.call("token.revoke", id=token_id)
    cli.output.result(result, lambda: cli.output.line(f"token {token_id} opens nothing now"))


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
