"""Commands about who may do what: grant, revoke, devices, permissions."""

from __future__ import annotations

from typing import Any, Final

import click

from cli.context import Cli, RoostCommand, RoostGroup, agent_argument, pass_cli, passphrase_option
from cli.output import Row, Span, bold, dim
from cli.text import local_time, short_ids, word
from keys.errors import UsageError

RIGHTS: Final = ("read", "write", "review", "admin")

since_option: Final = click.option(
    "--since",
    metavar="TIME",
    help="Void what came after then (a date, or ISO 8601 with an offset).",
)


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("subject")
@click.argument("rights")
@passphrase_option
@pass_cli
def grant(cli: Cli, /, agent: str, subject: str, rights: str, **options: object) -> None:
    """Let a device or a person use an agent's memory.

    SUBJECT is a device or an owner; RIGHTS are read, write, review and admin, with commas between.
    Write and review include read.
    """
    wanted = _rights(rights)
    passphrase = cli.passphrase(options)
    result = cli.call("grant", agent=agent, subject=subject, rights=wanted, passphrase=passphrase)

    def show() -> None:
        cli.output.line(bold(subject), f" may {', '.join(wanted)} ", bold(agent))
        cli.output.next_steps(
            (f"roost agent accept {word(agent)}", "on the other side, once it is seen")
        )

    cli.output.result(result, show)


def _rights(text: str) -> list[str]:
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [right for right in wanted if right not in RIGHTS]
    if unknown or not wanted:
        what = f"there is no right {unknown[0]!r}" if unknown else "no right is named"
        raise UsageError(what, hint=f"the rights are {', '.join(RIGHTS)}")
    return list(dict.fromkeys(wanted))


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("subject")
@since_option
@passphrase_option
@pass_cli
def revoke(cli: Cli, /, agent: str, subject: str, since: str | None, **options: object) -> None:
    """Take a right back.

    With --since also what was written after that time no longer counts; what it is about is kept
    and listed.
    """
    passphrase = cli.passphrase(options)
    result = cli.call("revoke", agent=agent, subject=subject, since=since, passphrase=passphrase)

    def show() -> None:
        cli.output.line(bold(subject), " no longer has a right to ", bold(agent))
        cli.output.next_steps(
            (f"roost permissions {word(agent)}", "see who has, and whose node does not know yet"),
            (f"roost quarantine list {word(agent)}", "see what no longer counts"),
        )

    cli.output.result(result, show)


@click.group(cls=RoostGroup)
def devices() -> None:
    """Revoke a device that was lost, or part two copies of one."""


@devices.command("revoke")
@click.argument("device")
@since_option
@passphrase_option
@pass_cli
def devices_revoke(cli: Cli, /, device: str, since: str | None, **options: object) -> None:
    """Take every right from a device of yours, for every agent."""
    passphrase = cli.passphrase(options)
    result = cli.call("devices.revoke", device=device, since=since, passphrase=passphrase)

    def show() -> None:
        cli.output.line(bold(device), " is no longer a device of yours")
        for agent in result.get("agents", []):
            cli.output.line("  ", _name(agent))
        cli.output.next_steps(("roost status", "see which peers know it already"))

    cli.output.result(result, show)


@devices.command("renew")
@click.option("--keep", is_flag=True, help="Let this one go on as the device that it is.")
@click.option("--name", metavar="NAME", help="What the new device is called.")
@passphrase_option
@pass_cli
def devices_renew(cli: Cli, /, *, keep: bool, name: str | None, **options: object) -> None:
    """Make this home a new device that keeps its memory.

    For when two copies of one home were up: both stop writing. Run it on one of them, and with
    --keep on the other, while their nodes do not run.
    """
    passphrase = cli.passphrase(options)
    result = cli.call("devices.renew", keep=keep, name=name, passphrase=passphrase)

    def show() -> None:
        if keep:
            cli.output.line(bold(str(result["name"])), " goes on as the device that it was")
            return
        cli.output.line("this is a new device now: ", bold(str(result["name"])))
        cli.output.line("  ", dim(str(result["device"])))
        for agent in result.get("ungranted", []):
            cli.output.line(Span("needs a grant to write: ", "yellow"), str(agent))
        for peer in result.get("pair_again", []):
            cli.output.line(Span("pair again with: ", "yellow"), str(peer))
        cli.output.next_steps(
            ("roost devices renew --keep", "on the other copy, so that it goes on"),
            ("roost pair open --mine", "pair with each of your devices again"),
        )

    cli.output.result(result, show)


def _name(found: object) -> str:
    return str(found.get("name") or found.get("agent")) if isinstance(found, dict) else str(found)


@click.command(cls=RoostCommand)
@agent_argument
@pass_cli
def permissions(cli: Cli, agent: str) -> None:
    """List who may do what with an agent."""
    result = cli.call("permissions", agent=agent)
    cli.output.result(result, lambda: _show_permissions(cli, result))


def _show_permissions(cli: Cli, result: dict[str, Any]) -> None:
    found = result.get("permissions", [])
    ids = short_ids(str(item["subject"]) for item in found)
    rows: list[Row] = [
        [
            bold(str(item.get("name") or "-")),
            str(item.get("kind")),
            ids[str(item["subject"])],
            ", ".join(map(str, item.get("rights") or [])) or "-",
            local_time(item.get("since")),
            Span(_revoked(item.get("revoked")), "red"),
        ]
        for item in found
    ]
    cli.output.table(["name", "kind", "id", "rights", "since", "revoked"], rows)
    for device in result.get("unconfirmed", []):
        cli.output.line(Span("does not know yet: ", "yellow"), _name(device))
    if not found:
        cli.output.line(dim("nobody"))


def _revoked(value: object) -> str:
    if value is True:
        return "revoked"
    return local_time(value) if value else ""
