"""Adverts: what a node says of itself on the local network, and what it makes of others'.

1. An advert holds a random name, a version, ports, a salt and a salted hash of the device id, and
   nothing that names a person, a machine or an agent (X-14). Who knows a device recognises it by
   the hash; a stranger learns nothing. The salt changes with every announcement.
2. An advert is a hint where to dial. Who is there says the TLS key alone (X-11).
3. Of adverts only a bounded number is kept, the latest (X-12).
4. Interfaces of containers are not advertised on, nor is loopback unless there is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from typing import Final

from keys.address import Address
from keys.ids import DeviceId
from keys.limits import ADDRESSES_MAX, ADVERT_ID_BYTES, ADVERT_SALT_BYTES, FOUND_MAX, VERSION_MAX

SERVICE: Final = "_roost._tcp.local."
ADVERT_VERSION: Final = 1
CONTAINER_INTERFACES: Final = ("docker*", "br-*", "virbr*", "veth*", "podman*", "cni*", "lxcbr*")
PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, order=True)
class Interface:
    """A network interface with its addresses, IPv6 ones without scope."""

    name: str
    index: int
    addresses: tuple[str, ...]


def usable(interfaces: Iterable[Interface]) -> tuple[Interface, ...]:
    """The interfaces to advertise on, sorted; loopback only where there is no other."""
    found = sorted(
        Interface(i.name, i.index, tuple(sorted(set(i.addresses))))
        for i in interfaces
        if i.addresses and not any(fnmatch(i.name, form) for form in CONTAINER_INTERFACES)
    )
    beyond = tuple(i for i in found if not _is_loopback(i))
    return beyond or tuple(found)


def _is_loopback(interface: Interface) -> bool:
    return all(ip_address(a).is_loopback for a in interface.addresses)


def advertised(interfaces: Iterable[Interface]) -> list[str]:
    """The addresses to advertise: IPv4 first, link-local IPv6 last, at most ``ADDRESSES_MAX``."""
    addresses = {a for i in interfaces for a in i.addresses}

    def rank(address: str) -> tuple[bool, bool, str]:
        found = ip_address(address)
        return isinstance(found, IPv6Address), found.is_link_local, address

    return sorted(addresses, key=rank)[:ADDRESSES_MAX]


def can_be_dialled(host: str) -> bool:
    """Whether an address can be tried at all: no group, no wildcard, no IPv6 that lacks its scope.

    A scope of 0 names no interface and counts as none. Names can be tried.
    """
    try:
        found = ip_address(host)
    except ValueError:
        return True
    if found.is_multicast or found.is_unspecified:
        return False
    if isinstance(found, IPv6Address) and found.is_link_local:
        return found.scope_id not in (None, "", "0")
    return True


def salted_id(salt: bytes, device: DeviceId) -> bytes:
    """How an advert names ``device`` to those who know it."""
    return blake2b(salt + b"roost advert" + device, digest_size=ADVERT_ID_BYTES).digest()


def txt_of(salt: bytes, device: DeviceId, pairing_port: int | None) -> dict[str, str]:
    """The TXT record of an advert; the port is in the SRV record."""
    record = {
        "v": str(ADVERT_VERSION),
        "s": salt.hex(),
        "i": salted_id(salt, device).hex(),
    }
    return record if pairing_port is None else record | {"p": str(pairing_port)}


@dataclass(frozen=True, slots=True)
class Found:
    """An advert of another node. ``hosts`` can be dialled; an IPv6 link-local one has its scope."""

    instance: str
    hosts: tuple[str, ...]
    port: int
    pairing_port: int | None
    version: int
    salt: bytes
    salted: bytes

    def is_of(self, device: DeviceId) -> bool:
        """Whether the advert says it is of ``device``; a hint, never proof."""
        return self.salted == salted_id(self.salt, device)

    def addresses(self) -> tuple[Address, ...]:
        """Where its node listens."""
        return tuple(Address(host, self.port) for host in self.hosts)

    def pairing_addresses(self) -> tuple[Address, ...]:
        """Where it listens for pairing; empty while it does not."""
        if self.pairing_port is None:
            return ()
        return tuple(Address(host, self.pairing_port) for host in self.hosts)


def read_advert(
    instance: str, hosts: Iterable[str], port: int | None, txt: Mapping[bytes, bytes | None]
) -> Found | None:
    """What an advert says; None for one that is not in our form or names no address to dial."""
    version = _number(txt.get(b"v"), VERSION_MAX)
    pairing = _number(txt.get(b"p"), PORT_MAX)
    salt, salted = _hex(txt.get(b"s"), ADVERT_SALT_BYTES), _hex(txt.get(b"i"), ADVERT_ID_BYTES)
    if version is None or salt is None or salted is None or not port or not 0 < port <= PORT_MAX:
        return None
    if pairing is None and b"p" in txt:
        return None
    dialled = tuple(sorted({h for h in hosts if can_be_dialled(h)}))[:ADDRESSES_MAX]
    return Found(instance, dialled, port, pairing, version, salt, salted) if dialled else None


def _number(value: bytes | None, largest: int) -> int | None:
    if value is None or not 1 <= len(value) <= 5 or not value.isdigit():
        return None
    number = int(value)
    return number if str(number).encode() == value and 0 < number <= largest else None


def _hex(value: bytes | None, size: int) -> bytes | None:
    if value is None or len(value) != 2 * size:
        return None
    try:
        found = bytes.fromhex(value.decode("ascii"))
    except ValueError:
        return None
    return found if found.hex().encode() == value else None


class Table:
    """The adverts seen last, at most ``FOUND_MAX``; the one not seen for longest makes room."""

    def __init__(self, size_max: int = FOUND_MAX) -> None:
        self._size_max = size_max
        self._found: dict[str, Found] = {}

    def put(self, found: Found) -> bool:
        """Keep an advert; whether it says anything new."""
        before = self._found.pop(found.instance, None)
        if before is None and len(self._found) >= self._size_max:
            del self._found[next(iter(self._found))]
        self._found[found.instance] = found
        return before != found

    def drop(self, instance: str) -> None:
        """The advert was withdrawn or has expired."""
        self._found.pop(instance, None)

    def clear(self) -> None:
        """Forget all: adverts are about to be collected anew."""
        self._found.clear()

    def all(self) -> tuple[Found, ...]:
        """What is kept, the longest unseen first."""
        return tuple(self._found.values())
