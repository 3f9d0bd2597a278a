"""How an agent of the tests begins, and where one of its stores stands."""

from __future__ import annotations

from collections.abc import Collection

from crdt.fingerprint import FingerprintKey
from keys.signing import OwnerKey
from keys.statements import Statement, sign
from memory.store import AgentStore


def replace_key(found: Statement, owner: OwnerKey, key: FingerprintKey) -> Statement:
    """The founding statement with the commitment to a fingerprint key that tests hold."""
    return sign(owner, "found", found.body | {"key": key.commitment}, agent=b"", after=[])


def position_of(store: AgentStore, keys: Collection[FingerprintKey]) -> tuple[object, ...]:
    """What no longer changes once everything was pulled."""
    return (
        store.vector_digest(),
        store.statements_digest(),
        len(keys),
        len(store.wants(9)),
    )
