"""Who lacks what: pure functions of two vectors.

1. ``lacking(a, b)`` is empty iff nothing that ``b`` ends with is missing in ``a``; for unequal
   vectors at least one of the two directions is not empty, and every gap counts at least 1.
2. Where logs are not forked the counts are exact. A vector says where branches end, not where they
   part, so for a forked log they say "at least".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crdt.entry import LogId
from crdt.log import Tip, Vector


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries of one branch, up to ``tip``, that are missing: ``entries``, or at least so many."""

    log: LogId
    tip: Tip
    entries: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What each of two nodes lacks of the other."""

    we_lack: tuple[Gap, ...]
    they_lack: tuple[Gap, ...]

    @property
    def equal(self) -> bool:
        """Whether the two hold the same."""
        return not self.we_lack and not self.they_lack


def compare(mine: Vector, theirs: Vector) -> Comparison:
    """What either lacks of the other."""
    return Comparison(lacking(mine, theirs), lacking(theirs, mine))


def lacking(mine: Vector, theirs: Vector) -> tuple[Gap, ...]:
    """The gaps of ``mine`` towards ``theirs``, in the order of logs and tips."""
    gaps: list[Gap] = []
    for log in sorted(theirs, key=lambda log: log.device + log.incarnation):
        gaps += _of_log(log, set(mine.get(log, ())), set(theirs[log]))
    return tuple(gaps)


def clamped(have: Vector, own: Vector) -> Vector:
    """What an asker with ``have`` holds of what a node with ``own`` could serve.

    Of an unforked log whose end the asker is past, it holds all there is. If that is not so, the
    two have parted before: then the asker's next answer, or the digests, tell.
    """
    held = dict(have)
    for log, tips in own.items():
        theirs = have.get(log, [])
        if len(tips) == len(theirs) == 1 and theirs[0].seq > tips[0].seq:
            held[log] = tips
    return held


def entries_of(gaps: Iterable[Gap]) -> int:
    """How many entries the gaps cover, at least."""
    return sum(gap.entries for gap in gaps)


def holds(vector: Vector, log: LogId, tip: Tip) -> bool:
    """Whether a node with ``vector`` has what an announcement of ``tip`` tells of.

    An entry below the end of an unforked log is taken to be in it: if it is not, the digests differ
    and the next pull finds the fork.
    """
    tips = vector.get(log, [])
    return tip in tips or (len(tips) == 1 and tip.seq < tips[0].seq)


def _of_log(log: LogId, mine: set[Tip], theirs: set[Tip]) -> list[Gap]:
    """The gaps of one log.

    A tip that is not held is either an ancestor of a further one of ours, at most one for each of
    ours, or missing.
    """
    ours = sorted(mine - theirs, reverse=True)
    gaps: list[Gap] = []
    for tip in sorted(theirs - mine, reverse=True):
        above = next((t for t in reversed(ours) if t.seq > tip.seq), None)
        if above is not None:
            ours.remove(above)
            continue
        below = next((t for t in ours if t.seq < tip.seq), None)
        exact = len(theirs) == 1 and len(mine) == (below is not None)
        if below is not None:
            gaps.append(Gap(log, tip, tip.seq - below.seq, exact))
        else:
            first = not mine and not gaps
            gaps.append(Gap(log, tip, tip.seq if first else 1, exact))
    return gaps[::-1]
