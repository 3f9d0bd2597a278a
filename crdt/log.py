"""The log-store port: where ``sync/`` and ``memory/`` meet without knowing each other.

Every method is synchronous and runs inside one hop to the store's thread. Whatever changes the
store does so in one transaction: log, read model and cursors move together or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crdt.chain import RawEntry, VerifiedEntry, VerifiedRun
from crdt.entry import LogId
from keys.ids import AgentId, EntryHash
from keys.statements import Statement


@dataclass(frozen=True, slots=True, order=True)
class Tip:
    """The last entry held of one branch of a log."""

    seq: int
    hash: EntryHash


Vector = dict[LogId, list[Tip]]
"""Per log its tips, sorted: one unless the log is forked (R7)."""


@dataclass(frozen=True, slots=True)
class ServedEntry:
    """An entry to be sent.

    ``tombstone`` is the hash of the tombstone entry that erased its payload; empty when the
    payload is here, or simply nowhere (R31).
    """

    raw: RawEntry
    tombstone: bytes


@dataclass(frozen=True, slots=True)
class ServedRun:
    """A run to be sent, ending at an entry with a held signature (R4)."""

    log: LogId
    entries: tuple[ServedEntry, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is still to serve of one branch: entries with ``after.seq < seq <= until.seq``."""

    log: LogId
    after: Tip
    until: Tip


@dataclass(frozen=True, slots=True)
class AheadTombstone:
    """A tombstone that travels ahead of its chain, with the opening of its log (R30)."""

    tombstone: VerifiedEntry
    opening: VerifiedEntry


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did: ``new`` entries entered the log, ``known`` were there already."""

    new: int
    known: int


@dataclass(frozen=True, slots=True)
class Want:
    """A payload that is nowhere here although no tombstone covers it (R32)."""

    log: LogId
    seq: int
    hash: EntryHash


class LogStore(Protocol):
    """One agent's log and statements, as synchronisation sees them."""

    @property
    def agent(self) -> AgentId:
        """The agent whose log this is."""

    def vector(self) -> Vector:
        """The tips of every log held."""

    def vector_digest(self) -> bytes:
        """BLAKE2b-256 of the canonical vector (R8); kept current, cheap to read."""

    def statements_digest(self) -> bytes:
        """BLAKE2b-256 of the sorted statement ids (R8)."""

    def statement_ids(self) -> list[bytes]:
        """All statement ids held, sorted."""

    def statements_missing(self, have: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
        """(data, signature) of the statements not in ``have``, each after its past."""

    def add_statements(self, statements: Sequence[Statement]) -> int:
        """Store verified statements and refold what they change; the number of new ones."""

    def tombstones_beyond(self, have: Vector, limit: int) -> list[tuple[RawEntry, RawEntry]]:
        """(tombstone, opening of its log) of tombstone entries that ``have`` lacks."""

    def add_ahead(self, tombstones: Sequence[AheadTombstone]) -> int:
        """Withhold what tombstones name before their chain is here; the number of new ones."""

    def plan(self, have: Vector) -> list[Stretch]:
        """What ``have`` lacks, in the order to send it (causal where this node could tell)."""

    def missing_entries(self, have: Vector) -> int:
        """How many entries ``plan(have)`` covers."""

    def read_run(self, stretch: Stretch, bytes_target: int) -> tuple[ServedRun, Stretch | None]:
        """The next run of a stretch and what remains of it.

        The run ends at the first held run-end signature at or past ``bytes_target`` bytes, or at
        the stretch's end. What was erased meanwhile is sent as a stub (S-E15).
        """

    def append_runs(self, runs: Sequence[VerifiedRun], now_us: int) -> Appended:
        """Append verified runs and fold them, in one transaction.

        Raises ``BadChain`` when a run does not follow what is held. A run that contradicts what is
        held is kept as the proof of a fork (R7).
        """

    def wants(self, limit: int) -> list[Want]:
        """Payloads to ask other nodes for."""

    def payloads(self, wanted: Sequence[Want]) -> list[tuple[Want, bytes]]:
        """Those of the wanted payloads that are here and not erased."""

    def add_payloads(self, found: Sequence[tuple[Want, bytes]], now_us: int) -> int:
        """Store payloads that match their headers' hashes; how many were taken."""
