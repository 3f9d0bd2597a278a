"""Commands that change memories: one at a time, or many from a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from cli.batches import Totals, send
from cli.context import (
    FAILED,
    Cli,
    RoostCommand,
    agent_argument,
    given,
    pass_cli,
    passphrase_option,
    reason_option,
    record_argument,
    redact_option,
)
from cli.output import Span, bold, dim
from cli.text import count, word
from keys.errors import RefusedError, UsageError
from keys.limits import TEXT_BYTES_MAX
from node.importers.jsonl import read_objects
from node.importers.rows import Problem, Row

_PROVENANCES: Final = ("user", "agent", "tool", "file", "web", "import")
_LISTS: Final = {"tag": "tags", "tags": "tags", "derived_from": "derived_from"}
_ROW_KEYS: Final = frozenset(
    {"text", "layer", "category", "provenance", "source", "valid_from", "valid_to", "expires"}
    | {"weight", *_LISTS}
)
_REFUSED_SHOWN: Final = 20


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("text", required=False)
@click.option("--jsonl", metavar="FILE", type=click.Path(), help="One memory a line; - is stdin.")
@click.option("--layer", metavar="L", help="day, week, month, year, …")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; may be repeated.")
@click.option("--category", metavar="C", help="fact, preference, rule, context or episode.")
@click.option("--provenance", type=click.Choice(_PROVENANCES), help="Where it comes from.")
@click.option("--source", metavar="S", help="The file, page or message it comes from.")
@click.option("--valid-from", metavar="T", help="Since when it is true.")
@click.option("--valid-to", metavar="T", help="Until when it is true.")
@click.option("--expires", metavar="T", help="When it may be erased.")
@click.option("--weight", type=float, metavar="W", help="How much it matters.")
@click.option("--derived-from", multiple=True, metavar="RECORD", help="A memory it is made from.")
@click.option(
    "--lift", is_flag=True, help="Let a retired or forgotten value return; with --reason."
)
@click.option("--reason", metavar="R", help="Why it may return.")
@redact_option
@passphrase_option
@pass_cli
def remember(
    cli: Cli,
    /,
    agent: str,
    text: str | None,
    jsonl: str | None,
    **options: Any,
) -> int:
    """Write memories.

    TEXT is the memory; - reads it from standard input. With --jsonl each line of the file is one
    object with the keys text, layer, tags, category, provenance, source, valid_from, valid_to,
    expires, weight and derived_from; options given beside it hold for lines that do not say.

    A time is ISO 8601 with an offset (2025-03-04T17:00+01:00), or a date.
    """
    if (text is None) == (jsonl is None):
        raise UsageError("give either TEXT or --jsonl FILE", hint="roost remember --help")
    if jsonl is not None:
        return _remember_file(cli, agent, jsonl, options)
    if not options["lift"]:
        if options["reason"] is not None:
            raise UsageError("--reason goes with --lift")
        params = {k: v for k, v in given(options).items() if k != "lift"}
    elif options["reason"] is None:
        raise UsageError("--lift needs a --reason")
    else:
        params = given(options) | {"passphrase": cli.passphrase(options)}
    result = cli.call("remember", agent=agent, text=text_argument(str(text)), **params)
    cli.output.result(result, lambda: _show_remembered(cli, agent, result))
    return 0


def _show_remembered(cli: Cli, agent: str, result: dict[str, Any]) -> None:
    done = "remembered" if result.get("created") else "already known, reinforced:"
    state = str(result.get("state"))
    cli.output.line(f"{done} ", bold(str(result["record"])), dim(f"  {state}"))
    if result.get("redacted"):
        cli.output.line("  replaced by a marker: ", ", ".join(result["redacted"]))
    for near in result.get("near", []):
        cli.output.line(f"  says nearly the same: {near['record']}", dim(f"  {near['state']}"))
    if state == "proposed":
        cli.output.next_steps(
            (f"roost review list {word(agent)}", "it waits for you; no agent reads it before")
        )


def text_argument(text: str) -> str:
    """The text that an argument stands for: itself, or standard input for ``-``."""
    if text != "-":
        return text
    data = sys.stdin.buffer.read(TEXT_BYTES_MAX + 2)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as exc:
        raise UsageError("standard input is not UTF-8 text") from exc


def _remember_file(cli: Cli, agent: str, jsonl: str, options: dict[str, Any]) -> int:
    if options.pop("lift") or options.pop("reason"):
        raise UsageError("--lift and --reason go with TEXT, not with --jsonl")
    redact = options.pop("redact")
    defaults = {k: v for k, v in given(options).items() if v not in (None, [])}
    totals = Totals({"written": 0, "reinforced": 0}, {"refused": []})
    malformed: list[Any] = []
    with open_rows(jsonl) as file, cli.output.progress("remembering", size_of(file)) as advance:
        rows = _rows(file, defaults, advance)
        call = partial(_batch, cli, agent, redact)
        send(rows, totals, malformed, call)
    refused = totals.lists["refused"]
    result = totals.numbers | {"refused": sorted(refused + malformed, key=lambda r: r["line"])}
    cli.output.result(result, lambda: _show_batch(cli, result))
    if malformed:
        return FAILED
    return RefusedError.exit_code if refused else 0


def _batch(cli: Cli, agent: str, redact: bool | None, rows: list[Row]) -> dict[str, Any]:
    return cli.call("remember.batch", agent=agent, rows=rows, redact=redact)


def _show_batch(cli: Cli, result: dict[str, Any]) -> None:
    out = cli.output
    out.line(f"{result['written']:,} remembered, {result['reinforced']:,} already known")
    refused = result["refused"]
    for item in refused[:_REFUSED_SHOWN]:
        out.line(Span(f"  line {item['line']}: ", "yellow"), f"{item['message']} ({item['code']})")
    if len(refused) > _REFUSED_SHOWN:
        out.line(f"  and {count(len(refused) - _REFUSED_SHOWN, 'line')} more: see --json")


def open_rows(name: str) -> BinaryIO:
    """The file of this name, or standard input for ``-``."""
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as exc:
        raise UsageError(f"cannot read {name}: {exc.strerror}") from exc


def size_of(file: BinaryIO) -> int | None:
    """How many bytes there are to read, or None for a pipe."""
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None


def _rows(
    file: BinaryIO, defaults: dict[str, Any], advance: Callable[[int], None]
) -> Iterator[Row | Problem]:
    before = 0
    for found in read_objects(file):
        if file.seekable():
            here = file.tell()
            advance(here - before)
            before = here
        yield found if isinstance(found, Problem) else _row(*found, defaults)


def _row(line: int, found: Row, defaults: dict[str, Any]) -> Row | Problem:
    """One object of a file as the verb takes it, with the defaults it does not override."""
    unknown = sorted(found.keys() - _ROW_KEYS)
    if unknown:
        return Problem(line, f"unknown key {unknown[0][:40]!r}")
    if {"tag", "tags"} <= found.keys():
        return Problem(line, "both 'tag' and 'tags'")
    if "text" not in found:
        return Problem(line, "the key 'text' is missing")
    row: Row = {}
    for key, value in found.items():
        if value is not None:
            listed = key in _LISTS and isinstance(value, str)
            row[_LISTS.get(key, key)] = [value] if listed else value
    return defaults | row | {"line": line}


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@click.argument("text")
@reason_option
@pass_cli
def revise(cli: Cli, agent: str, record: str, text: str, reason: str) -> None:
    """Replace a memory's text by a better one.

    The old text stays in the history and is no longer found. TEXT of - reads standard input.
    """
    params = {"record": record, "text": text_argument(text), "reason": reason}
    result = cli.call("revise", agent=agent, **params)

    def show() -> None:
        old = str(result.get("supersedes"))
        cli.output.line("revised: ", bold(str(result["record"])), dim(f"  replaces {old}"))

    cli.output.result(result, show)


def _change(cli: Cli, verb: str, done: str, params: dict[str, Any]) -> None:
    """Call a verb that changes one record, and say so."""
    result = cli.call(verb, **params)

    def show() -> None:
        record = str(result.get("record", params["record"]))
        state = f"  {result['state']}" if result.get("state") else ""
        cli.output.line(f"{done} ", bold(record), dim(state))

    cli.output.result(result, show)


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@click.argument("tags", nargs=-1, required=True, metavar="TAG...")
@pass_cli
def tag(cli: Cli, agent: str, record: str, tags: tuple[str, ...]) -> None:
    """Add tags to a memory."""
    _change(cli, "tag", "tagged", {"agent": agent, "record": record, "tags": list(tags)})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@click.argument("tags", nargs=-1, required=True, metavar="TAG...")
@pass_cli
def untag(cli: Cli, agent: str, record: str, tags: tuple[str, ...]) -> None:
    """Take tags off a memory."""
    _change(cli, "untag", "untagged", {"agent": agent, "record": record, "tags": list(tags)})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@click.option("--layer", required=True, metavar="L", help="day, week, month, year, …")
@pass_cli
def move(cli: Cli, agent: str, record: str, layer: str) -> None:
    """Move a memory to another layer."""
    _change(cli, "move", "moved", {"agent": agent, "record": record, "layer": layer})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@click.option("--reason", metavar="R", help="Why; it is kept.")
@pass_cli
def keep(cli: Cli, agent: str, record: str, reason: str | None) -> None:
    """Mark a memory as reviewed and current."""
    _change(cli, "keep", "kept", {"agent": agent, "record": record, "reason": reason})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@reason_option
@pass_cli
def retire(cli: Cli, agent: str, record: str, reason: str) -> None:
    """Withhold a memory; it stays in the log.

    It is no longer found, and its value cannot come back unless a person lets it.
    """
    _change(cli, "retire", "retired", {"agent": agent, "record": record, "reason": reason})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@reason_option
@passphrase_option
@pass_cli
def reinstate(cli: Cli, /, agent: str, record: str, reason: str, **options: object) -> None:
    """Take a retired memory back."""
    params = {"agent": agent, "record": record, "reason": reason}
    _change(cli, "reinstate", "reinstated", params | {"passphrase": cli.passphrase(options)})


@click.command(cls=RoostCommand)
@agent_argument
@record_argument
@reason_option
@passphrase_option
@pass_cli
def lift(cli: Cli, /, agent: str, record: str, reason: str, **options: object) -> None:
    """Let a retired or forgotten value return.

    RECORD is the memory whose value is refused. Nothing comes back by itself: the value may be
    written again.
    """
    params = {"agent": agent, "record": record, "reason": reason}
    _change(cli, "lift", "may return:", params | {"passphrase": cli.passphrase(options)})
