"""Vectors of the Automerge changes that operations make."""

from __future__ import annotations

from collections.abc import Sequence

from crdt.document import RecordDocument
from crdt.entry import actor_id
from crdt.payload import Op, delete, put
from tests.vectors.cast import AGENT, LAPTOP, LOG, observation, salt
from tests.vectors.forms import shown
from tests.vectors.payloads import all_types
from tests.vectors.values import Suite, suite

Change = tuple[Sequence[int], list[Op]]
HISTORIES: tuple[tuple[str, list[Change]], ...] = (
    ("one creation of every type", [([], all_types())]),
    ("edits in a row", [
        ([], observation("one")),
        ([0], [put("field.layer", "week"), put("field.weight", 2.5)]),
        ([1], [delete("tag.vectors"), put("tag.new", b"12345678")]),
        ([2], [put("tag.vectors", b"abcdefgh")]),
    ]),
    ("concurrent puts, and a merge", [
        ([], observation("one")),
        ([0], [put("field.layer", "week")]),
        ([0], [put("field.layer", "month"), put("tag.both", b"00000000")]),
        ([1, 2], [put("field.weight", 3.0)]),
    ]),
    ("add wins over a concurrent remove", [
        ([], observation("one")),
        ([0], [delete("tag.vectors")]),
        ([0], [put("tag.vectors", b"abcdefgh")]),
    ]),
    ("two creations of one record", [([], observation("one")), ([], observation("two"))]),
)  # fmt: skip


def changes_suite() -> Suite:
    """Histories of one record: actors, change hashes, and what the document reads at the end."""
    return suite(
        "changes", "the Automerge changes that operations make", list(map(_story, HISTORIES))
    )


def _story(history: tuple[str, list[Change]]) -> Suite:
    name, steps = history
    document, made = RecordDocument(), list[bytes]()
    rows: list[Suite] = []
    for place, (deps, ops) in enumerate(steps):
        salted, seq = salt(f"{name} {place}"), place + 2
        actor = actor_id(AGENT, LOG, seq, salted)
        ordered = sorted(ops, key=lambda op: op.key.encode())
        change = document.apply(frozenset(made[d] for d in deps), actor, ordered)
        assert change is not None
        made.append(change)
        values = [[o.key, int(o.verb), int(o.type), o.value] for o in ordered]
        rows.append({"seq": seq, "salt": salted.hex(), "actor": actor.hex(), "deps": list(deps)})
        rows[-1] |= {"ops": shown(values), "change": change.hex()}
    place_of = {"agent": AGENT.hex(), "device": LAPTOP.device.hex()}
    place_of["incarnation"] = LOG.incarnation.hex()
    return {"name": name, **place_of, "entries": rows, "values": shown(document.values())}
