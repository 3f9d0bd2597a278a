"""What the commands take from the node, each loaded when it is called and not before.

A command that reaches a running node through its socket loads none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def run_verb(home: Path, verb: str, params: Result) -> Result:
    """Run one verb in this process, which holds the home meanwhile."""
    from node.offline import run_verb as run

    return run(home, verb, params)


def ensure_running(home: Path) -> None:
    """Start a node in the background where none runs, and wait until it answers."""
    from node.background import ensure

    ensure(home)


def init_home(
    home: Path, *, name: str, owner: str | None, recovery: bool, passphrase: str
) -> Result:
    """Make a home with a device and an owner."""
    from node.setup import init_home as make

    return dict(make(home, name=name, owner=owner, recovery=recovery, passphrase=passphrase))


def serve_forever(home: Path, options: dict[str, Any], on_ready: Callable[[Result], None]) -> int:
    """Run a node until it is stopped; its exit code."""
    from node.app import UpOptions
    from node.app import serve_forever as serve

    return serve(home, UpOptions(**options), on_ready)


def serve_mcp(home: Path, agent: str, options: dict[str, Any]) -> None:
    """Serve an agent's memory over standard input and output until that ends."""
    from node.caller import Credential
    from node.mcp.stdio import serve_stdio

    serve_stdio(home, Credential(agent=agent, **options))


def mcp_config(home: Path, client: str, options: list[str]) -> str:
    """The settings that make a client start ``roost mcp``."""
    from node.mcp.config import command_of, config_for

    return config_for(client, command_of(home, options))


def run_demo(say: Callable[[str], None]) -> Result:
    """Two nodes on this machine that share a memory, and forget it."""
    from node.demo import run_demo as run

    return run(say)
