"""The block that a person pastes into a client's settings, with absolute paths."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

NAME: Final = "roost"


def command_of(home: Path, options: list[str]) -> list[str]:
    """The command that serves an agent of ``home``, whatever directory or PATH a client has."""
    program = Path(sys.executable).absolute().with_name("roost")
    roost = [str(program)] if program.exists() else [sys.executable, "-P", "-m", "cli.main"]
    return [*roost, "--home", str(home.absolute()), "mcp", *options]


def config_for(client: str, command: list[str]) -> str:
    """The settings of a client; those that are not known here mostly take the usual form."""
    return _FORMS.get(client, _usual)(command)


def _usual(command: list[str]) -> str:
    return _json({"mcpServers": {NAME: {"command": command[0], "args": command[1:]}}})


def _servers(command: list[str]) -> str:
    entry: Mapping[str, Any] = {"type": "stdio", "command": command[0], "args": command[1:]}
    return _json({"servers": {NAME: entry}})


def _toml(command: list[str]) -> str:
    args = ", ".join(json.dumps(arg) for arg in command[1:])
    return f"[mcp_servers.{NAME}]\ncommand = {json.dumps(command[0])}\nargs = [{args}]"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2)


_FORMS: Final[Mapping[str, Callable[[list[str]], str]]] = {
    "vscode": _servers,
    "codex": _toml,
    "toml": _toml,
}
