"""What the commands take from the node, each loaded when it is called and not before.

A command that reaches a running node through its socket loads none of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

Result = dict[str, Any]


def run_verb(home: Path, verb: str, params: Result) -> Result:
    """Run one verb in this process, which holds the home meanwhile."""
    return cast("Result", importlib.import_module("node.offline").run_verb(home, verb, params))


def ensure_running(home: Path) -> None:
    """Start a node in the background where none runs, and wait until it answers."""
    importlib.import_module("node.background").ensure(home)


def init_home(
    home: Path, *, name: str, owner: str | None, recovery: bool, passphrase: str
) -> Result:
    """Make a home with a device and an owner."""
    setup = importlib.import_module("node.setup")
    found = setup.init_home(home, name=name, owner=owner, recovery=recovery, passphrase=passphrase)
    return cast("Result", found)


def serve_forever(home: Path, options: dict[str, Any], on_ready: Callable[[Result], None]) -> int:
    """Run a node until it is stopped; its exit code."""
    app = importlib.import_module("node.app")
    return cast("int", app.serve_forever(home, app.UpOptions(**options), on_ready))


def run_demo(say: Callable[[str], None]) -> Result:
    """Two nodes on this machine that share a memory, and forget it."""
    return cast("Result", importlib.import_module("node.demo").run_demo(say))
