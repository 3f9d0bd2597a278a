"""The peers of this node, and where they may be: two tables of ``node.db``.

1. A certificate, once a peer's, changes only by pairing again; adverts add addresses, never trust
   (X-11).
2. Both tables are bounded: whatever an advert or a stranger can cause makes no row beyond that.
3. Names need not differ: two machines may have the same. ``find`` returns all that fit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from keys.errors import NotFoundError, RefusedError
from keys.ids import DeviceId, OwnerId
from keys.limits import ADDRESSES_MAX, PEERS_MAX
from memory.transaction import transaction

_PREFIX_CHARS_MIN: Final = 4
_SELECT: Final = (
    "SELECT device, name, label, certificate, owner, recovery, added_us, last_seen_us,"
    " clock_offset_ms, removed_us, told FROM peer"
)


class Source(StrEnum):
    """How an address became known."""

    STORED = "stored"  # the peer told it, or was met there
    MDNS = "mdns"  # an advert, as long as it lasts
    TYPED = "typed"  # by a person


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """One place where a peer may be; ``last_success_us`` None: its key never answered there."""

    address: str
    source: Source
    last_success_us: int | None


@dataclass(frozen=True, slots=True)
class NewPeer:
    """What pairing brings: the peer, and what is known of its owner (both or neither)."""

    device: DeviceId
    name: str
    certificate: bytes
    owner: OwnerId | None = None
    recovery: bytes = b""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another device; ``removed_us`` None while it is a peer, ``told`` when it knows it is not."""

    device: DeviceId
    name: str
    label: str | None
    certificate: bytes
    owner: OwnerId | None
    recovery: bytes
    added_us: int
    last_seen_us: int | None
    clock_offset_ms: int | None
    removed_us: int | None
    told: bool
    addresses: tuple[PeerAddress, ...]

    @property
    def shown_name(self) -> str:
        """What a person here calls it."""
        return self.label or self.name


class Peers:
    """The tables ``peer`` and ``address``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def all(self) -> list[Peer]:
        """The peers in the order of pairing."""
        where = " WHERE removed_us IS NULL ORDER BY added_us, device"
        return [self._peer(row) for row in self._db.execute(_SELECT + where).fetchall()]

    def removed(self) -> list[Peer]:
        """Devices that were peers, the last removed first."""
        where = " WHERE removed_us IS NOT NULL ORDER BY removed_us DESC, device"
        return [self._peer(row) for row in self._db.execute(_SELECT + where).fetchall()]

    def get(self, device: DeviceId) -> Peer | None:
        """One device, removed or not."""
        row = self._db.execute(_SELECT + " WHERE device = ?", (device,)).fetchone()
        return self._peer(row) if row else None

    def find(self, text: str) -> list[Peer]:
        """The peers that a person may mean: by label or name, else by id or a prefix of it."""
        every = self.all()
        named = [p for p in every if text in {p.label, p.name}]
        if named or len(text) < _PREFIX_CHARS_MIN:
            return named
        prefix = text.strip().lower()
        return [p for p in every if str(p.device).startswith(prefix)]

    def add(self, new: NewPeer, now_us: int, addresses: Sequence[str] = ()) -> Peer:
        """Enter or renew a peer after pairing, at the ``addresses`` it told; its label stays.

        Where it told none, those of before stay.

        Raises ``RefusedError`` beyond ``PEERS_MAX``.
        """
        with transaction(self._db):
            before = self.get(new.device)
            if (before is None or before.removed_us is not None) and self._full():
                raise RefusedError(
                    f"this node has {PEERS_MAX} peers", hint="remove one: roost peers remove DEVICE"
                )
            self._db.execute(
                "INSERT INTO peer (device, name, certificate, owner, recovery, added_us)"
                " VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (device) DO UPDATE SET name = excluded.name, told = 0,"
                " certificate = excluded.certificate, owner = excluded.owner,"
                " recovery = excluded.recovery, removed_us = NULL",
                (new.device, new.name, new.certificate, new.owner, new.recovery, now_us),
            )
            if addresses:
                self._replace_addresses(new.device, Source.STORED, addresses, now_us)
        return self._known(new.device)

    def remove(self, device: DeviceId, now_us: int) -> None:
        """End a peer; raises ``NotFoundError`` when it is none."""
        with transaction(self._db):
            self._update(device, "removed_us = ?, told = 0", now_us)
            self._db.execute(
                "DELETE FROM peer WHERE device IN (SELECT device FROM peer"
                " WHERE removed_us IS NOT NULL ORDER BY removed_us DESC LIMIT -1 OFFSET ?)",
                (PEERS_MAX,),
            )
            self._db.execute(
                "DELETE FROM address WHERE device NOT IN (SELECT device FROM peer)"
                " OR device = ? AND source = 'mdns'",
                (device,),
            )

    def told_removed(self, device: DeviceId) -> None:
        """A removed peer knows that it is none."""
        self._db.execute("UPDATE peer SET told = 1 WHERE device = ?", (device,))

    def set_label(self, device: DeviceId, label: str | None) -> None:
        """What a person here calls a peer; raises ``NotFoundError``."""
        self._update(device, "label = ?", label)

    def set_name(self, device: DeviceId, name: str) -> None:
        """What a peer calls itself now; raises ``NotFoundError``."""
        self._update(device, "name = ?", name)

    def set_owner(self, device: DeviceId, owner: OwnerId, recovery: bytes) -> None:
        """Whose device a peer is; raises ``NotFoundError``."""
        self._update(device, "owner = ?, recovery = ?", owner, recovery)

    def seen(
        self, device: DeviceId, address: str | None, offset_ms: int | None, now_us: int
    ) -> None:
        """A peer's key answered: when, where (if we called it), and how its clock stood."""
        with transaction(self._db):
            self._db.execute(
                "UPDATE peer SET last_seen_us = ?, clock_offset_ms = coalesce(?, clock_offset_ms)"
                " WHERE device = ?",
                (now_us, offset_ms, device),
            )
            if address is not None:
                self._place(device, address, Source.STORED, now_us)
                self._db.execute(
                    "UPDATE address SET last_success_us = ? WHERE device = ? AND address = ?",
                    (now_us, device, address),
                )
                self._trim(device)

    def add_addresses(
        self, device: DeviceId, source: Source, addresses: Sequence[str], now_us: int
    ) -> None:
        """Further places where a peer may be; the least useful beyond ``ADDRESSES_MAX`` go."""
        with transaction(self._db):
            for address in addresses[:ADDRESSES_MAX]:
                self._place(device, address, source, now_us)
            self._trim(device)

    def replace_addresses(
        self, device: DeviceId, source: Source, addresses: Sequence[str], now_us: int
    ) -> None:
        """All places known from one source, in place of those it gave before."""
        with transaction(self._db):
            self._replace_addresses(device, source, addresses, now_us)

    def _replace_addresses(
        self, device: DeviceId, source: Source, addresses: Sequence[str], now_us: int
    ) -> None:
        kept = set(addresses[:ADDRESSES_MAX])
        for (old,) in self._db.execute(
            "SELECT address FROM address WHERE device = ? AND source = ?", (device, source)
        ).fetchall():
            if old not in kept:
                self._db.execute(
                    "DELETE FROM address WHERE device = ? AND source = ? AND address = ?",
                    (device, source, old),
                )
        for address in addresses[:ADDRESSES_MAX]:
            self._place(device, address, source, now_us)
        self._trim(device)

    def _full(self) -> bool:
        (count,) = self._db.execute("SELECT count(*) FROM peer WHERE removed_us IS NULL").fetchone()
        return int(count) >= PEERS_MAX

    def _known(self, device: DeviceId) -> Peer:
        found = self.get(device)
        assert found is not None
        return found

    def _update(self, device: DeviceId, change: str, *values: object) -> None:
        done = self._db.execute(
            f"UPDATE peer SET {change} WHERE device = ? AND removed_us IS NULL",  # noqa: S608
            (*values, device),
        )
        if not done.rowcount:
            raise NotFoundError(f"{device.short()} is no peer of this node", hint="roost peers")

    def _place(self, device: DeviceId, address: str, source: Source, now_us: int) -> None:
        self._db.execute(
            "INSERT INTO address (device, address, source, added_us)"
            " SELECT device, ?, ?, ? FROM peer WHERE device = ?"
            " ON CONFLICT (device, address, source) DO UPDATE SET added_us = excluded.added_us",
            (address, source, now_us, device),
        )

    def _trim(self, device: DeviceId) -> None:
        """Keep the ``ADDRESSES_MAX`` best: typed first, then by success, then by age."""
        self._db.execute(
            "DELETE FROM address WHERE device = ? AND address NOT IN ("
            " SELECT address FROM address WHERE device = ? GROUP BY address"
            " ORDER BY max(source = 'typed') DESC, max(coalesce(last_success_us, 0)) DESC,"
            " max(added_us) DESC LIMIT ?)",
            (device, device, ADDRESSES_MAX),
        )

    def _peer(self, row: Sequence[Any]) -> Peer:
        device, name, label, certificate, owner, recovery, added, seen, offset, removed, told = row
        found = self._db.execute(
            "SELECT address, source, last_success_us FROM address WHERE device = ?"
            " ORDER BY coalesce(last_success_us, 0) DESC, added_us DESC, address",
            (device,),
        )
        return Peer(
            device=DeviceId(device),
            name=name,
            label=label,
            certificate=certificate,
            owner=OwnerId(owner) if owner else None,
            recovery=recovery or b"",
            added_us=added,
            last_seen_us=seen,
            clock_offset_ms=offset,
            removed_us=removed,
            told=bool(told),
            addresses=tuple(PeerAddress(a, Source(s), at) for a, s, at in found),
        )
