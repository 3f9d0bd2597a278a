"""The ``roost`` command: finds the command, runs it, and turns every failure into words and a code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 unreachable, 5 the home is held; 130 after
Ctrl-C, 141 when nobody reads the output any more. No failure shows a traceback, or text of a
memory, unless ``ROOST_DEBUG=1`` asks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from cli.catalog import CATALOG, Commands
from cli.context import Cli, RoostGroup
from cli.output import silence_stdout
from keys.errors import RoostError, UsageError

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
DEBUG_VARIABLE: Final = "ROOST_DEBUG"


class InterruptedByUserError(RoostError):
    """Somebody pressed Ctrl-C."""

    code = "interrupted"
    exit_code = INTERRUPTED


class InternalError(RoostError):
    """A fault of Roost itself."""

    code = "internal"


class RootGroup(RoostGroup):
    """``roost``: its commands come from the catalog, and so does what the help says of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = Commands()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that went away ends it before click makes that a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            silence_stdout()
            return BROKEN_PIPE

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by family, without loading them."""
        for family, listed in CATALOG.items():
            with formatter.section(family):
                formatter.write_dl([(name, found.purpose) for name, found in listed.items()])


@click.group(
    cls=RootGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A command's own help: roost COMMAND --help. To begin: roost init --name NAME",
)
@click.version_option(package_name="roost", message="roost %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Keep AI agents' memory on the machines you already have, without a server."""
    cli = context.ensure_object(Cli)
    if context.invoked_subcommand is None:
        if cli.output.json:
            raise UsageError("a command is missing", hint=_help_of(context))
        cli.output.script(context.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    cli = Cli()
    try:
        code = _run(cli, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    return code


def _run(cli: Cli, arguments: list[str]) -> int:
    try:
        result = root.main(arguments, prog_name="roost", standalone_mode=False, obj=cli)
    except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - the last border
        if os.environ.get(DEBUG_VARIABLE) == "1":
            sys.excepthook(type(exc), exc, exc.__traceback__)
        return _report(cli, arguments, as_error(exc))
    return result if isinstance(result, int) else 0


def _report(cli: Cli, arguments: list[str], error: RoostError) -> int:
    # The parser may have stopped before it came to --json.
    before_dashes = arguments[: arguments.index("--")] if "--" in arguments else arguments
    cli.output.json = cli.output.json or "--json" in before_dashes
    cli.output.error(error)
    return error.exit_code


def as_error(exc: BaseException) -> RoostError:
    """Any failure as an error that can be shown."""
    match exc:
        case RoostError():
            return exc
        case click.exceptions.NoArgsIsHelpError():
            return UsageError("a command is missing", hint=_commands_of(exc.ctx))
        case click.UsageError():
            return UsageError(_sentence(exc.format_message()), hint=_usage_hint(exc))
        case click.ClickException():
            return RoostError(_sentence(exc.format_message()))
        case KeyboardInterrupt() | click.Abort():
            return InterruptedByUserError("interrupted")
        case OSError() if exc.strerror:
            place = f": {os.fsdecode(exc.filename)}" if exc.filename is not None else ""
            return RoostError(f"{exc.strerror.lower()}{place}")
    return InternalError(
        f"a fault in Roost itself ({type(exc).__name__})",
        hint=f"{DEBUG_VARIABLE}=1 shows where; that may show text of memories",
    )


def _usage_hint(exc: click.UsageError) -> str:
    if isinstance(exc, click.NoSuchOption) and exc.option_name[:1] == "-":
        return f"{_help_of(exc.ctx)} (text that begins with a hyphen goes after --)"
    return _help_of(exc.ctx)


def _help_of(context: click.Context | None) -> str:
    return f"{context.command_path if context else 'roost'} --help"


def _commands_of(context: click.Context) -> str:
    group = context.command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    return "one of: " + ", ".join(f"{context.command_path} {name}" for name in names)


def _sentence(text: str) -> str:
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:]


if __name__ == "__main__":
    sys.exit(main())
