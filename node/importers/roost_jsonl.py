"""Roost's own export: JSON Lines, a manifest and then one line for each record.

The manifest is ``{"roost": 1, "agent", "name", "exported_at", "records"}``. ``records`` counts the
lines that follow; a file with another count was cut short or edited, which is a problem but no
reason to leave out what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from keys.errors import UsageError
from node.importers.jsonl import read_objects
from node.importers.rows import Problem, Row

FORMAT: Final = 1
_KEY: Final = "roost"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first line of an export."""

    agent: str
    name: str
    exported_at: str
    records: int

    def as_dict(self) -> dict[str, object]:
        """The line as it is written."""
        return {
            _KEY: FORMAT,
            "agent": self.agent,
            "name": self.name,
            "exported_at": self.exported_at,
            "records": self.records,
        }


def read_export(stream: BinaryIO) -> tuple[Manifest, Iterator[Row | Problem]]:
    """The manifest and the rows after it; raises ``UsageError`` where the first line is none."""
    lines = read_objects(stream)
    manifest = _manifest(next(lines, None))
    return manifest, _rows(lines, manifest)


def _rows(
    lines: Iterator[tuple[int, Row] | Problem], manifest: Manifest
) -> Iterator[Row | Problem]:
    seen = last = 0
    for found in lines:
        seen += 1
        if isinstance(found, Problem):
            last = found.line
            yield found
        else:
            last, row = found
            yield row | {"line": last}
    if seen != manifest.records:
        message = f"the manifest says {manifest.records} records, the file has {seen}"
        yield Problem(last + 1, message)


def _manifest(found: tuple[int, Row] | Problem | None) -> Manifest:
    hint = "for another program's file name its format, as in --format locomo"
    if found is None:
        raise UsageError("the file is empty", hint=hint)
    if isinstance(found, Problem):
        raise UsageError(f"not an export of Roost: line {found.line}: {found.message}", hint=hint)
    line = found[1]
    version = line.get(_KEY)
    if type(version) is not int:
        raise UsageError("not an export of Roost: the first line is no manifest", hint=hint)
    if version != FORMAT:
        raise UsageError(
            f"the export has format {version}, this Roost reads format {FORMAT}",
            hint="import it with the Roost that wrote it, or a newer one",
        )
    records = line.get("records")
    texts = [line.get(key) for key in ("agent", "name", "exported_at")]
    if type(records) is not int or records < 0 or not all(isinstance(t, str) for t in texts):
        raise UsageError("the manifest of the export is incomplete", hint=hint)
    agent, name, exported_at = (str(text) for text in texts)
    return Manifest(agent, name, exported_at, records)
