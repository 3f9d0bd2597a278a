"""What a world is mostly about. The seed picks the theme, so that it alone repeats a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Theme:
    """How often things happen, as factors by name; ``must`` have happened in some worlds of it."""

    name: str
    must: tuple[str, ...]
    factors: Mapping[str, float] = field(default_factory=dict)
    mishaps: float = 0.12  # of all that begins
    fault_rate: float = 0.02
    fewest: int = 2  # devices


THEMES = (
    Theme(
        "everything",
        (
            "act: forget",
            "act: revoke",
            "act: grant",
            "crashes",
            "partitions",
            "clock jumps",
            "clock years ahead",
            "clock years back",
        ),
        {"jump": 3},
    ),
    Theme(
        "network",
        (
            "net: cut",
            "net: request lost",
            "net: answer lost",
            "net: twice",
            "net: stale",
            "net: flipped",
            "net: chunks among others",
            "partitions",
        ),
        {"part": 3, "join": 0.2},
        fault_rate=0.4,
    ),
    Theme(
        "processes",
        ("crashes", "kills inside a hop", "commits torn", "comes up"),
        {"crash": 4, "kill_later": 8, "revoke": 0.3},
        mishaps=0.35,
    ),
    Theme(
        "disks",
        (
            "restore: database",
            "restore: home",
            "restore: disk",
            "clones",
            "copies",
            "doubts by peers",
            "entries lost with a disk",
            "forked logs",
        ),
        {"back_up": 4, "restore": 4, "copy_home": 6, "revoke": 0.3},
        mishaps=0.3,
    ),
    Theme(
        "rights",
        (
            "act: revoke",
            "backdated cuts",
            "act: grant",
            "pieces: to the removed",
            "refusals met",
            "proofs taken",
            "entries that do not count",
        ),
        {"revoke": 4, "grant": 4},
        fewest=4,
    ),
    Theme(
        "forgetting",
        (
            "act: forget",
            "act: lift",
            "act: derive",
            "promises: forgotten",
            "promises: retired",
            "words gone from the files",
        ),
        {"forget": 3, "retire": 2, "lift": 2, "derive": 2, "revoke": 0.5, "restore": 0.3},
    ),
)


def theme_of(seed: int) -> Theme:
    """The theme of a seed."""
    return THEMES[seed % len(THEMES)]
