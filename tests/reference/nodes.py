"""Real stores that receive a ledger, and what they hold and believe, read back for comparison."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from functools import cache

from crdt.entry import PayloadKind
from keys.ids import AgentId
from memory.store import AgentStore
from tests.reference.fold import Fold
from tests.reference.ledger import Ledger
from tests.reference.places import Held

KEYS_MAX = 2


@cache
def _template() -> bytes:
    connection = sqlite3.connect(":memory:")
    AgentStore(connection, AgentId(bytes(32)))
    return connection.serialize()


def store_of(ledger: Ledger, keys: int = KEYS_MAX) -> AgentStore:
    """An empty store in memory, with the first of the agent's fingerprint keys."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(_template())
    return AgentStore(connection, ledger.agent, ledger.keys[:keys])


def node(ledger: Ledger, order: int) -> AgentStore:
    """A store that received everything in one order, keys included (R25)."""
    rng = random.Random(order)
    store = store_of(ledger, rng.choice((KEYS_MAX, KEYS_MAX, KEYS_MAX, 1, 0)))
    for delivery in ledger.deliveries(rng):
        if rng.random() < 0.1:
            store.set_keys(ledger.keys)
        for part in rng.sample(("statements", "runs", "ahead"), 3):
            if part == "statements" and delivery.statements:
                store.add_statements(delivery.statements)
            elif part == "runs" and delivery.runs:
                store.append_runs(delivery.runs, 1)
            elif part == "ahead" and delivery.ahead:
                store.add_ahead(delivery.ahead)
    store.set_keys(ledger.keys)
    return store


def exchange(stores: Sequence[AgentStore]) -> None:
    """R32: payloads that somebody has reach everybody who wants them."""
    moved = True
    while moved:
        moved = False
        for store in stores:
            for other in stores:
                if other is not store and (wants := store.wants(1000)):
                    moved |= store.add_payloads(other.payloads(wants), 1) > 0


def reference(ledger: Ledger, store: AgentStore) -> Fold:
    """The fold written out, over what a store holds."""
    present = dict(store.connection.execute("SELECT hash, payload FROM entry").fetchall())
    entries = {e.header.hash: e for c in ledger.commits for e in c.run.entries}
    held = [Held(e.header, present[h]) for h, e in entries.items() if h in present]
    for commit in ledger.commits:
        if commit.end in ledger.unchained:
            opening = ledger.of_log(commit.log)[0].run.entries[0].payload
            held += [
                Held(e.header, e.payload, opening)
                for e in commit.run.entries
                if e.header.payload_kind == PayloadKind.TOMBSTONE
            ]
    said = [s for s in ledger.statements if s.id not in ledger.absent]
    return Fold(ledger.agent, held, said, ledger.keys)
