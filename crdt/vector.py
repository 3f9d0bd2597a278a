"""Version vectors: their one canonical form, and the two digests of the in-sync check (R8).

1. The rows of a vector are ``[device, incarnation, [[seq, hash], …]]``, sorted by device and
   incarnation; the tips of a log are sorted, distinct and 1 to ``BRANCHES_MAX`` (R7).
2. Equal digests mean equal vectors, whatever order either was built in.
3. ``vector_of`` is the only maker of a ``Vector`` from outside bytes; it raises ``BadEncoding``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from crdt.entry import LogId
from crdt.log import Tip, Vector
from keys import codec
from keys.errors import BadEncoding
from keys.ids import DeviceId, EntryHash, Incarnation, hash256
from keys.limits import BRANCHES_MAX, LOGS_PER_AGENT_MAX, SEQ_MAX


def rows_of(vector: Vector) -> list[list[Any]]:
    """The canonical rows of ``vector``; logs without a tip are left out."""
    return [
        [
            bytes(log.device),
            bytes(log.incarnation),
            [[tip.seq, bytes(tip.hash)] for tip in sorted(set(tips))],
        ]
        for log, tips in sorted(vector.items(), key=_place)
        if tips
    ]


def vector_of(rows: object) -> Vector:
    """The vector whose canonical rows these are; raises ``BadEncoding`` for anything else."""
    if type(rows) is not list or len(rows) > LOGS_PER_AGENT_MAX:
        raise BadEncoding(f"a vector is a list of at most {LOGS_PER_AGENT_MAX} logs")
    vector: Vector = {}
    before = b""
    for row in rows:
        if type(row) is not list or len(row) != 3:
            raise BadEncoding("a log of a vector is [device, incarnation, tips]")
        log = LogId(DeviceId(row[0]), Incarnation(row[1]))
        place = log.device + log.incarnation
        if place <= before:
            raise BadEncoding("the logs of a vector are sorted and distinct")
        before = place
        vector[log] = _tips(row[2])
    return vector


def vector_digest(vector: Vector) -> bytes:
    """BLAKE2b-256 of the canonical rows: equal on two nodes iff they hold the same entries."""
    return hash256(codec.encode(rows_of(vector)))


def statements_digest(ids: Iterable[bytes]) -> bytes:
    """BLAKE2b-256 of the canonical list of the sorted, distinct statement ids."""
    return hash256(codec.encode([bytes(i) for i in sorted(set(ids))]))


def _place(item: tuple[LogId, list[Tip]]) -> bytes:
    return item[0].device + item[0].incarnation


def _tips(rows: object) -> list[Tip]:
    if type(rows) is not list or not 1 <= len(rows) <= BRANCHES_MAX:
        raise BadEncoding(f"a log of a vector has 1 to {BRANCHES_MAX} tips")
    tips = [_tip(row) for row in rows]
    if any(a >= b for a, b in pairwise(tips)):
        raise BadEncoding("the tips of a log are sorted and distinct")
    return tips


def _tip(row: object) -> Tip:
    if type(row) is not list or len(row) != 2:
        raise BadEncoding("a tip is [seq, hash]")
    seq, entry = row
    if type(seq) is not int or not 1 <= seq <= SEQ_MAX:
        raise BadEncoding(f"a seq is from 1 to {SEQ_MAX}")
    return Tip(seq, EntryHash(entry))
