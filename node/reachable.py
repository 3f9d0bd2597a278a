"""Where other devices may reach a listener of this node."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator
from typing import Final

import ifaddr

from keys.address import Address
from keys.limits import ADDRESSES_MAX

_ANY_HOSTS: Final = frozenset({"::", "0.0.0.0"})  # noqa: S104 - compared, not bound
_LOOPBACK: Final = "127.0.0.1"


def reachable_at(listener: socket.socket) -> tuple[Address, ...]:
    """The addresses of a listening socket that others may call: at most 16, global ones first.

    Of one that listens everywhere: every interface's own, but for link-local IPv6, whose zones mean
    nothing elsewhere, and for loopback where there is anything else.
    """
    host, port = listener.getsockname()[:2]
    if host not in _ANY_HOSTS:
        return (Address.parse(_text(host, port)),)
    both = listener.family == socket.AF_INET6
    hosts = sorted(_own_hosts(both=both), key=lambda h: (h.is_private, h.version, str(h)))
    found = [Address(str(h), port) for h in dict.fromkeys(hosts)] or [Address(_LOOPBACK, port)]
    return tuple(found[:ADDRESSES_MAX])


def plain_host(host: str) -> str:
    """An address as its own family writes it: an IPv4 one that came over IPv6 is IPv4."""
    bare = host.partition("%")[0]
    mapped = ipaddress.IPv6Address(bare).ipv4_mapped if ":" in bare else None
    return str(mapped) if mapped is not None else host


def _own_hosts(*, both: bool) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    for adapter in ifaddr.get_adapters():
        for text in _texts(adapter.ips):
            host = ipaddress.ip_address(text)
            if host.version == 6 and (not both or host.is_link_local):
                continue
            if not (host.is_loopback or host.is_multicast or host.is_unspecified):
                yield host


def _texts(ips: Iterable[ifaddr.IP]) -> Iterator[str]:
    for ip in ips:
        yield ip.ip if isinstance(ip.ip, str) else ip.ip[0]


def _text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
