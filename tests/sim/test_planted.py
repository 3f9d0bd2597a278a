"""The invariants are worth something: each of these bugs, planted, is found within a few worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from crdt.chain import RawEntry, VerifiedEntry, VerifiedRun
from crdt.entry import decode_header
from keys.ids import AgentId
from memory.authoring import Author
from memory.erasing import Tombstones
from memory.standing import Standings
from memory.tables import Tables
from sync import pull
from tests.sim import device
from tests.sim.disk import FusedMarker
from tests.sim.themes import THEMES
from tests.sim.trial import FoundError, live

WORLDS_MAX = 8

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def unverified(_agent: AgentId, raw: list[RawEntry]) -> VerifiedRun:
    """A run as it came, nothing checked."""
    entries = tuple(VerifiedEntry(decode_header(e.header), e.payload, e.signature) for e in raw)
    first = entries[0].header
    return VerifiedRun(first.log, first.seq, first.prev, entries)


def believed(_marker: FusedMarker, *_: object) -> None:
    """Every home is the one it was."""


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def nothing(*_: object) -> None:
    """Not done at all."""


def place_from_before(author: Any, now_us: int) -> Any:
    """The place in the log is remembered across commits, not read from it."""
    if not hasattr(author, "remembered") or author.renew:
        author.remembered = REAL_PLACE(author, now_us)
    log, tip, opening = author.remembered
    return log, tip, opening


REAL_PLACE = Author._own_log

BUGS: dict[str, tuple[str, object, str, Callable[..., Any]]] = {
    "runs are not verified": ("network", pull, "verify_run", unverified),
    "tombstones do nothing": ("forgetting", Tombstones, "_effective", never),
    "erased payloads stay": ("forgetting", Tables, "drop_payloads", nothing),
    "what was derived from erased text stays": ("forgetting", Standings, "source_erased", never),
    "a restore is not noticed": ("disks", FusedMarker, "check", believed),
    "the place in the log is cached": ("processes", Author, "_own_log", place_from_before),
    "anybody is served": ("rights", device.Device, "may_read", always),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    theme, where, name, instead = BUGS[bug]
    first = next(i for i, t in enumerate(THEMES) if t.name == theme)
    with mock.patch.object(where, name, instead):
        for world in range(WORLDS_MAX):
            seed = first + world * len(THEMES)
            try:
                live(seed)
            except FoundError as exc:
                print(f"{bug}: {str(exc).splitlines()[-1]}")
                return
    raise AssertionError(f"{bug}: {WORLDS_MAX} worlds did not find it")
