"""mem0: what ``get_all`` returns, ``{"results": [...]}``, or the list alone.

Each item has ``memory``; its ``id`` is the place in the source, ``created_at`` the record time,
``categories`` the tags, with whose memory it is as ``user:…``, ``agent:…``, ``run:…``. Older
versions add ``relations`` beside the results: those become entities and relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from keys.errors import UsageError
from memory.notes import clean
from node.importers.opening import read_json
from node.importers.rows import (
    Problem,
    Row,
    entity_row,
    moment_of,
    name_of,
    relation_row,
    source_of,
    tags_of,
)

_WHAT = "an export of mem0"
_WHOSE = (("user_id", "user:"), ("agent_id", "agent:"), ("run_id", "run:"))


def read_mem0(path: Path) -> Iterator[Row | Problem]:
    """The rows of such a file; raises ``UsageError`` where it is another."""
    whole = read_json(path, _WHAT)
    items = whole.get("results") if isinstance(whole, dict) else whole
    if not isinstance(items, list):
        raise UsageError(f"not {_WHAT}: no list of memories")
    for line, item in enumerate(items, 1):
        yield from _memory(path.name, line, item)
    related = whole.get("relations") if isinstance(whole, dict) else None
    if isinstance(related, list):
        yield from _relations(path.name, len(items), related)


def _memory(file: str, line: int, item: object) -> Iterator[Row | Problem]:
    place = f"[{line - 1}]"
    text = item.get("memory") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(text, str) or not text.strip():
        yield Problem(line, "memory is no text", place)
        return
    own_id = item.get("id")
    whose = [prefix + item[key] for key, prefix in _WHOSE if isinstance(item.get(key), str)]
    row: Row = {
        "line": line,
        "text": clean(text),
        "tags": tags_of(item.get("categories"), *whose),
        "source": source_of(file, own_id if isinstance(own_id, str) and own_id else line),
        "provenance": "import",
    }
    moment = moment_of(item.get("created_at"))
    if moment is not None:
        row["recorded_at"] = moment
    elif item.get("created_at") is not None:
        yield Problem(line, "created_at is no time with an offset; left out", place, "no_time")
    yield row


def _relations(file: str, line: int, related: list[object]) -> Iterator[Row | Problem]:
    known: set[str] = set()
    for place, item in enumerate(related):
        line += 1
        given = item if isinstance(item, dict) else {}
        start, name = name_of(given.get("source")), name_of(given.get("relationship"))
        end = name_of(given.get("target") or given.get("destination"))
        if start is None or name is None or end is None:
            yield Problem(line, "no relation", f"relations[{place}]")
            continue
        source = source_of(file, f"relations/{place}")
        for entity in (start, end):
            if entity not in known:
                known.add(entity)
                yield entity_row(line, entity, None, source)
        yield relation_row(line, start, name, end, source)
