"""What a pull came to: runs into the store, what is still missing and why, and when to give up.

1. Two nodes are ``in_sync`` only if their vectors are equal, read after everything was applied
   (S-E1, S-E4); otherwise there is a count on at least one side.
2. Every missing stretch has one reason.
3. After ``STALLED_ROUNDS`` rounds that brought nothing of the same missing set there is an error
   instead of another round (S-D2), until something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from crdt.chain import VerifiedRun
from crdt.entry import LogId
from crdt.log import LogStore, Tip, Vector
from keys.errors import BadInput
from keys.limits import STALLED_ROUNDS
from sync.errors import StalledError
from sync.plan import Gap, compare, entries_of
from sync.pull import CUT, PullClient, Refuse
from sync.reasons import Missing


class State(StrEnum):
    """How two nodes stand after a pull."""

    IN_SYNC = "in_sync"
    INCOMPLETE = "incomplete"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class MissingEntries:
    """Entries of one branch that are not here, up to ``tip``, and the one reason."""

    log: LogId
    tip: Tip
    entries: int
    exact: bool
    reason: Missing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one pull came to. Counts are entries; ``they_lack`` is what the peer would pull of us.

    ``error`` is the code with which the stream broke, None for a whole one.
    """

    state: State
    missing: tuple[MissingEntries, ...]
    we_lack: int
    they_lack: int
    received: int
    more: bool
    error: str | None

    @property
    def missing_for_good(self) -> bool:
        """Whether something is missing, and all of it for reasons that another pull would meet."""
        return bool(self.missing) and all(m.reason in LASTING for m in self.missing)


def outcome_of(client: PullClient, own: Vector) -> Outcome:
    """How things stand, given our vector read after the last effect was carried out."""
    tally = client.tally
    if client.server is None or client.error is not None:
        left = max(0, tally.expected - tally.received + tally.passed_over)
        return Outcome(State.CUT, (), left, 0, tally.received, False, client.error or CUT)
    found = compare(own, client.server)
    missing = tuple(_with_reason(gap, client) for gap in found.we_lack)
    state = State.IN_SYNC if found.equal else State.INCOMPLETE
    we_lack, they_lack = entries_of(found.we_lack), entries_of(found.they_lack)
    return Outcome(state, missing, we_lack, they_lack, tally.received, client.more, None)


def _with_reason(gap: Gap, client: PullClient) -> MissingEntries:
    reason = client.refused.get(gap.log, Missing.WAITING)
    return MissingEntries(gap.log, gap.tip, gap.entries, gap.exact, reason)


@dataclass(frozen=True, slots=True)
class Applied:
    """What went into the store, and what it would not take."""

    new: int
    known: int
    refused: tuple[Refuse, ...]


def append(store: LogStore, runs: Sequence[VerifiedRun], now_us: int) -> Applied:
    """Append a page of runs; one hop.

    All in one transaction; if the store refuses that, run by run, passing over the rest of a log
    whose run was refused. Tell ``PullClient.refuse`` of each. ``StoreError`` goes through.
    """
    try:
        done = store.append_runs(runs, now_us)
    except BadInput:
        return _one_by_one(store, runs, now_us)
    return Applied(done.new, done.known, ())


def _one_by_one(store: LogStore, runs: Sequence[VerifiedRun], now_us: int) -> Applied:
    new = known = 0
    refused: dict[LogId, Refuse] = {}
    for run in runs:
        if run.log in refused:
            continue
        try:
            done = store.append_runs([run], now_us)
        except BadInput as exc:
            refused[run.log] = Refuse(Missing.QUARANTINED, run.log, run.first_seq, exc.code)
            continue
        new, known = new + done.new, known + done.known
    return Applied(new, known, tuple(refused.values()))


# Reasons that another pull from the same peer would meet again.
LASTING: Final = frozenset(
    {Missing.QUARANTINED, Missing.NOT_GRANTED, Missing.TOO_LARGE, Missing.NEEDS_UPGRADE}
)


class Rounds:
    """The pulls of one agent from one peer: which logs to leave out, and when to stop.

    ``changed`` is to be called on fresh evidence: a new connection, new statements, an upgrade.
    """

    def __init__(self) -> None:
        self.changed()

    def changed(self) -> None:
        """Something is new: everything may be tried again."""
        self.skip: dict[LogId, Missing] = {}
        self._missing: tuple[MissingEntries, ...] = ()
        self._idle = 0
        self._given_up: tuple[bytes, bytes] | None = None

    def may_pull(self, mine: bytes, theirs: bytes) -> bool:
        """Whether a pull can bring anything, given the two vector digests (R8)."""
        return mine != theirs and (mine, theirs) != self._given_up

    def finished(self, outcome: Outcome, new: int, digests: tuple[bytes, bytes]) -> None:
        """Take note of a round: it brought ``new`` entries, and now the digests are these.

        ``digests`` are ours and the peer's, as for ``may_pull``. Raises ``StalledError`` on the
        second round in a row that brought nothing of the same missing set. A stream that was cut is
        the dial back-off's to judge, and no round; where every missing entry has a lasting reason
        there is nothing to try, and no error.
        """
        if outcome.error == CUT:
            return
        self.skip |= {m.log: m.reason for m in outcome.missing if m.reason in LASTING}
        if outcome.error is None and not outcome.more and outcome.missing_for_good:
            self._idle, self._given_up = 0, digests
            return
        if new or not (outcome.we_lack or outcome.error):
            self._idle = 0
        else:
            again = self._idle and outcome.missing == self._missing
            self._idle = self._idle + 1 if again else 1
        self._missing = outcome.missing
        if self._idle >= STALLED_ROUNDS:
            self._given_up = digests
            raise _stalled(outcome)


def _stalled(outcome: Outcome) -> StalledError:
    return StalledError(
        f"{STALLED_ROUNDS} rounds brought nothing of {outcome.we_lack} missing entries",
        hint="they are listed with the reason, and tried again as soon as something changes",
        logs=sorted({str(m.log) for m in outcome.missing}),
        reasons=sorted({m.reason.value for m in outcome.missing}),
        error=outcome.error,
    )
