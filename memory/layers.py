"""The seven layers of an agent: how long memories stay in one, and what each may cost.

They are defaults until somebody changes one (R10: absence means the default); then a record whose
id every device derives from the layer's name overrides them. The table stands in docs/layers.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crdt.entry import Via, derived_id
from crdt.payload import Op, Scalar, put
from keys.errors import UsageError
from keys.ids import AgentId, RecordId
from memory.authoring import Author
from memory.query import Filters, list_records
from memory.rows import LAYERS
from memory.scope import Scope
from memory.store import AgentStore

HOUR_S: Final = 3_600
DAY_S: Final = 24 * HOUR_S
YEAR_S: Final = 365 * DAY_S
TOKENS_MAX: Final = 1_000_000
CRON_CHARS_MAX: Final = 128


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. Crons have five fields and are in this device's zone; empty: never by itself.

    ``min_age_s``: a review leaves younger memories alone. ``budget``: tokens in a context block.
    """

    record: RecordId
    name: str
    review_cron: str
    intake_cron: str
    min_age_s: int
    budget: int
    changed: bool = False


# name: (review, intake, minimum age, budget)
_DEFAULTS: Final[Mapping[str, tuple[str, str, int, int]]] = {
    "day": ("0 */2 * * *", "0 * * * *", HOUR_S, 4_096),
    "week": ("30 3 * * *", "", DAY_S, 4_096),
    "month": ("0 4 * * 0", "", 7 * DAY_S, 8_192),
    "year": ("30 4 1 * *", "", 30 * DAY_S, 8_192),
    "decade": ("0 5 2 1 *", "", YEAR_S, 12_288),
    "century": ("30 5 3 1 *", "", 5 * YEAR_S, 12_288),
    "millennium": ("", "", 10 * YEAR_S, 16_384),
}
assert tuple(_DEFAULTS) == LAYERS


def layer_id(agent: AgentId, name: str) -> RecordId:
    """The id of a layer's record: the same on every device."""
    return derived_id(agent, "layer", name.encode())


def layers(store: AgentStore, scope: Scope, now_us: int) -> list[Layer]:
    """The seven layers from the youngest to the oldest, as they are set."""
    page = list_records(
        store, scope, Filters(kinds=("layer",)), limit=100, cursor=None, now_us=now_us
    )
    fields = {bytes(s.record): s.detail.get("fields", {}) for s in page.records}
    out = []
    for name, default in _DEFAULTS.items():
        record = layer_id(store.agent, name)
        held = fields.get(bytes(record))
        out.append(_layer(record, name, default, held))
    return out


def _layer(
    record: RecordId,
    name: str,
    default: tuple[str, str, int, int],
    held: Mapping[str, Scalar] | None,
) -> Layer:
    given = held or {}
    review, intake = given.get("review_cron"), given.get("intake_cron")
    age, budget = given.get("min_age_s"), given.get("budget")
    return Layer(
        record,
        name,
        review if isinstance(review, str) and is_cron(review) else default[0],
        intake if isinstance(intake, str) and is_cron(intake) else default[1],
        age if type(age) is int and 0 <= age <= 1000 * YEAR_S else default[2],
        budget if type(budget) is int and 0 <= budget <= TOKENS_MAX else default[3],
        changed=held is not None,
    )


def is_cron(text: str) -> bool:
    """Whether a text looks like five fields of a cron line, or is empty."""
    fields = text.split()
    return not fields or (
        len(text) <= CRON_CHARS_MAX
        and len(fields) == 5
        and all(c.isalnum() or c in "*/,-" for field in fields for c in field)
    )


def set_layer(
    author: Author, name: str, changes: Mapping[str, str | int], via: Via, now_us: int
) -> None:
    """Change some of ``review_cron``, ``intake_cron``, ``min_age_s``, ``budget`` of a layer.

    Raises ``UsageError``.
    """
    if name not in LAYERS:
        raise UsageError(f"no layer {name[:32]!r}", hint="one of " + ", ".join(LAYERS))
    if not changes:
        raise UsageError("nothing to change", hint="--budget, --min-age, --review, --intake")
    store = author.store
    for key in ("review_cron", "intake_cron"):
        if key in changes and not is_cron(str(changes[key])):
            raise UsageError("a cron line has five fields: minute hour day month weekday")
    for key, most in (("min_age_s", 1000 * YEAR_S), ("budget", TOKENS_MAX)):
        if key in changes and not 0 <= int(changes[key]) <= most:
            raise UsageError(f"{key} is from 0 to {most}")
    record = layer_id(store.agent, name)
    exists = store.folder.tables.old(record).n is not None
    with author.commit(via, now_us) as commit:
        if not exists:
            commit.create_derived(record, _creation(name))
    with author.commit(via, now_us) as commit:
        commit.edit(record, [put(f"field.{key}", value) for key, value in changes.items()])


def _creation(name: str) -> list[Op]:
    """The full set of keys with the defaults, so that two creations are one (DESIGN.md §4)."""
    review, intake, age, budget = _DEFAULTS[name]
    ops = [
        put("kind", "layer"),
        put("body.key", name.encode()),
        put("body.name", name),
        put("body.provenance", "user"),
        put("field.review_cron", review),
        put("field.intake_cron", intake),
        put("field.min_age_s", age),
        put("field.budget", budget),
    ]
    return sorted(ops, key=lambda op: op.key)
