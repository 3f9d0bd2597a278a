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
        self._last = float("-inf")
        self._next = float("-inf")
        self._dialling = False
        self._fresh = False

    @property
    def failures(self) -> int:
        """Attempts that failed since the last success or fresh evidence."""
        return self._failures

    @property
    def next_s(self) -> float:
        """When the next attempt is due; while one is made, without end."""
        return float("inf") if self._dialling else self._next

    def is_due(self, now_s: float) -> bool:
        """Whether to try now."""
        return now_s >= self.next_s

    def attempted(self, now_s: float) -> None:
        """An attempt begins: at all of the peer's addresses at once."""
        self._last, self._dialling, self._fresh = now_s, True, False

    def failed(self, now_s: float) -> None:
        """None of the addresses led to the peer."""
        self._dialling = False
        self._failures += 1
        most = min(float(DIAL_MAX_S), DIAL_FIRST_S * 2.0 ** min(self._failures, 32))
        self._next = now_s + most * self._random.uniform(0.5, 1.0)
        if self._fresh:
            self.evidence(now_s)

    def connected(self, now_s: float) -> None:
        """The peer was reached, by either side's call; should that be lost, dial again at once."""
        self._dialling, self._failures = False, 0
        self._next = max(now_s, self._last + DIAL_FIRST_S)

    def evidence(self, now_s: float) -> None:
        """Something tells that the peer is there, or may be again.

        While an attempt is made it counts from the end of that one.
        """
        self._fresh, self._failures = self._dialling, 0
        self._next = min(self._next, max(now_s, self._last + DIAL_FIRST_S))
