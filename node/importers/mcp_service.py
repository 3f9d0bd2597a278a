"""mcp-memory-service: its JSON export (``export_metadata``, ``memories``) and its SQLite file.

A memory is an observation with its tags, its type as one more tag, its time and, as the place in
its source, its content hash. What was deleted there stays in the SQLite file with ``deleted_at``:
it comes in as retired, so that the value does not return by another way.

The SQLite file is not trusted: opened read-only and immutable, schema untrusted, views and triggers
never run (only a real table is read), checked first, its values bounded. What is still in a
write-ahead log beside it is not read: stop the other program first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from keys.errors import UsageError
from memory.foreign import foreign_rows
from memory.notes import clean
from node.importers.opening import SQLITE, plain_file, read_json
from node.importers.rows import Problem, Row, moment_of, source_of, tags_of

_WHAT = "an export of mcp-memory-service"
_COLUMNS = ("content_hash", "content", "tags", "memory_type", "created_at", "deleted_at")


def read_mcp_service(path: Path) -> Iterator[Row | Problem]:
    """The rows of the JSON export or the SQLite file; raises ``UsageError``."""
    with plain_file(path) as file:
        is_sqlite = file.read(len(SQLITE)) == SQLITE
    if is_sqlite:
        items: Iterator[Mapping[str, object]] = foreign_rows(path, "memories", _COLUMNS)
    else:
        items = _json_items(path)
    for line, item in enumerate(items, 1):
        yield from _memory(path.name, line, item)


def _json_items(path: Path) -> Iterator[Mapping[str, object]]:
    whole = read_json(path, _WHAT)
    memories = whole.get("memories") if isinstance(whole, dict) else None
    if not isinstance(memories, list):
        raise UsageError(f"not {_WHAT}: no list of memories")
    for item in memories:
        yield item if isinstance(item, dict) else {}


def _memory(file: str, line: int, item: Mapping[str, object]) -> Iterator[Row | Problem]:
    text, own_id = item.get("content"), item.get("content_hash")
    place = own_id if isinstance(own_id, str) and own_id else str(line)
    if not isinstance(text, str) or not text.strip():
        yield Problem(line, "content is no text", f"[{line - 1}]")
        return
    row: Row = {
        "line": line,
        "text": clean(text),
        "tags": tags_of(item.get("tags"), item.get("memory_type")),
        "source": source_of(file, place),
        "provenance": "import",
    }
    moment = moment_of(item.get("created_at"))
    if moment is None:
        yield Problem(line, "created_at is no time; it is left out", f"[{line - 1}]", "no_time")
    else:
        row["recorded_at"] = moment
    if item.get("deleted_at") is not None:
        row["state"] = "deprecated"
    yield row
