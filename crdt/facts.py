"""What a fold is made of: entries with their verdicts, the facts in them, and its outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from crdt.entry import Header
from crdt.payload import Scalar
from keys.ids import EntryHash, RecordId
from keys.limits import RECORD_BYTES

NEXT: Final = "next."
MARK: Final = "mark."
TAG: Final = "tag."
FIELD: Final = "field."
BODY: Final = "body."
# Whose part a record is: of these kinds, by these keys of its creation, 16 bytes each. An erased
# owner erases it like any other source (R13, R31).
PART_KINDS: Final = frozenset({"property", "relation", "section"})
OWNER_KEYS: Final = ("body.entity", "body.file", "body.from", "body.to")
FACT_INITIALS: Final = MARK[0] + NEXT[0]  # no other key of a record starts with these letters
# ``bytes.fromhex`` alone also takes white space.
_RECORD_DIGITS: Final = re.compile(f"[0-9a-f]{{{2 * RECORD_BYTES}}}").fullmatch


class Reason(StrEnum):
    """Why an entry does not materialise; the first that holds, in this order (R5)."""

    FROZEN = "frozen"
    NOT_ACCEPTED = "not_accepted"
    PAST_CUT = "past_cut"
    ERASED = "erased"
    PAYLOAD_NOWHERE = "payload_nowhere"
    NEEDS_UPGRADE = "needs_upgrade"
    MALFORMED = "malformed"
    WAITING = "waiting"
    MISMATCH = "mismatch"


class Stored(NamedTuple):
    """An entry as the log holds it; ``time_ms`` is its record time (R14)."""

    header: Header
    payload: bytes | None
    time_ms: int


class Verdict(NamedTuple):
    """What the statements and forks say of one entry: a reason against it, or none."""

    reason: Reason | None
    reviews: bool
    withholds: bool = False  # frozen, yet its withholding facts stay effective (R7)


class Fact(NamedTuple):
    """A put of ``mark.*`` or ``next.*`` by a materialised entry. Never removed by an entry."""

    entry: EntryHash
    key: str
    value: str
    counts: bool  # False: ``current`` from a device that held no ``review``

    @property
    def successor(self) -> RecordId | None:
        """The record that replaces this one, for a ``next`` fact."""
        return successor_of(self.key)

    @property
    def word(self) -> str:
        """The state that a ``mark`` fact asserts, or another word (an annotation)."""
        return "" if self.key.startswith(NEXT) else self.value.partition(" ")[0]

    @property
    def reason(self) -> str:
        """The free text that came with the fact."""
        return self.value if self.key.startswith(NEXT) else self.value.partition(" ")[2]


class Step(NamedTuple):
    """One materialised entry and the document after it."""

    header: Header
    time_ms: int
    values: dict[str, Scalar]
    facts: tuple[Fact, ...]


@dataclass(slots=True)
class RecordFold:
    """The fold of one record's entries."""

    record: RecordId
    reasons: dict[EntryHash, Reason] = field(default_factory=dict)
    creations: list[Header] = field(default_factory=list)
    kind: str = ""
    body: dict[str, Scalar] = field(default_factory=dict)
    sources: frozenset[RecordId] = frozenset()
    steps: list[Step] = field(default_factory=list)
    heads: list[EntryHash] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    frozen: set[EntryHash] = field(default_factory=set)  # entries whose facts hold although frozen
    verdicts: dict[EntryHash, Verdict] = field(default_factory=dict)

    @property
    def materialised(self) -> bool:
        """Whether a creation counts, so that the record exists."""
        return bool(self.creations)

    @property
    def values(self) -> dict[str, Scalar]:
        """``field.*`` and ``tag.*`` as they read now."""
        return self.steps[-1].values if self.steps else {}


def successor_of(key: str) -> RecordId | None:
    """The record named by a ``next.<32 hex digits>`` key, None for any other key."""
    if not key.startswith(NEXT) or not _RECORD_DIGITS(key[len(NEXT) :]):
        return None
    return RecordId(bytes.fromhex(key[len(NEXT) :]))


def next_key(record: RecordId) -> str:
    """The key of the fact that ``record`` replaces the record it stands on."""
    return NEXT + record.hex()
