"""What a device believes against the rules written out slowly (tests.reference).

Devices that are all wrong in the same way are equal; this is what tells.
"""

from __future__ import annotations

from crdt.entry import decode_header
from keys import codec
from memory.store import AgentStore
from tests.reference.compare import _against, _columns, _entries, rows_of
from tests.reference.fold import Fold
from tests.reference.places import Held
from tests.reference.states import believe


def fold_of(store: AgentStore) -> Fold:
    """The reference fold over what a store holds."""
    rows = store.connection.execute("SELECT header, payload FROM entry ORDER BY id").fetchall()
    held = [Held(decode_header(header), payload) for header, payload in rows]
    for header, payload, opening in store.connection.execute(
        "SELECT header, payload, opening FROM tombstone WHERE chained = 0 ORDER BY hash"
    ):
        held.append(Held(decode_header(header), payload, codec.decode_small(opening)[1]))
    return Fold(store.agent, held, store.statements(), store.keys)


def differences(store: AgentStore) -> list[str]:
    """What the store believes and the reference does not, in words."""
    fold = fold_of(store)
    expected = {record: _columns(shown) for record, shown in believe(fold).items()}
    return [*_against(expected, rows_of(store)), *_entries(fold, store)]
