"""``roost forget``: erasing, for good and everywhere."""

from __future__ import annotations

from typing import Any

import click

from cli.context import FAILED, Cli, RoostCommand, agent_argument, pass_cli
from cli.output import Span, dim
from cli.text import flat
from keys.errors import UsageError


@click.command(cls=RoostCommand)
@agent_argument
@click.argument("record", required=False)
@click.option("--reason", metavar="R", help="Why; it is kept.")
@click.option(
    "--where", metavar="KEY=VALUE", help="All with tag=T, source=S, session=ID, entity=ID."
)
@click.option("--with-sources", is_flag=True, help="Also the memories it was made from.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option("--status", "only_status", is_flag=True, help="Which peers have erased it.")
@pass_cli
def forget(
    cli: Cli,
    /,
    agent: str,
    record: str | None,
    reason: str | None,
    **options: Any,
) -> int:
    """Erase a memory on every node, for good.

    What was derived from it goes with it, and so does what holds its words. Its value is refused
    from then on. Ends with 1 when something is left.
    """
    where = _condition(options["where"])
    if (record is None) == (where is None):
        raise UsageError("give either RECORD or --where KEY=VALUE", hint="roost forget --help")
    target: dict[str, Any] = {"agent": agent} | ({"record": record} if where is None else where)
    if options["only_status"]:
        return _show_receipts(cli, target)
    if reason is None:
        raise UsageError("forget needs a --reason")
    flags = {key: options[key] for key in ("with_sources", "dry_run")}
    result = cli.call("forget", **target, reason=reason, **flags)
    cli.output.result(result, lambda: _show_forgotten(cli, result, dry_run=options["dry_run"]))
    return FAILED if result.get("left") else 0


def _condition(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    key, separator, value = where.partition("=")
    if key not in {"tag", "source", "session", "entity"} or not separator or not value:
        raise UsageError("--where takes tag=T, source=S, session=ID or entity=ID")
    return {"where": where}


def _show_forgotten(cli: Cli, result: dict[str, Any], *, dry_run: bool) -> None:
    out = cli.output
    if not any(result.get(key) for key in ("erased", "would_erase", "left")):
        out.line(dim("nothing to erase"))
        return
    out.line("would erase:" if dry_run else "erased:")
    labels = {_record_of(found): "derived from it" for found in result.get("derived", [])}
    labels |= {_record_of(found): "holds the words" for found in result.get("holders", [])}
    labels |= {_record_of(found): "its source" for found in result.get("sources", [])}
    done = [_record_of(found) for found in result.get("would_erase" if dry_run else "erased", [])]
    for record in done:
        out.line("  ", record, dim(f"  {labels[record]}" if record in labels else ""))
    for record in sorted(labels.keys() - set(done)):
        out.line("  ", Span("stays: ", "yellow"), record, dim(f"  {labels[record]}"))
    for record in result.get("left", []):
        out.line(Span("  left: ", "yellow"), _record_of(record))
    _receipt_lines(cli, result)


def _show_receipts(cli: Cli, target: dict[str, Any]) -> int:
    if "record" not in target:
        raise UsageError("--status is about one RECORD")
    result = cli.call("forget.status", **target)
    cli.output.result(result, lambda: _receipt_lines(cli, result))
    return 0


def _receipt_lines(cli: Cli, result: dict[str, Any]) -> None:
    for receipt in result.get("receipts", []):
        cli.output.line(dim("  receipt  "), flat(receipt))


def _record_of(found: object) -> str:
    return str(found.get("record")) if isinstance(found, dict) else str(found)
