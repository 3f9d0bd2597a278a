"""Digests over vectors and statement sets: what the in-sync check compares (R8)."""

from __future__ import annotations

from collections.abc import Iterable

import keys.codec as codec
from crdt.log import Vector
from keys.ids import hash256


def encode_vector(vector: Vector) -> list[object]:
    """The canonical form of a vector: ``[[device, incarnation, [[seq, hash], ...]], ...]``."""
    return [
        [log.device, log.incarnation, [[tip.seq, tip.hash] for tip in sorted(tips)]]
        for log, tips in sorted(
            vector.items(), key=lambda item: (item[0].device, item[0].incarnation)
        )
    ]


def vector_digest(vector: Vector) -> bytes:
    """BLAKE2b-256 of the canonical vector."""
    return hash256(b"roost vector", codec.encode(encode_vector(vector)))


def statements_digest(ids: Iterable[bytes]) -> bytes:
    """BLAKE2b-256 of the sorted statement ids."""
    return hash256(b"roost statements", *sorted(ids))
