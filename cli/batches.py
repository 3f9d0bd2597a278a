"""Rows in calls of at most 500, each one commit, none larger than a call may be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from keys.errors import RoostError
from keys.limits import BATCH_RECORDS_MAX
from node.importers.rows import Problem, Row

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024  # a longer row goes alone


@dataclass(slots=True)
class Totals:
    """What all calls together did: numbers added up, lists joined."""

    numbers: dict[str, int]
    lists: dict[str, list[Any]]
    done: int = field(default=0)  # the line up to which everything was dealt with

    def add(self, result: dict[str, Any]) -> None:
        """Count one call's result."""
        for key in self.numbers:
            self.numbers[key] += int(result.get(key, 0))
        for key, found in self.lists.items():
            found += result.get(key, [])

    def as_dict(self) -> dict[str, Any]:
        """Numbers first, lists after, in the order they were named."""
        return self.numbers | self.lists


def send(
    rows: Iterable[Row | Problem],
    totals: Totals,
    problems: list[Any],
    call: Callable[[list[Row]], dict[str, Any]],
) -> None:
    """Send all rows, batch by batch; what is no row goes to ``problems``, in its place.

    When a call fails, the error says what was written before it.
    """
    for batch in batches(rows, problems):
        try:
            totals.add(call(batch))
        except RoostError as exc:
            if totals.done:
                exc.details |= totals.numbers | {"done_to_line": totals.done}
                exc.hint = f"everything up to line {totals.done} is done; go on from there"
            raise
        totals.done = batch[-1]["line"]


def batches(rows: Iterable[Row | Problem], problems: list[Any]) -> Iterator[list[Row]]:
    """The rows in lists that fit one call."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        if isinstance(row, Problem):
            problems.append(row.as_dict())
            continue
        row_size = len(json.dumps(row, ensure_ascii=False).encode())
        if batch and (len(batch) == BATCH_RECORDS_MAX or size + row_size > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row_size
    if batch:
        yield batch
