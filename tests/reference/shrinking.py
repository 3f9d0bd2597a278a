"""A failing ledger made small: what nothing else builds on is left out while it still fails."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from crdt.payload import decode_open
from tests.reference.ledger import Ledger


def shrink(ledger: Ledger, fails: Callable[[Ledger], bool]) -> Ledger:
    """The ledger with as little in it as still fails."""
    smaller = next((s for s in _smaller(ledger) if fails(s)), None)
    return ledger if smaller is None else shrink(smaller, fails)


def _smaller(ledger: Ledger) -> Iterator[Ledger]:
    followed = {c.before for c in ledger.commits}
    for commit in reversed(ledger.commits):
        if commit.end not in followed:
            yield _with(ledger, commits=[c for c in ledger.commits if c is not commit])
    cited = {bytes(h) for s in ledger.statements for h in s.after}
    for commit in ledger.commits:
        if commit.last.seq == 1:
            cited |= set(decode_open(commit.run.entries[0].payload or b"").heads)
    for statement in reversed(ledger.statements[1:]):
        if bytes(statement.id) not in cited:
            left = [s for s in ledger.statements if s is not statement]
            yield _with(ledger, statements=left)


def _with(ledger: Ledger, **parts: object) -> Ledger:
    out = copy.copy(ledger)
    for name, value in parts.items():
        setattr(out, name, value)
    return out
