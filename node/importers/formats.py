"""The formats that can be imported, and which of them a file has.

A format is told by what a file begins with; where that fits none, or more than one, the person has
to say (``--format``): a guess would be imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keys.errors import UsageError
from node.importers.markdown import SUFFIXES, read_markdown
from node.importers.mcp_memory import read_mcp_memory
from node.importers.mcp_service import read_mcp_service
from node.importers.mem0 import read_mem0
from node.importers.opening import HEAD_BYTES, SQLITE, plain_file
from node.importers.rows import Problem, Row

ROOST: Final = "roost"
LOCOMO: Final = "locomo"


@dataclass(frozen=True, slots=True)
class Head:
    """What a format is told by: the beginning of a file; a folder has none."""

    name: str
    is_folder: bool
    data: bytes

    @property
    def first_line(self) -> Mapping[str, object]:
        """The object on the first line; empty where there is none."""
        try:
            found = json.loads(self.data.partition(b"\n")[0])
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def begins(self, *signs: bytes) -> bool:
        """Whether the first sign after white space is one of these."""
        return self.data.lstrip()[:1] in signs

    def holds(self, *keys: bytes) -> bool:
        """Whether any of these stands in it as the key of an object."""
        return any(b'"' + key + b'"' in self.data for key in keys)


def _is_mem0(head: Head) -> bool:
    if head.begins(b"["):
        return head.holds(b"memory") or not head.holds(b"sample_id")
    return head.begins(b"{") and head.holds(b"results") and not head.holds(b"memories")


def _is_service(head: Head) -> bool:
    if head.data.startswith(SQLITE):
        return True
    return head.begins(b"{") and head.holds(b"memories") and head.holds(b"export_metadata")


_FITS: Final[Mapping[str, Callable[[Head], bool]]] = {
    ROOST: lambda head: "roost" in head.first_line,
    LOCOMO: lambda head: head.begins(b"[") and not head.holds(b"memory"),
    "mcp-memory": lambda head: head.first_line.get("type") in ("entity", "relation"),
    "mcp-memory-service": _is_service,
    "mem0": _is_mem0,
    "markdown": lambda head: head.is_folder or head.name.lower().endswith(SUFFIXES),
}
FORMATS: Final = tuple(_FITS)
READERS: Final[Mapping[str, Callable[[Path], Iterator[Row | Problem]]]] = {
    "mcp-memory": read_mcp_memory,
    "mcp-memory-service": read_mcp_service,
    "mem0": read_mem0,
    "markdown": read_markdown,
}


def detect(path: Path) -> str:
    """The format of a file or folder; raises ``UsageError`` where that is not clear."""
    if path.is_dir() and not path.is_symlink():
        head = Head(path.name, True, b"")
    else:
        with plain_file(path) as file:
            head = Head(path.name, False, file.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf"))
    fitting = [name for name, fits in _FITS.items() if fits(head)]
    if len(fitting) == 1:
        return fitting[0]
    what = "may have more than one format" if fitting else "has no format that is known"
    raise UsageError(
        f"{path.name} {what}",
        hint="name it: --format " + "|".join(fitting or FORMATS),
        candidates=fitting or list(FORMATS),
    )
