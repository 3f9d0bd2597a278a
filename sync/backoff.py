"""When to dial a peer: the pure schedule.

1. The wait grows by attempts that were really made and failed, and by nothing else (S-C10).
2. Fresh evidence (an advert, a call from the peer, a resume from suspend) allows one attempt at
   once, and the waits begin anew; but never two attempts within ``DIAL_FIRST_S``.
3. Waits are drawn between half and the whole, so that peers do not dial in lockstep (X-109).

Times are seconds of the caller's monotonic clock.
"""

from __future__ import annotations

from random import Random

from keys.limits import DIAL_FIRST_S, DIAL_MAX_S


class DialSchedule:
    """The next attempt to reach one peer."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0
        self._last: float | None = None
        self._next = 0.0

    @property
    def failures(self) -> int:
        """Attempts that failed since the last success or fresh evidence."""
        return self._failures

    @property
    def next_s(self) -> float:
        """When the next attempt is due."""
        return self._next

    def is_due(self, now_s: float) -> bool:
        """Whether to try now."""
        return now_s >= self._next

    def attempted(self, now_s: float) -> None:
        """An attempt begins: at all of the peer's addresses at once."""
        self._last = now_s
        self._next = now_s + DIAL_MAX_S  # until its end is known

    def failed(self, now_s: float) -> None:
        """None of the addresses led to the peer."""
        self._failures += 1
        most = min(float(DIAL_MAX_S), DIAL_FIRST_S * 2.0 ** min(self._failures, 32))
        self._next = now_s + most * self._random.uniform(0.5, 1.0)

    def connected(self, now_s: float) -> None:
        """The peer was reached, by either side's call. Dial again at once when that is lost."""
        self._failures = 0
        self._next = now_s if self._last is None else max(now_s, self._last + DIAL_FIRST_S)

    def evidence(self, now_s: float) -> None:
        """Something tells that the peer is there, or may be again."""
        self._failures = 0
        soonest = now_s if self._last is None else max(now_s, self._last + DIAL_FIRST_S)
        self._next = min(self._next, soonest)
