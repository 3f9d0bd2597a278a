"""Where a node listens, as ``host:port``: the one form that messages, settings and links use."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, Self

from keys.errors import UsageError
from keys.limits import ADDRESS_BYTES_MAX

_HOST_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_ZONE: Final = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """A host (name, IPv4 or IPv6, this one with or without a zone) and a port from 1 to 65,535."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``host:port`` or ``[IPv6]:port``; raises ``UsageError``."""
        host, separator, port = text.rpartition(":")
        if len(text) > ADDRESS_BYTES_MAX or not (separator and text.isascii()):
            raise UsageError("an address is HOST:PORT")
        if not _PORT.fullmatch(port) or int(port) > _PORT_MAX:
            raise UsageError(f"a port is a number from 1 to {_PORT_MAX}")
        if host.startswith("[") and host.endswith("]"):
            return cls(_ipv6(host[1:-1]), int(port))
        return cls(_name(host.lower()), int(port))


def _ipv6(text: str) -> str:
    bare, percent, zone = text.partition("%")
    try:
        host = str(ipaddress.IPv6Address(bare))
    except ValueError as exc:
        raise UsageError("between [ and ] an address has an IPv6 address") from exc
    if percent and not _ZONE.fullmatch(zone):
        raise UsageError("the zone of an IPv6 address is the name of an interface")
    return host + percent + zone


def _name(text: str) -> str:
    labels = text.removesuffix(".").split(".")
    if labels[-1].isdigit():
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError as exc:
            raise UsageError("not an IPv4 address") from exc
    if len(text) > _HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise UsageError("not the name of a host (an IPv6 address goes between [ and ])")
    return text
