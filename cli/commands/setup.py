"""Commands that begin something: a home, a running node, a demonstration, an owner come back."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any, Final

import click

from cli import backend
from cli.context import Cli, RoostCommand, RoostGroup, given, pass_cli, passphrase_option
from cli.output import Output, bold, dim, pretty_path
from cli.text import count
from keys.errors import RefusedError, UsageError
from keys.limits import RECOVERY_TEXT_CHARS_MAX

_CHALLENGE_TRIES: Final = 3
_SHELLS: Final = ("bash", "zsh", "fish")
_COMPLETION_HELP: Final = """Print the completion script of a shell.

\b
bash   roost completion bash > ~/.local/share/bash-completion/completions/roost
zsh    roost completion zsh > ~/.zfunc/_roost    (a directory in $fpath)
fish   roost completion fish > ~/.config/fish/completions/roost.fish
"""


@click.command(cls=RoostCommand)
@click.option("--name", required=True, metavar="NAME", help="What this device is called.")
@click.option("--owner", metavar="NAME", help="What you are called (else the device's name).")
@click.option("--no-recovery", is_flag=True, help="Make no recovery code.")
@passphrase_option
@pass_cli
def init(cli: Cli, /, name: str, owner: str | None, no_recovery: bool, **options: object) -> None:
    """Set up this machine as a node.

    Makes the home, the keys of this device and of its owner, and a recovery code: the one way back
    when every device of the owner is lost. The code is shown once.
    """
    if (cli.home / "node.db").exists():
        raise RefusedError(
            f"there is a node at {cli.home} already", hint="roost status; or name another --home"
        )
    passphrase = cli.new_passphrase(options)
    result = backend.init_home(
        cli.home, name=name, owner=owner, recovery=not no_recovery, passphrase=passphrase
    )
    cli.output.result(result, lambda: _show_init(cli, name, result))


def _show_init(cli: Cli, name: str, result: dict[str, Any]) -> None:
    out = cli.output
    out.line("Roost is set up in ", bold(pretty_path(cli.home)))
    out.fields([("device", f"{name}  {result['device']}"), ("owner", str(result["owner"]))])
    if code := result.get("recovery"):
        show_recovery_code(out, str(code))
    out.next_steps(
        ("roost agent create NAME", "begin an agent's memory"),
        ("roost up", "run the node, so that other devices can reach it"),
        ("roost pair open --mine", "add another device of yours"),
    )


def show_recovery_code(out: Output, code: str) -> None:
    """Show a new recovery code this once; a person is asked for two of its groups."""
    out.line()
    out.line("Recovery code. Write it on paper now: it is not shown again, and without any of")
    out.line("your devices it is the only way back.")
    out.line()
    out.line("    ", bold(code))
    if out.can_ask and out.on_terminal:
        _ask_back(out, code)


def _ask_back(out: Output, code: str) -> None:
    from keys.recovery import challenge, same_group

    out.line()
    for number, expected in challenge(code, random.SystemRandom()):
        for _ in range(_CHALLENGE_TRIES):
            if same_group(expected, out.ask(f"group {number} of the code:")):
                break
            out.note(f"that is not group {number}: read it from what you wrote down")
        else:
            out.note("not confirmed: compare what you wrote with the code above")
            return
    out.line("The code is written down right.")


@click.group(cls=RoostGroup)
def owner() -> None:
    """Get the owner's authority back."""


@owner.command("recover")
@click.option(
    "--code-file",
    metavar="FILE",
    type=click.Path(),
    help="Read the recovery code from here (else it is asked).",
)
@passphrase_option
@pass_cli
def owner_recover(cli: Cli, /, code_file: str | None, **options: object) -> None:
    """Give this device the owner's authority, with the recovery code.

    For when every device of the owner is lost, or the passphrase is. The passphrase that is asked
    for is a new one, for the owner's key on this device.
    """
    code = _recovery_code(cli, code_file)
    passphrase = cli.new_passphrase(options)
    result = cli.call("owner.recover", code=code, passphrase=passphrase)

    def show() -> None:
        agents = result.get("agents", [])
        cli.output.line("This device acts for owner ", bold(str(result["owner"])), " again")
        cli.output.line(f"  {count(len(agents), 'agent')} taken back")
        if new_code := result.get("recovery"):
            show_recovery_code(cli.output, str(new_code))
        cli.output.next_steps(("roost agent list", "see whose memory is here"))

    cli.output.result(result, show)


def _recovery_code(cli: Cli, code_file: str | None) -> str:
    if code_file is None:
        if not cli.output.can_ask:
            raise UsageError("the recovery code is missing", hint="give --code-file FILE")
        return cli.output.ask("recovery code:")
    try:
        with Path(code_file).open(encoding="utf-8") as file:
            return file.read(RECOVERY_TEXT_CHARS_MAX + 1).strip()
    except OSError as exc:
        raise UsageError(f"cannot read the code file: {exc.strerror}: {code_file}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"the code file is not UTF-8: {code_file}") from exc


@click.command(cls=RoostCommand)
@click.option("--listen", metavar="HOST:PORT", help="Where peers reach this node (port 7667).")
@click.option("--api", metavar="HOST:PORT", help="Where agents reach it, on this machine only.")
@click.option("--no-discovery", is_flag=True, help="Do not look for peers on the local network.")
@click.option("--no-scheduler", is_flag=True, help="Run no jobs.")
@click.option("--low-power", is_flag=True, help="No periodic multicast.")
@click.option("--background", is_flag=True, hidden=True, help="Make way, and end when idle.")
@click.option("--idle-stop", type=float, hidden=True, metavar="SECONDS")
@pass_cli
def up(cli: Cli, /, **options: Any) -> int:
    """Run the node here until it is stopped.

    Stays in the foreground. When it serves it prints one line; Ctrl-C or SIGTERM stops it. Port 0
    picks a free one.
    """

    def ready(event: dict[str, Any]) -> None:
        if cli.output.json:
            cli.output.event(event)
            return
        parts = [f"serving peers at {event['listen']}"]
        if event.get("api"):
            parts.append(f"agents at {event['api']}")
        cli.output.line(bold("ready"), f": {', '.join(parts)} ", dim("(Ctrl-C stops it)"))
        sys.stdout.flush()

    return backend.serve_forever(cli.home, given(options), ready)


@click.command(cls=RoostCommand)
@pass_cli
def demo(cli: Cli) -> None:
    """Watch two nodes share a memory, and forget it.

    Uses two homes of its own in a temporary directory and loopback only; yours is left alone.
    """
    result = backend.run_demo(cli.output.say)
    cli.output.result(result, lambda: None)


@click.command(cls=RoostCommand, help=_COMPLETION_HELP)
@click.argument("shell", type=click.Choice(_SHELLS))
@pass_cli
def completion(cli: Cli, shell: str) -> None:
    """The script that completes commands, options and names of agents."""
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(root, {}, "roost", "_ROOST_COMPLETE").source()
    cli.output.result({"shell": shell, "script": script}, lambda: cli.output.script(script))
