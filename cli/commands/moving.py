"""Commands that move memories in and out as files: export, import."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, TypedDict

import click

from cli.batches import Totals, send
from cli.commands.memory import open_rows
from cli.context import (
    FAILED,
    Cli,
    RoostCommand,
    agent_argument,
    pass_cli,
    passphrase_option,
    redact_option,
)
from cli.output import Span, bold, pretty_path
from cli.text import count, json_line, word
from keys.durable import sync_directory
from keys.errors import UsageError
from node.importers.formats import FORMATS, LOCOMO, READERS, ROOST, detect
from node.importers.locomo import read_locomo
from node.importers.opening import plain_file
from node.importers.roost_jsonl import Manifest, read_export
from node.importers.rows import Problem, Row


class TextFile(TypedDict):
    """How JSON Lines are written."""

    encoding: str
    errors: str
    newline: str


SPOOL_BYTES: Final = 32 * 1024 * 1024  # a longer export waits in an unnamed file
# Half of a surrogate pair can only be inside a JSON string, where this is its escape.
_TEXT_FILE: Final = TextFile(encoding="utf-8", errors="backslashreplace", newline="\n")
_PROBLEMS_SHOWN: Final = 20


@click.command(cls=RoostCommand)
@agent_argument
@click.option("--out", metavar="FILE", type=click.Path(), help="Write here (else to the terminal).")
@pass_cli
def export_agent(cli: Cli, agent: str, out: str | None) -> None:
    """Write an agent's memory as JSON Lines.

    A manifest comes first, then one line for each record, whole: "roost import" takes it back. A
    file appears only when it is complete, readable by this account alone.
    """
    target = Path(out) if out not in (None, "-") else None
    folder = str(target.parent) if target is not None else None
    if folder is not None and not os.path.isdir(folder):
        raise UsageError(f"there is no directory {folder}")
    about = cli.call("agent.show", agent=agent)
    with SpooledTemporaryFile(
        SPOOL_BYTES, "w+", encoding="utf-8", newline="\n", dir=folder
    ) as body:
        records = _write_body(cli, agent, body)
        manifest = Manifest(str(about["agent"]), str(about["name"]), _now(), records)
        body.seek(0)
        if target is None:
            cli.output.raw(json_line(manifest.as_dict()))
            for line in body:
                cli.output.raw(line.removesuffix("\n"))
            return
        with _replaced(target) as file:
            file.write(json_line(manifest.as_dict()) + "\n")
            shutil.copyfileobj(body, file)
    result = manifest.as_dict() | {"out": str(target.absolute())}
    where = pretty_path(target)
    said = count(records, "record")
    cli.output.result(result, lambda: cli.output.line(f"{said} written to ", bold(where)))


def _write_body(cli: Cli, agent: str, body: IO[str]) -> int:
    """Every page of the export, into ``body``; how many lines there are."""
    records, cursor = 0, None
    with cli.output.progress("exporting") as advance:
        while True:
            page = cli.call("export.page", agent=agent, cursor=cursor)
            for line in page["lines"]:
                body.write(f"{line}\n")
            records += len(page["lines"])
            advance(len(page["lines"]))
            cursor = page.get("next")
            if cursor is None:
                return records


def _now() -> str:
    from node.clock import SystemClock
    from node.times import iso

    return str(iso(SystemClock().now_us()))


@contextmanager
def _replaced(target: Path) -> Iterator[IO[str]]:
    """A file that takes the place of ``target`` when everything is in it and on the disk."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", **_TEXT_FILE) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
        sync_directory(target.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("file", type=click.Path())
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Else told by the file.")
@click.option(
    "--conversation", metavar="N", help="Of a LoCoMo file only this: its sample id, or from 0."
)
@click.option("--approve", is_flag=True, help="You vouch for all of it: nothing waits for review.")
@redact_option
@passphrase_option
@pass_cli
def import_file(cli: Cli, /, agent: str, file: str, **options: Any) -> int:
    """Read memories from a file.

    roost is what "roost export" writes (- reads it from standard input), mcp-memory the JSON Lines
    of the MCP reference server, mcp-memory-service its export or its database, mem0 what get_all
    returns, markdown a file or a folder, locomo the data set of that name. Links and archives are
    refused. What is imported waits for your review, unless you --approve it. Ends with 1 when
    something could not be imported; everything else is.
    """
    conversation = options["conversation"]
    kind = options["kind"] or (ROOST if file == "-" else detect(Path(file)))
    if conversation is not None and kind != LOCOMO:
        raise UsageError("--conversation goes with --format locomo")
    passphrase = cli.passphrase(options) if options["approve"] else None
    with _reading(file, kind, conversation) as (rows, total):
        run = str(cli.call("import.begin", agent=agent, format=kind)["run"])
        totals = Totals({"imported": 0, "skipped": 0, "waiting": 0}, {"problems": []})
        problems: list[Any] = []
        with cli.output.progress("importing", total) as advance:
            later: list[Row] = []  # what names a row that has not come yet
            flags = {"approve": options["approve"], "redact": options["redact"], "run": run}

            def lines(batch: list[Row], *, last: bool = False) -> dict[str, Any]:
                params = {"rows": batch, "last": last} | flags
                done = cli.call("import.lines", agent=agent, **params, passphrase=passphrase)
                wanted = set(done.get("later", ()))
                later.extend(row for row in batch if row["line"] in wanted)
                advance(len(batch))
                return done

            send(rows, totals, problems, lines)
            while later:
                again, later[:] = list(later), []
                send(again, totals, problems, lines)
                if len(later) == len(again):
                    again, later[:] = list(later), []
                    send(again, totals, problems, partial(lines, last=True))
    found = sorted(totals.lists["problems"] + problems, key=lambda p: int(p.get("line") or 0))
    result = totals.numbers | {"run": run, "problems": found}
    cli.output.result(result, lambda: _show_import(cli, agent, result))
    return FAILED if found else 0


@contextmanager
def _reading(
    file: str, kind: str, conversation: str | None
) -> Iterator[tuple[Iterator[Row | Problem], int | None]]:
    """The rows of a file, and how many there are where that is known."""
    if file == "-":
        if kind != ROOST:
            raise UsageError("only an export of Roost is read from standard input: name the file")
        with open_rows(file) as stream:
            manifest, rows = read_export(stream)
            yield rows, manifest.records or None
    elif kind == ROOST:
        with plain_file(Path(file)) as stream:
            manifest, rows = read_export(stream)
            yield rows, manifest.records or None
    elif kind == LOCOMO:
        with plain_file(Path(file)):
            found = list(read_locomo(Path(file), conversation))
        yield iter(found), len(found) or None
    else:
        yield READERS[kind](Path(file)), None


def _show_import(cli: Cli, agent: str, result: dict[str, Any]) -> None:
    out = cli.output
    out.line(f"{result['imported']:,} imported, {result['skipped']:,} already here")
    problems = result["problems"]
    for problem in problems[:_PROBLEMS_SHOWN]:
        place = problem.get("item") or f"line {problem.get('line')}"
        out.line(Span(f"  {place}: ", "yellow"), str(problem.get("message")))
    if len(problems) > _PROBLEMS_SHOWN:
        out.line(f"  and {count(len(problems) - _PROBLEMS_SHOWN, 'problem')} more: see --json")
    if result["waiting"]:
        waiting = count(result["waiting"], "memory")
        out.next_steps(
            (f"roost review list {word(agent)}", f"look at the {waiting} that wait for you"),
            (f"roost review approve {word(agent)} --run {result['run']}", "or vouch for all of it"),
        )
