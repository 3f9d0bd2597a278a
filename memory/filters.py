"""Which records a reader asks for, as conditions of SQL: filters are in the query, not after it.

Times are microseconds UTC; ``now_us`` is this node's clock, and only expiry and the present look
at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from keys.errors import UsageError
from keys.ids import RecordId
from memory.scope import Scope
from memory.shapes import COMMON_KINDS, KINDS, PINNED

STATES: Final = (
    "proposed",
    "new",
    "current",
    "deprecated",
    "superseded",
    "withheld",
    "returning",
    "duplicate",
    "expired",
    "erased",
)

# A duplicate stands in for its canonical record once that has expired.
LIVE: Final = (
    "(r.live = 1 OR (r.duplicate IS NOT NULL AND r.state IN ('new', 'current') AND EXISTS"
    " (SELECT 1 FROM record AS c WHERE c.record = r.duplicate AND c.expires <= :now)))"
    " AND (r.expires IS NULL OR r.expires > :now)"
    " AND r.kind <> 'verdict'"  # what a keeper thinks of a memory is no memory
)


# Turns, summaries and the diary of another channel are not there for a scope with a channel.
IN_CHANNEL: Final = (
    "r.n NOT IN (SELECT n FROM named WHERE what = 'channel' AND value <> :in_channel)"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reader asks to be left with; empty means any."""

    kinds: Sequence[str] = ()
    tags: Sequence[str] = ()
    states: Sequence[str] = ()
    layer: str | None = None
    source: str | None = None
    session: str | None = None
    owner: RecordId | None = None  # parts of this record
    name: str | None = None  # as names are compared
    channel: str | None = None
    category: str | None = None
    pinned: bool = False  # those alone that a person pinned
    since_us: int | None = None
    until_us: int | None = None
    at_us: int | None = None
    as_of_us: int | None = None


def conditions(
    filters: Filters, scope: Scope, now_us: int, *, readers: bool = False
) -> tuple[str, dict[str, Any], str]:
    """The condition, its values, and what ``record AS r`` is joined with.

    Readers see live records alone: a scope without every state, or where ``readers`` says so.
    Raises ``UsageError``.
    """
    readers = readers or not scope.every_state
    parts: list[str] = []
    values: dict[str, Any] = {"now": now_us}
    join = ""
    if filters.as_of_us is not None:
        join = (
            "JOIN version AS v ON v.n = r.n AND v.version = (SELECT max(version) FROM version"
            " WHERE n = r.n AND time_ms * 1000 <= :as_of)"
        )
        values["as_of"] = filters.as_of_us
    if readers and filters.as_of_us is not None:
        parts.append(
            "v.state IN ('new', 'current')"
            " AND r.state NOT IN ('proposed', 'returning', 'withheld', 'erased')"
            " AND r.duplicate IS NULL AND (r.expires IS NULL OR r.expires > :as_of)"
        )
    elif readers:
        parts.append(LIVE)
    if readers or filters.at_us is not None:
        at_us = filters.at_us
        parts.append("(r.valid_to IS NULL OR r.valid_to > :at)")
        values["at"] = filters.as_of_us or now_us if at_us is None else at_us
        if at_us is not None:
            parts.append("(r.valid_from IS NULL OR r.valid_from <= :at)")
    if scope.channel is not None:
        parts.append(IN_CHANNEL)
        values["in_channel"] = scope.channel
    _columns(parts, values, filters)
    _kinds(parts, values, filters.kinds)
    for i, tag in enumerate(filters.tags):
        parts.append(f"EXISTS (SELECT 1 FROM tag WHERE tag.n = r.n AND tag.tag = :tag{i})")  # noqa: S608
        values[f"tag{i}"] = tag
    if filters.states:
        _states(parts, values, filters.states)
    return " AND ".join(parts) or "1", values, join


def _columns(parts: list[str], values: dict[str, Any], filters: Filters) -> None:
    for column, value in (
        ("layer", filters.layer),
        ("source", filters.source),
        ("session", filters.session),
        ("category", filters.category),
    ):
        if value is not None:
            parts.append(f"r.{column} = :{column}")
            values[column] = value
    if filters.owner is not None:
        parts.append("r.n IN (SELECT n FROM link WHERE target = :owner AND what = 'owner')")
        values["owner"] = bytes(filters.owner)
    pinned = PINNED if filters.pinned else None
    asked = (("name", filters.name), ("channel", filters.channel), ("pinned", pinned))
    for what, value in asked:
        if value is not None:
            parts.append(
                f"r.n IN (SELECT n FROM named WHERE what = '{what}'"  # noqa: S608 - constants
                f" AND value = :named_{what})"
            )
            values[f"named_{what}"] = value
    if filters.since_us is not None:
        parts.append("r.created_ms * 1000 >= :since")
        values["since"] = filters.since_us
    if filters.until_us is not None:
        parts.append("r.created_ms * 1000 < :until")
        values["until"] = filters.until_us


def _kinds(parts: list[str], values: dict[str, Any], kinds: Sequence[str]) -> None:
    """Kinds that are few are found by their list; the others are read through."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"no kind {unknown[0][:32]!r}", hint="one of " + ", ".join(KINDS))
    if tuple(kinds) == ("observation",):  # as the index of layers says it
        parts.append("r.kind = 'observation'")
        return
    if not kinds or not COMMON_KINDS.isdisjoint(kinds):
        _listed(parts, values, "r.kind", "kind", kinds)
        return
    few: list[str] = []
    _listed(few, values, "value", "kind", kinds)
    parts.append(f"r.n IN (SELECT n FROM named WHERE what = 'kind' AND {few[0]})")  # noqa: S608


def _listed(
    parts: list[str], values: dict[str, Any], column: str, name: str, wanted: Sequence[str]
) -> None:
    if wanted:
        names = [f"{name}{i}" for i in range(len(wanted))]
        parts.append(f"{column} IN ({', '.join(':' + n for n in names)})")
        values.update(zip(names, wanted, strict=True))


def _states(parts: list[str], values: dict[str, Any], states: Sequence[str]) -> None:
    unknown = [s for s in states if s not in STATES]
    if unknown:
        raise UsageError(f"no state {unknown[0]!r}", hint="one of " + ", ".join(STATES))
    state = (
        "CASE WHEN r.state NOT IN ('new', 'current') THEN r.state"
        " WHEN r.expires <= :now THEN 'expired'"
        " WHEN r.duplicate IS NOT NULL THEN 'duplicate' ELSE r.state END"
    )
    _listed(parts, values, state, "state", states)
