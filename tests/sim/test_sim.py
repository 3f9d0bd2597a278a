"""A fixed set of worlds, some of each theme: whatever happened, at rest everything holds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sim.themes import THEMES, Theme
from tests.sim.trial import live

WORLDS = 7  # of each theme

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("theme", THEMES, ids=[theme.name for theme in THEMES])
def test_worlds_come_to_rest_and_keep_what_they_promised(theme: Theme) -> None:
    """Convergence, erasure, rights, chains and acknowledged writes (DESIGN 12); seeds printed."""
    counts: Counter[str] = Counter()
    first = THEMES.index(theme)
    for seed in range(first, first + WORLDS * len(THEMES), len(THEMES)):
        report = live(seed)
        print(f"seed {seed}: {report.fingerprint}, quiet after {report.rounds} rounds")
        counts += report.counts
    for name, count in sorted(counts.items()):
        print(f"  {name:32} {count}")
    assert [name for name in theme.must if not counts[name]] == []


def test_a_seed_repeats_a_run() -> None:
    """Whoever acts, whatever is lost and what is believed in the end follow from the seed."""
    assert live(2, steps=60).fingerprint == live(2, steps=60).fingerprint
