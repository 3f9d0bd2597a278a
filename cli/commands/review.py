"""What waits for a person: review, conflicts, quarantine."""

from __future__ import annotations

from typing import Any, Final

import click

from cli.context import (
    Cli,
    RoostGroup,
    agent_argument,
    pass_cli,
    passphrase_option,
    reason_option,
    record_argument,
)
from cli.output import Output, Row, Span, bold, dim
from cli.text import count, flat, short_records, word
from keys.errors import RoostError, UsageError

HIDDEN_SHOWN: Final = 20


@click.group(cls=RoostGroup)
def review() -> None:
    """Look at proposed memories, approve or reject them.

    No agent reads a proposed memory before a person approved it.
    """


@review.command("list")
@agent_argument
@pass_cli
def review_list(cli: Cli, agent: str) -> None:
    """List what waits for you."""
    result = cli.call("review.list", agent=agent)
    waiting = result.get("review", [])

    def show() -> None:
        if not waiting:
            cli.output.line(dim("nothing waits for you"))
            return
        ids = short_records(str(item["record"]) for item in waiting)
        for item in waiting:
            notes = [str(item[k]) for k in ("kind", "provenance", "reason") if item.get(k)]
            if item.get("replaces"):
                notes.append(f"replaces {flat(item['replaces'])}")
            if item.get("flags"):
                notes.append(f"holds what cannot be seen: {flat(item['flags'])}")
            cli.output.line(bold(ids[str(item["record"])]), dim("  " + "  ".join(notes)))
            cli.output.block(str(item.get("text")))
        first = waiting[0]["record"]
        cli.output.next_steps(
            (f"roost review approve {word(agent)} {first}", "shows it again, and asks"),
            (f"roost review reject {word(agent)} {first} --reason R", "keep it out"),
        )

    cli.output.result(result, show)


@review.command("show")
@agent_argument
@record_argument
@pass_cli
def review_show(cli: Cli, agent: str, record: str) -> None:
    """Show the exact text of a proposal, and its heads."""
    result = cli.call("review.show", agent=agent, record=record)
    cli.output.result(result, lambda: _show_proposal(cli.output, result))


def _show_proposal(out: Output, result: dict[str, Any]) -> None:
    out.line(bold(str(result.get("record"))))
    out.line()
    out.block(str(result.get("text")))
    out.line()
    if result.get("flags"):
        out.line(Span(f"holds what cannot be seen: {flat(result['flags'])}", "red"))
        for item in result.get("hidden", [])[:HIDDEN_SHOWN]:
            out.line("  ", dim(f"at {item.get('at')}  {item.get('char')}  {item.get('name')}"))
        out.line()
    for change in result.get("changes", []):
        out.line(bold(str(change.get("key"))))
        out.block(f"now: {flat(change.get('shown'))}\nnew: {flat(change.get('proposed'))}")
    apart = {"record", "text", "revealed", "hidden", "flags", "changes", "sources"}
    rest = {k: v for k, v in result.items() if k not in apart and v not in (None, [])}
    out.fields([(key, flat(value)) for key, value in rest.items()])
    for source in result.get("sources", []):
        out.line(dim(f"from {source.get('record')}  {source.get('state')}"))
        out.block(str(source.get("text", "")))


@review.command("approve")
@agent_argument
@click.argument("record", required=False)
@click.option("--heads", metavar="H", help='What "roost review show" gave: you approve just that.')
@click.option("--run", metavar="RUN", help="Approve a whole import instead of one memory.")
@click.option("--reason", metavar="R", help="Why; it is kept.")
@passphrase_option
@pass_cli
def review_approve(cli: Cli, /, agent: str, record: str | None, **options: Any) -> None:
    """Approve a proposal, exactly as it was shown.

    On a terminal without --heads it is shown and you are asked.
    """
    heads, run, reason = options["heads"], options["run"], options["reason"]
    if (record is None) == (run is None):
        raise UsageError("give either RECORD or --run RUN", hint="roost review approve --help")
    params: dict[str, Any] = {"agent": agent, "reason": reason}
    if run is not None:
        if heads is not None:
            raise UsageError("--heads goes with RECORD, not with --run")
        params["run"] = run
    else:
        params |= {"record": record, "heads": heads or _heads_as_shown(cli, agent, str(record))}
    result = cli.call("review.approve", **params, passphrase=cli.passphrase(options))

    def show() -> None:
        approved = result.get("approved")
        what = count(approved, "memory") if isinstance(approved, int) else None
        cli.output.line("approved: ", bold(what or str(result.get("record", record))))

    cli.output.result(result, show)


def _heads_as_shown(cli: Cli, agent: str, record: str) -> str:
    """The heads of a proposal that a person has just seen and said yes to."""
    if not (cli.output.can_ask and cli.output.on_terminal):
        raise UsageError(
            "what is approved has to be named: --heads is missing",
            hint=f"roost review show {word(agent)} {word(record)} gives them",
        )
    proposal = cli.call("review.show", agent=agent, record=record)
    _show_proposal(cli.output, proposal)
    if not cli.output.confirm("approve exactly this?"):
        raise RoostError("not approved; it goes on waiting")
    return str(proposal["heads"])


@review.command("reject")
@agent_argument
@record_argument
@reason_option
@passphrase_option
@pass_cli
def review_reject(cli: Cli, /, agent: str, record: str, reason: str, **options: object) -> None:
    """Keep a proposal out, for good."""
    params = {"record": record, "reason": reason, "passphrase": cli.passphrase(options)}
    result = cli.call("review.reject", agent=agent, **params)
    rejected = str(result.get("record", record))
    cli.output.result(result, lambda: cli.output.line("rejected: ", bold(rejected)))


@click.group(cls=RoostGroup)
def conflicts() -> None:
    """See memories that two devices changed at once."""


@conflicts.command("list")
@agent_argument
@pass_cli
def conflicts_list(cli: Cli, agent: str) -> None:
    """List them; every version is kept."""
    result = cli.call("conflicts.list", agent=agent)
    cli.output.result(result, lambda: _show_items(cli.output, result.get("conflicts", [])))


@conflicts.command("resolve")
@agent_argument
@record_argument
@click.option("--keep", metavar="R", help="Which record; the others give way to it.")
@click.option("--reason", metavar="R", help="Why; it is kept.")
@pass_cli
def conflicts_resolve(
    cli: Cli, agent: str, record: str, keep: str | None, reason: str | None
) -> None:
    """Keep one record of a conflict, or, without --keep, the values that RECORD shows."""
    result = cli.call("conflicts.resolve", agent=agent, record=record, keep=keep, reason=reason)
    kept = str(result.get("record", record))
    cli.output.result(result, lambda: cli.output.line("kept: ", bold(kept)))


@click.group(cls=RoostGroup)
def quarantine() -> None:
    """See changes that were set aside."""


@quarantine.command("list")
@agent_argument
@pass_cli
def quarantine_list(cli: Cli, agent: str) -> None:
    """List changes that do not count, each with the reason."""
    result = cli.call("quarantine.list", agent=agent)
    found = result.get("quarantine", [])

    def show() -> None:
        if not found:
            cli.output.line(dim("none"))
            return
        rows: list[Row] = [
            [
                str(item.get("entry")),
                str(item.get("record")),
                str(item.get("device")),
                Span(str(item.get("reason")), "yellow"),
            ]
            for item in found
        ]
        cli.output.table(["entry", "record", "device", "reason"], rows)

    cli.output.result(result, show)


@quarantine.command("adopt")
@agent_argument
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True)
@pass_cli
def quarantine_adopt(cli: Cli, agent: str, entries: tuple[str, ...]) -> None:
    """Write changes that do not count anew, as this device's.

    What waited for a person before waits again.
    """
    result = cli.call("quarantine.adopt", agent=agent, entries=list(entries))

    def show() -> None:
        for item in result.get("adopted", []):
            what = "new memory" if item.get("created") else "memory"
            cli.output.line(f"{what} ", bold(str(item.get("record"))), f"  {item.get('state')}")
        cli.output.next_steps(
            (f"roost quarantine drop {word(agent)} ENTRY", "take the old change off the list")
        )

    cli.output.result(result, show)


@quarantine.command("drop")
@agent_argument
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True)
@passphrase_option
@pass_cli
def quarantine_drop(cli: Cli, /, agent: str, entries: tuple[str, ...], **options: object) -> None:
    """Say that changes are not wanted: no node lists them any more."""
    params = {"entries": list(entries), "passphrase": cli.passphrase(options)}
    result = cli.call("quarantine.drop", agent=agent, **params)
    dropped = result.get("dropped", [])
    cli.output.result(result, lambda: cli.output.line(f"dropped: {count(len(dropped), 'change')}"))


@quarantine.command("settle")
@agent_argument
@click.argument("entry")
@passphrase_option
@pass_cli
def quarantine_settle(cli: Cli, /, agent: str, entry: str, **options: object) -> None:
    """Say which branch of a forked log counts: that of ENTRY, to its end.

    What two copies of one device wrote side by side stays frozen until you do.
    """
    params = {"entry": entry, "passphrase": cli.passphrase(options)}
    result = cli.call("quarantine.settle", agent=agent, **params)
    cli.output.result(
        result,
        lambda: cli.output.line("it counts up to entry ", bold(str(result.get("entry")))),
    )


def _show_items(out: Output, items: list[Any]) -> None:
    """Items whose keys may grow, one block each."""
    if not items:
        out.line(dim("none"))
    for item in items:
        values = item if isinstance(item, dict) else {"record": item}
        out.line(bold(str(values.get("record", "-"))))
        for key, value in values.items():
            if key == "record" or value in (None, [], ""):
                continue
            out.line("  ", dim(f"{key}:"))
            for each in value if isinstance(value, list) else [value]:
                out.block(flat(each), indent=4)
