"""Commands that read memories: search, list, show, history."""

from __future__ import annotations

from typing import Any, Final

import click

from cli.context import Cli, RoostCommand, agent_argument, given, pass_cli, record_argument
from cli.output import Output, Row, Span, bold, dim
from cli.text import count, flat, local_date, local_time, short_records, word
from keys.limits import LIST_LIMIT_MAX

_STATES: Final = (
    "proposed", "new", "current", "deprecated", "superseded", "expired", "erased"
)  # fmt: skip
_STATE_STYLES: Final = {
    "proposed": "yellow",
    "current": "green",
    "deprecated": "dim",
    "superseded": "dim",
    "expired": "dim",
    "erased": "red",
}
_TIMES: Final = ("valid_from", "valid_to", "expires", "recorded_at", "created_at")
_SHOWN_APART: Final = frozenset({"agent", "record", "text", "state", "kind", "successor"})


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("query")
@click.option(
    "--limit", type=click.IntRange(1, LIST_LIMIT_MAX), metavar="N", help="At most so many."
)
@click.option("--kind", "kinds", multiple=True, metavar="K", help="Of this kind; may be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="With this tag; may be repeated.")
@click.option("--layer", metavar="L", help="In this layer.")
@click.option("--at", metavar="T", help="What was true at that time.")
@click.option("--as-of", metavar="T", help="What was believed at that time.")
@click.option("--since", metavar="T", help="Written since then.")
@click.option("--until", metavar="T", help="Written until then.")
@click.option("--channel", metavar="C", help="Said in this channel.")
@click.option("--misses", is_flag=True, help="Name the words that no memory holds.")
@click.option("--explain", is_flag=True, help="Say why each was found, and what was withheld.")
@pass_cli
def search(cli: Cli, /, agent: str, query: str, **options: object) -> None:
    """Find memories by what they say."""
    result = cli.call("search", agent=agent, query=query, **given(options))
    cli.output.result(result, lambda: _show_found(cli.output, agent, result))


def _show_found(out: Output, agent: str, result: dict[str, Any]) -> None:
    found, withheld = result.get("results", []), result.get("withheld", [])
    if not found:
        out.line(dim("nothing found"))
    ids = short_records(str(item["record"]) for item in [*found, *withheld])
    for item in found:
        out.line(bold(ids[str(item["record"])]), "  ", *_about(item))
        out.block(str(item.get("text")))
        if item.get("why"):
            out.line("  ", dim(f"why: {flat(item['why'])}"))
    if result.get("misses"):
        out.line(dim("in no memory: "), flat(", ".join(map(str, result["misses"]))))
    for item in withheld:
        record = ids[str(item["record"])]
        out.line(Span("withheld ", "yellow"), record, dim(f"  {item.get('reason')}"))
    if found:
        out.note(f"in full: roost show {word(agent)} {ids[str(found[0]['record'])]}")


def _about(item: dict[str, Any]) -> list[str | Span]:
    """State, layer, tags and time of one record."""
    state = str(item.get("state"))
    parts: list[str | Span] = [Span(state, _STATE_STYLES.get(state, "bold"))]
    rest = [str(item[key]) for key in ("kind", "layer") if item.get(key)]
    rest += [f"#{tag}" for tag in item.get("tags") or []]
    rest.append(local_time(item.get("recorded_at")))
    return [*parts, dim("  " + "  ".join(rest))]


@click.command(cls=RoostCommand)
@agent_argument
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="In this state; repeatable.",
)
@click.option("--kind", "kinds", multiple=True, metavar="K", help="Of this kind; may be repeated.")
@click.option("--layer", metavar="L", help="In this layer.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="With this tag; may be repeated.")
@click.option("--since", metavar="T", help="Written since then.")
@click.option("--until", metavar="T", help="Written until then.")
@click.option("--source", metavar="S", help="From this source.")
@click.option(
    "--limit", type=click.IntRange(1, LIST_LIMIT_MAX), metavar="N", help="At most so many."
)
@click.option("--cursor", metavar="C", help="Go on where the last list ended.")
@pass_cli
def list_records(cli: Cli, /, agent: str, **options: object) -> None:
    """List memories in every state."""
    result = cli.call("list", agent=agent, **given(options))
    cli.output.result(result, lambda: _show_list(cli.output, result))


def _show_list(out: Output, result: dict[str, Any]) -> None:
    records = result.get("records", [])
    if not records:
        out.line(dim("no memories"))
        return
    ids = short_records(str(item["record"]) for item in records)
    rows: list[Row] = []
    for item in records:
        state = str(item.get("state"))
        text = "" if item.get("text") is None else str(item["text"])
        if item.get("successor"):
            now = ", ".join(map(str, item.get("successors") or [item["successor"]]))
            text = f"{text} (now {now})".strip()
        rows.append(
            [
                ids[str(item["record"])],
                Span(state, _STATE_STYLES.get(state, "bold")),
                str(item.get("kind") or ""),
                local_date(item.get("recorded_at")),
                text,
            ]
        )
    out.table(["record", "state", "kind", "written", "text"], rows)
    out.line(dim(f"{len(rows):,} of {count(int(result.get('total', len(rows))), 'record')}"))
    if result.get("next"):
        out.line(dim(f"more: --cursor {result['next']}"))


@click.command(cls=RoostCommand)
@agent_argument
@click.option("--query", metavar="TEXT", help="What the agent is about to do.")
@click.option("--budget", type=int, metavar="TOKENS", help="At most so many tokens (4096).")
@click.option("--channel", metavar="C", help="Nothing of another channel.")
@pass_cli
def context(cli: Cli, /, agent: str, **options: object) -> None:
    """Show the block that an agent is given."""
    result = cli.call("context", agent=agent, **given(options))

    def show_block() -> None:
        cli.output.block(str(result["text"]))
        left = len(result["dropped"])
        cli.output.note(f"{result['tokens']:,} tokens; {count(left, 'memory')} did not fit")

    cli.output.result(result, show_block)


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@pass_cli
def show(cli: Cli, agent: str, record: str) -> None:
    """Show one memory in full."""
    result = cli.call("show", agent=agent, record=record)

    def text() -> None:
        state = str(result.get("state"))
        style = _STATE_STYLES.get(state, "bold")
        cli.output.line(bold(str(result["record"])), "  ", Span(state, style))
        if result.get("text") is not None:
            cli.output.line()
            cli.output.block(str(result["text"]))
            cli.output.line()
        rest = {k: v for k, v in result.items() if k not in _SHOWN_APART}
        fields = [("kind", str(result["kind"]))] if result.get("kind") else []
        fields += [(k, _field(k, v)) for k, v in rest.items() if v not in (None, [], {}, "")]
        cli.output.fields([f for f in fields if not f[0].endswith("_us")])

    cli.output.result(result, text)


def _field(key: str, value: object) -> str:
    if key == "when" and isinstance(value, list):
        return "; ".join(f"{words} = {meant}" for words, meant in value)
    return local_time(value) if key in _TIMES else flat(value)


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@pass_cli
def history(cli: Cli, agent: str, record: str) -> None:
    """Show every version of a memory.

    What it said, who wrote it, through what, on which device, and why.
    """
    result = cli.call("history", agent=agent, record=record)

    def text() -> None:
        for version in result.get("versions", []):
            state = str(version.get("state"))
            cli.output.line(
                bold(f"version {version.get('version')}"),
                "  ",
                Span(state, _STATE_STYLES.get(state, "bold")),
                dim(f"  {local_time(version.get('recorded_at'))}"),
                f"  {version.get('by') or version.get('device')} via {version.get('via')}",
            )
            if version.get("text") is not None:
                cli.output.block(str(version["text"]))
            if version.get("reason"):
                cli.output.line("  ", dim(f"reason: {version['reason']}"))

    cli.output.result(result, text)
