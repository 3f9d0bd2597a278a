"""Where entries that did not know of one another disagree: a function of one record's entries.

The merged document shows one value of several; a reader is told that there are others (S-J2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from crdt.facts import BODY, FIELD, RecordFold, Stored
from crdt.fold import fold_record
from crdt.payload import Scalar, decode_ops

HEADS_MAX: Final = 16  # of a record with more heads the smallest are looked at
_LOCAL: Final = frozenset({"body.run"})  # which run made it: says nothing of what it says


def disputed(agent: bytes, fold: RecordFold, entries: Sequence[Stored]) -> list[str]:
    """The keys, ``field.*`` and of several creations ``body.*``, with more than one value."""
    keys = set[str]()
    if len(fold.creations) > 1:
        keys |= _creations(fold, entries)
    if len(fold.heads) > 1:
        keys |= _fields(agent, fold, entries)
    return sorted(keys)


def _creations(fold: RecordFold, entries: Iterable[Stored]) -> set[str]:
    made = {h.hash for h in fold.creations}
    puts: list[dict[str, Scalar]] = [
        {op.key: op.value for op in decode_ops(e.payload or b"").ops if op.key.startswith(BODY)}
        for e in entries
        if e.header.hash in made
    ]
    return {k for put in puts for k in put if any(_unlike(put, p, k) for p in puts)} - _LOCAL


def _fields(agent: bytes, fold: RecordFold, entries: Sequence[Stored]) -> set[str]:
    deps = {e.header.hash: e.header.deps for e in entries}
    pasts: list[set[bytes]] = []
    for head in fold.heads[:HEADS_MAX]:
        past: set[bytes] = set()
        stack = [head]
        while stack:
            at = stack.pop()
            if at in deps and at not in past:
                past.add(at)
                stack += deps[at]
        pasts.append(past)

    def values(past: set[bytes]) -> dict[str, Scalar]:
        chosen = [e for e in entries if e.header.hash in past]
        return fold_record(agent, fold.record, chosen, lambda h: fold.verdicts[h.hash]).values

    base = values(set.intersection(*pasts))
    tops = [values(past) for past in pasts]
    keys = {k for top in tops for k in top.keys() | base.keys() if k.startswith(FIELD)}
    return {
        key for key in keys if len({repr(t.get(key)) for t in tops if _unlike(t, base, key)}) > 1
    }


def _unlike(one: dict[str, Scalar], other: dict[str, Scalar], key: str) -> bool:
    return repr(one.get(key)) != repr(other.get(key))
