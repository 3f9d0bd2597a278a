"""The command line as a whole: positions of options, failures, exit codes, help."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli import main as main_module
from cli.catalog import CATALOG, Commands
from cli.main import as_error, main, root
from keys import errors
from keys.errors import RefusedError, RoostError
from tests.support.contract import CONTRACT
from tests.support.roost import Roost


def command(path: str) -> click.Command:
    """The command of this name."""
    found: click.Command = root
    for name in path.split():
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


def every_command(group: click.Group, before: str = "") -> Iterator[str]:
    for name, found in group.commands.items():
        path = f"{before} {name}".strip()
        if isinstance(found, click.Group):
            yield from every_command(found, path)
            if found.invoke_without_command:
                yield path
        else:
            yield path


@pytest.mark.parametrize(("path", "names"), CONTRACT.items())
def test_every_command_of_the_contract_has_its_options(path: str, names: str) -> None:
    """Scripts rely on the names."""
    params = command(path).params
    options = {name for param in params for name in param.opts if name.startswith("--")}
    arguments = [str(p.human_readable_name) for p in params if isinstance(p, click.Argument)]
    wanted = [name for name in names.split() if not name.startswith("--")]
    assert {name for name in names.split() if name.startswith("--")} <= options
    assert {"--home", "--json"} <= options
    assert wanted == [name.removesuffix("...") for name in arguments[: len(wanted)]]


def test_the_list_of_commands_here_is_whole() -> None:
    """A command that is added is added to this test."""
    assert sorted(CONTRACT) == sorted(every_command(root))


def test_the_catalog_says_what_the_commands_say() -> None:
    """The help of ``roost`` is written without loading them."""
    for listed in CATALOG.values():
        for name, found in listed.items():
            assert found.purpose == command(name).get_short_help_str(limit=100)


@pytest.mark.parametrize("path", [*CONTRACT, "", "pair", "agent"])
def test_every_command_explains_itself(
    path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Help needs no home, in the long and in the short form."""
    texts = []
    for option in ("--help", "-h"):
        assert main(["--home", str(tmp_path / "none"), *path.split(), option]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith(f"Usage: roost {path}".strip())
    assert not (tmp_path / "none").exists()


def test_roost_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """It is what somebody new types first."""
    assert main([]) == 0
    assert "To begin: roost init" in capsys.readouterr().out


def test_a_group_alone_names_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage, and the way out."""
    assert main(["pair"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "error: a command is missing\n"
        "hint: one of: roost pair open, roost pair join, roost pair list\n"
    )


@pytest.mark.parametrize(
    "arguments", [["--json", "status"], ["status", "--json"], ["--json", "status", "--json"]]
)
def test_json_works_in_either_position(roost: Roost, arguments: list[str]) -> None:
    """One JSON object, wherever the option stands."""
    roost.node.script["status"] = {"device": "d", "running": True}
    assert roost(*arguments).json == {"device": "d", "running": True}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "agent", "show", "muse"],
        ["agent", "--json", "show", "muse"],
        ["agent", "show", "--json", "muse"],
        ["agent", "show", "muse", "--json"],
    ],
)
def test_errors_are_json_in_every_position(roost: Roost, arguments: list[str]) -> None:
    """Also for the commands of a group."""
    roost.node.script["agent.show"] = RefusedError("not yours", hint="ask", agent="a1")
    said = roost(*arguments)
    assert (said.code, said.out) == (3, "")
    assert said.error == {"code": "refused", "message": "not yours", "agent": "a1", "hint": "ask"}


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_home_works_in_every_position(roost: Roost, tmp_path: Path, place: int) -> None:
    """As --json does."""
    roost.node.script["agent.list"] = {"agents": []}
    arguments = ["agent", "list"]
    arguments[min(place, 2) : min(place, 2)] = ["--home", str(roost.node.home)]
    assert main([*arguments, "--json"]) == 0


def test_the_home_comes_from_the_environment(roost: Roost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option wins; without both it is the account's own."""
    roost.node.script["peers"] = {"peers": []}
    monkeypatch.setenv("ROOST_HOME", str(roost.node.home))
    assert main(["peers"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "no-such-command"],
        ["--json", "remember", "muse", "--no-such-option"],
        ["remember", "--json"],
        ["search", "muse", "bees", "--limit", "0", "--json"],
        ["list", "muse", "--state", "asleep", "--json"],
        ["--json"],
        ["--json", "pair"],
    ],
)
def test_wrong_usage_is_2_in_either_form(roost: Roost, arguments: list[str]) -> None:
    """Whatever the parser came to before it stopped."""
    said = roost(*arguments)
    assert (said.code, said.error["code"]) == (2, "usage")
    plain = roost(*(a for a in arguments if a != "--json"))
    if plain.code != 0:  # roost alone shows its help
        assert plain.code == 2
        assert plain.err.startswith("error: ")


def test_json_after_a_double_dash_is_text(roost: Roost) -> None:
    """What follows it belongs to somebody's memory."""
    said = roost("show", "muse", "r", "--", "--json")
    assert said.code == 2
    assert said.err.startswith("error: ")


def test_text_that_begins_with_a_hyphen_is_explained(roost: Roost) -> None:
    """It looks like an option."""
    said = roost("remember", "muse", "-5 degrees")
    assert said.code == 2
    assert "goes after --" in said.err


def test_a_mistyped_command_is_guessed(roost: Roost) -> None:
    """The nearest name is offered."""
    assert "remember" in roost("remmber").err


def every_error() -> list[type[RoostError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [kind for kind in found if issubclass(kind, RoostError)]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_gives_its_exit_code_and_text(roost: Roost, kind: type[RoostError]) -> None:
    """Lower case, no full stop, the hint on a line of its own."""
    roost.node.script["digest"] = kind("it does not work.", hint="try roost doctor.")
    said = roost("digest", "muse")
    assert said.code == kind.exit_code
    assert said.out == ""
    assert said.err == "error: it does not work\nhint: try roost doctor\n"
    assert roost("digest", "muse", "--json").error["code"] == kind.code


def test_the_exit_codes_are_those_of_the_contract() -> None:
    """0 to 5 mean what a script expects."""
    codes = {kind.code: kind.exit_code for kind in every_error()}
    assert codes["failed"] == 1
    assert codes["usage"] == codes["ambiguous"] == 2
    assert codes["refused"] == codes["wrong_passphrase"] == 3
    assert codes["unreachable"] == 4
    assert codes["in_use"] == 5


def test_an_ambiguous_name_lists_the_candidates(roost: Roost) -> None:
    """So that the right one can be chosen."""
    found = [{"agent": "a1", "name": "muse"}, "a2"]
    roost.node.script["digest"] = errors.AmbiguousError("'a' fits 2 agents", candidates=found)
    assert roost("digest", "a").err == "error: 'a' fits 2 agents\n  a1  muse\n  a2\n"


def failing(monkeypatch: pytest.MonkeyPatch, exc: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise exc

    monkeypatch.setattr(main_module.root, "main", fail)


def test_a_fault_of_roost_itself_shows_no_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception may carry a memory."""
    monkeypatch.delenv("ROOST_DEBUG", raising=False)
    failing(monkeypatch, ValueError("secret memory"))
    assert main(["status"]) == 1
    said = capsys.readouterr()
    assert "secret" not in said.out + said.err
    assert "ValueError" in said.err
    assert "Traceback" not in said.err


def test_a_fault_shows_its_traceback_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For whoever mends it."""
    monkeypatch.setenv("ROOST_DEBUG", "1")
    failing(monkeypatch, ValueError("what it was"))
    assert main(["--json", "status"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("exc", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], exc: BaseException
) -> None:
    """As a shell reports it."""
    failing(monkeypatch, exc)
    assert main(["--json", "status"]) == 130
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "interrupted"


def test_a_failed_file_operation_names_the_file() -> None:
    """The system says what is wrong with it."""
    error = as_error(FileNotFoundError(2, "No such file or directory", "/tmp/x"))
    assert (error.message, error.exit_code) == ("no such file or directory: /tmp/x", 1)


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """One place says it."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("roost ")


def test_a_command_can_be_added_beside_the_catalog() -> None:
    """It is a mapping like any other."""
    commands = Commands()
    size = len(commands)
    commands["extra"] = command("status")
    assert (len(commands), commands["extra"]) == (size + 1, command("status"))
    del commands["extra"]
    assert "extra" not in commands
