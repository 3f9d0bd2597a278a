"""The dial schedule: grows by real attempts only, starts anew on evidence, never in lockstep."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from keys.limits import DIAL_FIRST_S, DIAL_MAX_S
from sync.backoff import DialSchedule


def failing(schedule: DialSchedule, now_s: float, times: int) -> float:
    """Fail so many attempts, each when it is due; the time after the last."""
    for _ in range(times):
        now_s = max(now_s, schedule.next_s)
        schedule.attempted(now_s)
        schedule.failed(now_s)
    return now_s


def test_the_first_attempt_is_due_at_once() -> None:
    """Whatever the clock says."""
    assert DialSchedule(Random(1)).is_due(-5.0)


def test_waits_grow_up_to_a_bound() -> None:
    """Between half of it and the whole."""
    schedule, now, waits = DialSchedule(Random(1)), 100.0, []
    for _ in range(40):
        schedule.attempted(now)
        schedule.failed(now)
        waits.append(schedule.next_s - now)
        now = schedule.next_s
    assert DIAL_FIRST_S <= waits[0] <= 2 * DIAL_FIRST_S
    assert all(DIAL_MAX_S / 2 <= w <= DIAL_MAX_S for w in waits[10:])


def test_only_real_attempts_lengthen_the_wait() -> None:
    """S-C10: asking whether it is due changes nothing."""
    schedule = DialSchedule(Random(1))
    failing(schedule, 0.0, 3)
    due, failures = schedule.next_s, schedule.failures
    for now in range(100):
        schedule.is_due(float(now))
    assert (schedule.next_s, schedule.failures) == (due, failures)


def test_fresh_evidence_allows_one_attempt_at_once() -> None:
    """S-C10: an advert or a call of the peer; the waits begin anew."""
    schedule = DialSchedule(Random(1))
    now = failing(schedule, 0.0, 10) + 5
    assert not schedule.is_due(now)
    schedule.evidence(now)
    assert schedule.is_due(now)
    assert schedule.failures == 0
    schedule.attempted(now)
    assert not schedule.is_due(now + 1_000)
    schedule.failed(now + 3)
    assert now + 3 + DIAL_FIRST_S <= schedule.next_s <= now + 3 + 2 * DIAL_FIRST_S


def test_evidence_during_an_attempt_counts_after_it() -> None:
    """It is not lost with the attempt that was already on its way."""
    schedule = DialSchedule(Random(1))
    now = failing(schedule, 0.0, 10)
    now = schedule.next_s
    schedule.attempted(now)
    schedule.evidence(now + 1)
    assert not schedule.is_due(now + 2)
    schedule.failed(now + 4)
    assert schedule.is_due(now + 4)
    schedule.attempted(now + 4)
    schedule.failed(now + 8)
    assert not schedule.is_due(now + 8)


def test_a_lost_connection_is_dialled_again_at_once() -> None:
    """Success ends the waits."""
    schedule = DialSchedule(Random(1))
    now = failing(schedule, 0.0, 5)
    schedule.attempted(now)
    schedule.connected(now + 2)
    assert schedule.is_due(now + 2)
    assert schedule.failures == 0


steps_taken = st.tuples(st.sampled_from(["fail", "win", "evidence"]), st.floats(0, 5))


@given(st.lists(steps_taken, max_size=60))
def test_two_attempts_are_never_closer_than_the_first_wait(steps: list[tuple[str, float]]) -> None:
    """Not even under a storm of adverts."""
    schedule, now, attempts = DialSchedule(Random(7)), 0.0, []
    for what, passed in steps:
        now += passed
        if what == "evidence":
            schedule.evidence(now)
        elif schedule.is_due(now):
            schedule.attempted(now)
            attempts.append(now)
            (schedule.failed if what == "fail" else schedule.connected)(now)
    assert all(b - a >= DIAL_FIRST_S - 1e-9 for a, b in pairwise(attempts))


def test_X_109_fifty_peers_do_not_dial_in_lockstep() -> None:
    """The waits of many are spread over the interval."""
    waits = []
    for seed in range(50):
        schedule = DialSchedule(Random(seed))
        failing(schedule, 0.0, 1)
        waits.append(schedule.next_s)
    assert len({round(w, 2) for w in waits}) > 25
    assert max(waits) - min(waits) > DIAL_FIRST_S / 2
