"""The port that a node is reached at by other devices.

A person may name one; else it is the one of last time, else 7667, else whatever is free. Two homes
on one machine both work, and a peer that stored an address finds us there again.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Final

from keys.errors import RoostError, UsageError

DEFAULT_PORT: Final = 7667
PORT_MAX: Final = 65_535
BACKLOG: Final = 128
_ANY_HOSTS: Final = ("::", "0.0.0.0")  # noqa: S104 - peers are on the local network


class AddressInUseError(RoostError):
    """Another program listens at that address."""

    code = "address_in_use"


def split_host_port(text: str) -> tuple[str, int]:
    """(host, port) of ``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT``; port 0 to 65,535.

    Raises ``UsageError``.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(f"an IPv6 address is written in brackets: [{host}]:{port}")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        raise UsageError("an address to listen at is HOST:PORT, PORT 0 for a free one")
    return host, int(port)


def join_host_port(host: str, port: int) -> str:
    """``HOST:PORT``, with brackets where the host has colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_listener(given: str | None, last_port: int | None) -> socket.socket:
    """A socket that listens where ``given`` says, or at a good place on every interface.

    Raises ``UsageError`` and ``AddressInUseError``.
    """
    host, port = split_host_port(given) if given else ("", 0)
    usual = [last_port] if given else [last_port, DEFAULT_PORT]
    candidates = [port] if port else [*(p for p in usual if p), 0]
    for candidate in candidates:
        listener = _try_listen(host, candidate)
        if listener is not None:
            return listener
    raise AddressInUseError(
        f"another program listens at {given}", hint="choose another port, or 0 for a free one"
    )


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(listener: socket.socket) -> str:
    """``HOST:PORT`` of a listening socket."""
    host, port = listener.getsockname()[:2]
    return join_host_port(host, port)


def _try_listen(host: str, port: int) -> socket.socket | None:
    """None where the port is taken; raises ``UsageError`` when there is no such host here."""
    hosts = (host,) if host else _ANY_HOSTS
    for number, name in enumerate(hosts):
        last = number == len(hosts) - 1
        try:
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            return _bound(found[0])
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                return None
            if last:  # no IPv6 here is no error while IPv4 is left
                raise UsageError(
                    f"cannot listen at {name or 'any'}: {exc.strerror or exc}"
                ) from exc
    raise AssertionError("there is always a last host")


def _bound(found: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    family, kind, protocol, _, address = found
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and address[0] == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
