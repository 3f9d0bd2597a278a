"""What was promised to somebody: written entries, forgotten and retired records, places in logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Place = tuple[bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class Promise:
    """An act that returned: who did it, on which record, and the entries that hold it."""

    device: bytes
    record: bytes
    entries: tuple[bytes, ...]
    text: str = ""


@dataclass
class Ledger:
    """The world's own memory, which no device can read."""

    places: dict[Place, bytes] = field(default_factory=dict)
    entries: dict[bytes, Place] = field(default_factory=dict)
    remembered: list[Promise] = field(default_factory=list)
    forgotten: list[Promise] = field(default_factory=list)
    retired: list[Promise] = field(default_factory=list)
    lost: set[bytes] = field(default_factory=set)

    def written(self, place: Place, entry: bytes) -> None:
        """A device holds an entry of its own."""
        self.entries[entry] = place
        self.lost.discard(entry)

    def seen(self, place: Place, entry: bytes, *, may_fork: bool) -> None:
        """Somebody holds an entry; two at one place only where the world forked a device."""
        known = self.places.setdefault(place, entry)
        assert known == entry or may_fork, f"two entries at {place[0].hex()[:8]} {place[2]}"

    def lose(self, held: set[bytes]) -> int:
        """A disk was set back: what nobody holds any more is promised no longer; how much."""
        gone = self.entries.keys() - held - self.lost
        self.lost |= gone
        return len(gone)

    def kept(self, promises: Iterable[Promise], shaky: set[bytes]) -> list[Promise]:
        """The promises that must hold: not lost with a disk, nor by a device that was cut."""
        return [p for p in promises if p.device not in shaky and self.lost.isdisjoint(p.entries)]
