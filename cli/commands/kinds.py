"""Commands for files, sessions, diaries, layers, perspectives, skills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from cli.commands.memory import text_argument
from cli.context import (
    Cli,
    RoostCommand,
    RoostGroup,
    agent_argument,
    given,
    pass_cli,
    reason_option,
)
from cli.output import Output, Row, Span, bold, dim
from cli.text import count, flat, local_date, short_records
from keys.errors import UsageError
from keys.limits import TEXT_BYTES_MAX

_PROVENANCES: Final = ("user", "agent", "tool", "file", "web", "import")
Wrapped = Callable[..., Any]


def shared_options(command: Wrapped) -> Wrapped:
    """The options that every kind has when it is written."""
    for option in (
        click.option("--derived-from", multiple=True, metavar="RECORD", help="What it is made of."),
        click.option("--source", metavar="S", help="The file, page or message it comes from."),
        click.option("--provenance", type=click.Choice(_PROVENANCES), help="Where it comes from."),
        click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; may be repeated."),
    ):
        command = option(command)
    return command


soft_reason: Final = click.option("--reason", metavar="R", help="Why; it is kept.")


def show_done(cli: Cli, result: dict[str, Any]) -> None:
    """What was written."""

    def show() -> None:
        known = result.get("created") is False
        words = "already here: " if known else "done  "
        cli.output.line(words, bold(str(result.get("record", ""))), dim(f"  {_state(result)}"))
        if result.get("state") == "proposed":
            cli.output.note("it waits for a person: roost review list")

    cli.output.result(result, show)


def _state(result: dict[str, Any]) -> str:
    return flat(result.get("state") or "")


def show_retired(cli: Cli, result: dict[str, Any]) -> None:
    """How many were retired."""
    rows = result.get("retired", [])
    cli.output.result(result, lambda: cli.output.line(f"{count(len(rows), 'record')} retired"))


def add_listing(group: click.Group, kind: str, plural: str, columns: tuple[str, ...]) -> None:
    """Give a group its commands ``list`` and ``show``."""

    @group.command("list", cls=RoostCommand, help=f"List the {plural}.")
    @agent_argument
    @click.option("--all", "every", is_flag=True, help="In every state.")
    @click.option("--channel", metavar="C", help="Of this channel.")
    @pass_cli
    def list_them(cli: Cli, /, agent: str, every: bool, channel: str | None) -> None:
        result = cli.call(
            f"{kind}.list", **given({"agent": agent, "all": every, "channel": channel})
        )
        cli.output.result(result, lambda: _table(cli.output, result.get(plural, []), columns))

    @group.command("show", cls=RoostCommand, help=f"Show one {kind} with what belongs to it.")
    @agent_argument
    @click.argument(kind)
    @pass_cli
    def show_one(cli: Cli, /, agent: str, **wanted: str) -> None:
        result = cli.call(f"{kind}.show", agent=agent, **wanted)
        cli.output.result(result, lambda: _detail(cli.output, result))


def _table(out: Output, found: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    if not found:
        out.line(dim("none"))
        return
    ids = short_records(str(item["record"]) for item in found)
    rows: list[Row] = []
    for item in found:
        cells: list[str | Span] = [ids[str(item["record"])], flat(item.get("state") or "")]
        cells += [flat(item.get(column) or "") for column in columns]
        cells.append("conflict" if item.get("conflict") else local_date(item.get("recorded_at")))
        rows.append(cells)
    out.table(["record", "state", *columns, "since"], rows)


def _detail(out: Output, item: dict[str, Any]) -> None:
    out.line(bold(flat(item.get("name") or item.get("record"))), dim(f"  {item.get('state')}"))
    out.block(str(item.get("content") or item.get("text") or ""))
    for key in ("root", "parent", "channel", "mutability", "hash", "parameters"):
        if item.get(key):
            out.line(dim(f"{key}: "), flat(item[key]))
    for row in item.get("properties", []):
        out.line(bold(flat(row.get("name"))), ": ", flat(row.get("text")))
    for row in item.get("relations", []):
        out.line(dim(f"{row.get('from')} "), flat(row.get("text")), dim(f" {row.get('to')}"))
    for row in item.get("turns", []):
        out.line(bold(flat(row.get("speaker") or "")), ": ", flat(row.get("text")))


def add_removal(group: click.Group, kind: str) -> None:
    """Give a group its command ``remove``."""

    @group.command("remove", cls=RoostCommand, help=f"Retire one {kind}; it stays in the log.")
    @agent_argument
    @click.argument(kind)
    @reason_option
    @pass_cli
    def remove(cli: Cli, /, agent: str, reason: str, **wanted: str) -> None:
        show_retired(cli, cli.call(f"{kind}.remove", agent=agent, reason=reason, **wanted))


# -- files ---------------------------------------------------------------------------------------


@click.group(cls=RoostGroup)
def file() -> None:
    """Keep files verbatim, section by section."""


def _file_text(path: str) -> str:
    """The text of a file on this machine, or of standard input for ``-``."""
    if path == "-":
        return text_argument("-")
    with Path(path).open("rb") as opened:
        data = opened.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        raise UsageError(f"a file has at most {TEXT_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise UsageError("the file is not UTF-8 text") from exc


@file.command("add")
@agent_argument
@click.argument("path", type=click.Path())
@click.option("--name", metavar="NAME", help="What it is called; else as on this machine.")
@click.option("--mutability", type=click.Choice(["mutable", "append", "fixed"]))
@shared_options
@pass_cli
def file_add(cli: Cli, /, path: str, name: str | None, **options: object) -> None:
    """Store the file at PATH (- is standard input)."""
    if name is None and path == "-":
        raise UsageError("a file from standard input needs --name")
    text = _file_text(path)
    show_done(cli, cli.call("file.add", name=name or Path(path).name, text=text, **given(options)))


add_listing(file, "file", "files", ("name", "mutability"))


@file.command("set")
@agent_argument
@click.argument("file")
@click.argument("path", type=click.Path())
@click.option("--base", metavar="HASH", help="Only if it still is what was read: its hash.")
@soft_reason
@shared_options
@pass_cli
def file_set(cli: Cli, /, path: str, **options: object) -> None:
    """Give FILE the text at PATH (- is standard input); what changed is superseded."""
    show_done(cli, cli.call("file.set", text=_file_text(path), **given(options)))


add_removal(file, "file")


# -- sessions and diaries ------------------------------------------------------------------------


@click.group(cls=RoostGroup)
def session() -> None:
    """Keep what was said, turn by turn."""


_channel = click.option("--channel", metavar="C", help="Where it was said.")


@session.command("add")
@agent_argument
@click.argument("session")
@_channel
@shared_options
@pass_cli
def session_add(cli: Cli, /, **options: object) -> None:
    """Begin a session."""
    show_done(cli, cli.call("session.add", **given(options)))


@session.command("append")
@agent_argument
@click.argument("session")
@click.argument("text")
@click.option("--speaker", required=True, metavar="S", help="Who said it.")
@click.option("--message", metavar="ID", help="The id of the message where it was said.")
@_channel
@shared_options
@pass_cli
def session_append(cli: Cli, /, text: str, **options: object) -> None:
    """Write down a turn of SESSION; a session that is not there begins."""
    show_done(cli, cli.call("session.append", text=text_argument(text), **given(options)))


@session.command("summarise")
@agent_argument
@click.argument("session")
@click.argument("text")
@soft_reason
@shared_options
@pass_cli
def session_summarise(cli: Cli, /, text: str, **options: object) -> None:
    """Write the rolling summary of SESSION; it cites its turns and replaces the last one."""
    show_done(cli, cli.call("session.summarise", text=text_argument(text), **given(options)))


@session.command("end")
@agent_argument
@click.argument("session")
@pass_cli
def session_end(cli: Cli, /, **options: object) -> None:
    """Note that a session has ended."""
    show_done(cli, cli.call("session.end", **given(options)))


add_listing(session, "session", "sessions", ("name", "channel"))
add_removal(session, "session")


@click.group(cls=RoostGroup)
def diary() -> None:
    """Keep a diary."""


@diary.command("add")
@agent_argument
@click.argument("text")
@click.option("--title", metavar="T", help="A title for the line.")
@_channel
@shared_options
@pass_cli
def diary_add(cli: Cli, /, text: str, **options: object) -> None:
    """Write a line of the diary; - reads it from standard input."""
    show_done(cli, cli.call("diary.add", text=text_argument(text), **given(options)))


add_listing(diary, "diary", "diaries", ("title", "text"))
add_removal(diary, "diary")


# -- layers, perspectives, skills, identity ------------------------------------------------------


@click.group(cls=RoostGroup)
def layer() -> None:
    """See and set the seven layers of an agent."""


@layer.command("list")
@agent_argument
@pass_cli
def layer_list(cli: Cli, agent: str) -> None:
    """List the layers with their budgets and crons."""
    result = cli.call("layer.list", agent=agent)
    columns = ("name", "budget", "min_age_s", "review_cron", "intake_cron")

    def show() -> None:
        rows: list[Row] = [[flat(row[c]) for c in columns] for row in result["layers"]]
        cli.output.table(list(columns), rows)

    cli.output.result(result, show)


@layer.command("set")
@agent_argument
@click.argument("layer")
@click.option("--budget", type=int, metavar="TOKENS", help="Its share of a context block.")
@click.option("--min-age", "min_age_s", type=int, metavar="SECONDS", help="Reviewed when older.")
@click.option("--review", "review_cron", metavar="CRON", help='When it is reviewed; "" is never.')
@click.option("--intake", "intake_cron", metavar="CRON", help='When it takes in; "" is never.')
@pass_cli
def layer_set(cli: Cli, /, **options: object) -> None:
    """Change a layer."""
    show_done(cli, cli.call("layer.set", **given(options)))


@click.group(cls=RoostGroup)
def perspective() -> None:
    """Keep how things look: retrospective, current, future."""


@perspective.command("set")
@agent_argument
@click.argument("perspective", type=click.Choice(["retrospective", "current", "future"]))
@click.argument("text")
@soft_reason
@shared_options
@pass_cli
def perspective_set(cli: Cli, /, text: str, **options: object) -> None:
    """Write a perspective; the one before it stays in the history."""
    show_done(cli, cli.call("perspective.set", text=text_argument(text), **given(options)))


add_listing(perspective, "perspective", "perspectives", ("name", "text"))
add_removal(perspective, "perspective")


@click.group(cls=RoostGroup)
def skill() -> None:
    """Keep scripts that a person has approved; Roost never runs them."""


@skill.command("add")
@agent_argument
@click.argument("name")
@click.argument("path", type=click.Path())
@click.option("--parameters", metavar="JSON", help="What the script takes.")
@shared_options
@pass_cli
def skill_add(cli: Cli, /, path: str, **options: object) -> None:
    """Propose the script at PATH (- is standard input)."""
    show_done(cli, cli.call("skill.add", text=_file_text(path), **given(options)))


add_listing(skill, "skill", "skills", ("name", "parameters"))


@click.group(cls=RoostGroup)
def identity() -> None:
    """Keep who the agent is: a core, and amendments."""


@identity.command("add")
@agent_argument
@click.argument("text")
@shared_options
@pass_cli
def identity_add(cli: Cli, /, text: str, **options: object) -> None:
    """Propose the core, or an amendment to it."""
    show_done(cli, cli.call("identity.add", text=text_argument(text), **given(options)))


add_listing(identity, "identity", "identities", ("name", "text"))
