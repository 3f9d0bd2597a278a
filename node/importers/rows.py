"""What every reader yields: a row that can be imported, or a problem with its place in the file.

A row is a JSON object of its own with ``line``, its number for messages: the line of a file that
has lines, else the count of items so far, from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One item that cannot be imported, and why; holds no text of a memory."""

    line: int
    message: str
    item: str | None = None

    def as_dict(self) -> dict[str, object]:
        """The problem as ``--json`` lists it."""
        place: dict[str, object] = {"line": self.line}
        if self.item is not None:
            place["item"] = self.item
        return place | {"code": "malformed", "message": self.message}
