"""What every command shares: the home, the session, the output, and the building blocks of options.

``--json`` and ``--home`` are options of every command and every group, so that they work in either
position. What a help text does not need is loaded when it is used; nothing here loads the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cli.output import Output
from keys.errors import RoostError
from node.paths import resolve_home

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cli.session import Session


class Cli:
    """One invocation of ``roost``."""

    def __init__(self) -> None:
        self.home_option: str | None = None
        self.output = Output()

    @cached_property
    def home(self) -> Path:
        """The home that the command is about."""
        return resolve_home(self.home_option)

    @cached_property
    def session(self) -> Session:
        """How the command reaches its node."""
        from cli.session import Session

        return Session(self.home)

    def call(self, verb: str, **params: object) -> dict[str, Any]:
        """The result of one verb; parameters that were not given are left out."""
        return self.session.call(verb, given(params))

    def passphrase(self, params: Mapping[str, object]) -> str:
        """The owner's passphrase, for what only a person may do."""
        from cli.passphrase import read_passphrase

        return read_passphrase(_file_option(params), self.output)

    def new_passphrase(self, params: Mapping[str, object]) -> str:
        """A passphrase for an owner key that is made now."""
        from cli.passphrase import new_passphrase

        return new_passphrase(_file_option(params), self.output)

    def passphrase_if_given(self, params: Mapping[str, object]) -> str | None:
        """The passphrase where a file holds it."""
        from cli.passphrase import given_passphrase

        return given_passphrase(_file_option(params), self.output)


pass_cli: Final = click.make_pass_decorator(Cli)

_COMPLETION_TIMEOUT_S: Final = 2.0
FAILED: Final = RoostError.exit_code


def given(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters of a verb without those that were not given; tuples become lists."""
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in params.items()}
    return {k: v for k, v in listed.items() if v is not None and k != "passphrase_file"}


class RoostCommand(click.Command):
    """A command with the options that every command has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += common_options()


class RoostGroup(click.Group):
    """A group of such commands."""

    command_class = RoostCommand
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += common_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which they are defined."""
        return list(self.commands)


def common_options() -> list[click.Parameter]:
    """``--home`` and ``--json``."""
    return [
        click.Option(
            ["--home"],
            metavar="DIR",
            expose_value=False,
            is_eager=True,
            callback=_set_home,
            type=click.Path(),
            help="The node's data directory (else $ROOST_HOME, else the account's own).",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_set_json,
            help="Results and errors as JSON.",
        ),
    ]


def _set_home(context: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Cli).home_option = value


def _set_json(context: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Cli).output.json = True


def _file_option(params: Mapping[str, object]) -> str | None:
    found = params.get("passphrase_file")
    return found if isinstance(found, str) else None


def _complete_agent(
    context: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of agents, as long as a running node can be asked for them."""
    from click.shell_completion import CompletionItem

    session = context.ensure_object(Cli).session
    try:
        if not session.is_running():
            return []
        agents = session.call("agent.list", {}, _COMPLETION_TIMEOUT_S)["agents"]
    except RoostError:
        return []
    names = (str(agent.get("name")) for agent in agents)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


agent_argument: Final = click.argument("agent", shell_complete=_complete_agent)
record_argument: Final = click.argument("record")
reason_option: Final = click.option("--reason", required=True, metavar="R", help="Why; it is kept.")
redact_option: Final = click.option(
    "--redact", is_flag=True, default=None, help="Replace secrets by a marker instead of refusing."
)
passphrase_option: Final = click.option(
    "--passphrase-file",
    metavar="FILE",
    type=click.Path(),
    help="Read the owner's passphrase from here (else $ROOST_PASSPHRASE_FILE, else it is asked).",
)
