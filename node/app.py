"""``roost up``: a node of all its parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from node.assembly import assemble_node
from node.options import UpOptions
from node.process import Ready, serve

__all__ = ["UpOptions", "serve_forever"]


def serve_forever(path: Path, options: UpOptions, on_ready: Callable[[Ready], None]) -> int:
    """Serve the home at ``path`` until it is to stop; the exit code. See ``node.process.serve``."""
    return serve(path, options, on_ready, assemble_node)
