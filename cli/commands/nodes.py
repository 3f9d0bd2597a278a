"""Commands about nodes and logs as a whole: status, doctor, digest, rebuild, sync, audit."""

from __future__ import annotations

from typing import Any, Final

import click

from cli.context import (
    FAILED,
    Cli,
    RoostCommand,
    RoostGroup,
    agent_argument,
    given,
    pass_cli,
)
from cli.output import Row, Span, bold, dim
from cli.session import QUICK_TIMEOUT_S
from cli.text import clip, count, flat, local_time, short_ids, short_records
from keys.errors import UnreachableError, UsageError

_STATE_STYLES: Final = {"connected": "green", "offline": "yellow", "unknown": "dim"}


@click.command(cls=RoostCommand)
@pass_cli
def status(cli: Cli) -> None:
    """Show the agents, the peers, and what needs attention."""
    result = cli.session.call("status", {}, QUICK_TIMEOUT_S)
    cli.output.result(result, lambda: _show_status(cli, result))


def _show_status(cli: Cli, result: dict[str, Any]) -> None:
    out = cli.output
    running = Span("running", "green") if result.get("running") else Span("not running", "yellow")
    out.line(bold(str(result.get("name"))), "  ", dim(str(result.get("device"))), "  ", running)
    _show_agents(cli, result.get("agents", []))
    peers = result.get("peers", [])
    out.line()
    if not peers:
        out.line(dim("no peers"))
    for peer in peers:
        state = str(peer.get("state"))
        out.line(
            bold(str(peer.get("name"))),
            "  ",
            Span(state, _STATE_STYLES.get(state, "dim")),
            dim(f"  last seen {local_time(peer.get('last_seen'))}"),
        )
        for agent in peer.get("agents", []):
            out.line("  ", _lag(agent))
    for alert in result.get("alerts", []):
        out.line(Span("attention: ", "yellow"), str(alert.get("message")))
    if not result.get("agents"):
        out.next_steps(("roost agent create NAME", "begin an agent's memory"))
    elif not result.get("running"):
        out.next_steps(("roost up", "run the node, so that other devices can reach it"))


def _show_agents(cli: Cli, agents: list[dict[str, Any]]) -> None:
    if not agents:
        cli.output.line(dim("no agents"))
        return
    ids = short_ids(str(agent["agent"]) for agent in agents)
    rows: list[Row] = [
        [
            str(agent.get("name")),
            dim(ids[str(agent["agent"])]),
            str(agent.get("records")),
            _aside(agent),
            dim(clip(str(agent.get("digest")), 20)),
        ]
        for agent in agents
    ]
    cli.output.line()
    cli.output.table(["agent", "id", "records", "set aside", "digest"], rows)


def _aside(agent: dict[str, Any]) -> str:
    parts = [f"{agent[key]} {key}" for key in ("held", "quarantined") if agent.get(key)]
    return ", ".join(parts) or "-"


def _lag(agent: dict[str, Any]) -> str:
    rights = agent.get("rights")
    parts = [f"{agent.get('name') or agent.get('agent')}: {flat(rights)}"]
    for key, text in (("they_lack", "they lack"), ("we_lack", "we lack")):
        if agent.get(key):
            parts.append(f"{text} {agent[key]}")
    if agent.get("reason"):
        parts.append(str(agent["reason"]))
    return "; ".join(parts)


@click.command(cls=RoostCommand)
@pass_cli
def doctor(cli: Cli) -> int:
    """Check the home, the clock, the network and the keys."""
    result = cli.session.call("doctor", {}, QUICK_TIMEOUT_S)

    def show() -> None:
        for check in result.get("checks", []):
            mark = Span("ok  ", "green") if check.get("ok") else Span("fail", "red")
            cli.output.line(mark, f"  {check.get('name')}  ", dim(str(check.get("detail") or "")))

    cli.output.result(result, show)
    return 0 if result.get("ok") else FAILED


@click.command(cls=RoostCommand)
@agent_argument
@pass_cli
def digest(cli: Cli, agent: str) -> None:
    """Show the digest of an agent's memory.

    Equal on every node that may read the agent and has the same changes.
    """
    result = cli.session.call("digest", {"agent": agent}, QUICK_TIMEOUT_S)

    def show() -> None:
        records = count(int(result.get("records", 0)), "record")
        cli.output.line(str(result.get("digest")), dim(f"  {records}"))

    cli.output.result(result, show)


@click.command(cls=RoostCommand)
@agent_argument
@pass_cli
def rebuild(cli: Cli, agent: str) -> int:
    """Make an agent's tables anew from its log."""
    with cli.output.progress("reading the log"):
        result = cli.call("rebuild", agent=agent)
    same = result.get("digest_before") == result.get("digest_after")

    def show() -> None:
        if same:
            cli.output.line("rebuilt, nothing changed: ", str(result.get("digest_after")))
            return
        cli.output.line("rebuilt, and it differs from what was there")
        cli.output.fields([(k, str(result.get(k))) for k in ("digest_before", "digest_after")])

    cli.output.result(result, show)
    return 0 if same else FAILED


@click.command(cls=RoostCommand)
@click.option("--once", is_flag=True, help="One round (a running node goes on by itself anyway).")
@click.option("--peer", metavar="DEVICE", help="With this peer only.")
@click.option("--agent", metavar="AGENT", help="This agent only.")
@pass_cli
def sync(cli: Cli, /, **options: object) -> int:
    """Exchange changes with everybody reachable, once.

    Ends with 4 when a peer could not be reached, with 1 when one failed otherwise.
    """
    with cli.output.progress("exchanging changes"):
        result = cli.call("sync", **given(options))
    peers = result.get("peers", [])

    def show() -> None:
        got = count(int(result.get("pulled", 0)), "entry")
        cli.output.line(f"pulled {got}, served {result.get('served', 0)}")
        for peer in peers:
            name = str(peer.get("name") or peer.get("device"))
            if peer.get("error"):
                cli.output.line("  ", Span(name, "yellow"), f"  {_error_text(peer['error'])}")
            else:
                cli.output.line("  ", Span(name, "green"), f"  pulled {peer.get('pulled', 0)}")
        if not peers:
            cli.output.next_steps(("roost pair open --mine", "add another device of yours"))

    cli.output.result(result, show)
    return _sync_code([peer["error"] for peer in peers if peer.get("error")])


def _sync_code(errors: list[object]) -> int:
    """Partial failure is never 0."""
    if not errors:
        return 0
    unreachable = all(UnreachableError.code in str(error) for error in errors)
    return UnreachableError.exit_code if unreachable else FAILED


def _error_text(error: object) -> str:
    return str(error.get("message") or error.get("code")) if isinstance(error, dict) else str(error)


@click.group(cls=RoostGroup)
def audit() -> None:
    """Prove the signed log, or read it."""


@audit.command("verify")
@click.argument("agent", required=False)
@pass_cli
def audit_verify(cli: Cli, agent: str | None) -> int:
    """Check every hash, signature and chain; of one agent, or of all."""
    with cli.output.progress("verifying"):
        result = cli.call("audit.verify", agent=agent)
    problems = result.get("problems", [])

    def show() -> None:
        entries = count(int(result.get("entries", 0)), "entry")
        logs = count(int(result.get("logs", 0)), "log")
        verdict = Span("ok", "green") if result.get("ok") else Span("not ok", "red")
        cli.output.line(verdict, f": {entries} in {logs}, {result.get('erased', 0)} erased")
        for problem in problems:
            cli.output.line("  ", flat(problem))

    cli.output.result(result, show)
    return 0 if result.get("ok") else FAILED


@audit.command("log")
@click.argument("agent", required=False)
@click.option("--refused", is_flag=True, help="List what was refused here instead.")
@click.option("--record", metavar="RECORD", help="Entries on this record only.")
@click.option("--device", metavar="DEVICE", help="Entries of this device only.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", help="At most so many.")
@pass_cli
def audit_log(cli: Cli, /, agent: str | None, refused: bool, **options: object) -> None:
    """List the entries of the signed log, the newest first; or what was refused here."""
    if refused:
        _show_refused(cli, cli.call("audit.refused", agent=agent, **given(options)))
        return
    if agent is None:
        raise UsageError("whose log? name an agent, or give --refused")
    result = cli.call("audit.log", agent=agent, **given(options))
    entries = result.get("log", [])

    def show() -> None:
        devices = short_ids(str(entry.get("device")) for entry in entries)
        records = short_records(str(entry.get("record")) for entry in entries)
        cli.output.table(
            ["time", "device", "seq", "via", "kind", "record", "entry"],
            [
                [
                    local_time(entry.get("recorded_at")),
                    devices[str(entry.get("device"))],
                    str(entry.get("seq")),
                    str(entry.get("via")),
                    str(entry.get("kind")),
                    records[str(entry.get("record"))],
                    dim(str(entry.get("entry"))),
                ]
                for entry in entries
            ],
        )

    cli.output.result(result, show)


def _show_refused(cli: Cli, result: dict[str, Any]) -> None:
    rows: list[Row] = [
        [
            local_time(found.get("at")),
            str(found.get("code")),
            str(found.get("verb")),
            str(found.get("principal")),
            str(found.get("agent") or "-")[:8],
            str(found.get("token") or "-"),
        ]
        for found in result.get("refused", [])
    ]
    header = ["time", "code", "verb", "principal", "agent", "token"]
    cli.output.result(result, lambda: cli.output.table(header, rows))
