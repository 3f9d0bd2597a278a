"""Whether real stores agree with one another, with their own rebuilding, and with the reference."""

from __future__ import annotations

from collections.abc import Sequence

from memory.store import AgentStore
from tests.reference.fold import Fold
from tests.reference.ledger import Ledger
from tests.reference.nodes import exchange, reference
from tests.reference.states import Believed, believe

Columns = tuple[object, ...]


def differences(
    ledger: Ledger, stores: Sequence[AgentStore]
) -> tuple[list[str], Fold, dict[bytes, Believed]]:
    """What is not as it should be, in words; and what the reference says."""
    exchange(stores)
    for store in stores:
        store.add_ahead(ledger.ahead())
    first, found = stores[0], []
    if any(store.waiting_for_key for store in stores):
        found.append("a store waits for a key")
    digests = [store.digest() for store in stores]
    for store, digest in zip(stores, digests, strict=True):
        if digest != digests[0]:
            found += [f"stores differ: {line}" for line in _against(rows_of(first), rows_of(store))]
            found.append("stores differ: digest")
    before, after = stores[-1].rebuild()
    if before != after:
        found.append("rebuilding changes the digest")
        found += [f"rebuilding: {line}" for line in _against(rows_of(first), rows_of(stores[-1]))]
    fold = reference(ledger, first)
    believed = believe(fold)
    expected = {record: _columns(shown) for record, shown in believed.items()}
    found += [f"reference: {line}" for line in _against(expected, rows_of(first))]
    found += [f"reference: {line}" for line in _entries(fold, first)]
    return found, fold, believed


def rows_of(store: AgentStore) -> dict[bytes, Columns]:
    """The rows of a read model, those columns that the reference knows too."""
    tags: dict[int, list[str]] = {}
    for tag, number in store.connection.execute("SELECT tag, n FROM tag ORDER BY tag"):
        tags.setdefault(number, []).append(tag)
    return {
        record: (*columns, tags.get(number, []))
        for number, record, *columns in store.connection.execute(
            "SELECT n, record, state, own, duplicate, text, layer, weight, created_ms, changed_ms"
            " FROM record"
        )
    }


NAMES = ("state", "own", "duplicate", "text", "layer", "weight", "created", "changed", "tags")


def _columns(shown: Believed) -> Columns:
    gone = shown.own == "erased"
    layer, weight = shown.values.get("field.layer"), shown.values.get("field.weight")
    return (
        shown.state,
        shown.own,
        shown.duplicate,
        shown.text,
        "" if gone else layer or "day",
        0.0 if gone else weight if weight is not None else 1.0,
        shown.created_ms,
        shown.changed_ms,
        shown.tags,
    )


def _against(wanted: dict[bytes, Columns], got: dict[bytes, Columns]) -> list[str]:
    out = []
    for record in sorted(wanted.keys() | got.keys()):
        left, right = wanted.get(record), got.get(record)
        if left is None or right is None:
            out.append(f"record {record.hex()}: wanted {left}, got {right}")
        elif left != right:
            pairs = zip(NAMES, left, right, strict=True)
            parts = [f"{name} wanted {a!r}, got {b!r}" for name, a, b in pairs if a != b]
            out.append(f"record {record.hex()}: " + "; ".join(parts))
    return out


def _entries(fold: Fold, store: AgentStore) -> list[str]:
    out = []
    for entry, reason, time_ms in store.connection.execute(
        "SELECT hash, reason, time_ms FROM entry WHERE payload_kind NOT IN (0, 2)"
    ):
        if fold.reasons[entry] != reason:
            out.append(f"entry {entry.hex()[:6]}: wanted {fold.reasons[entry]}, got {reason}")
        if fold.times[entry] != time_ms:
            out.append(f"entry {entry.hex()[:6]}: wanted {fold.times[entry]} ms, got {time_ms}")
    return out
