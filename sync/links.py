"""Word from the system that an address of this machine came or went, where it gives word (Linux).

What is said is not read: that something is said means it is time to look.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

# rtnetlink(7): IPv4 and IPv6 addresses that come or go.
_GROUPS: Final = 0x10 | 0x100
_READ_BYTES: Final = 65_536


class LinkChanges:
    """Calls ``changed`` in the event loop whenever an address comes or goes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._socket: socket.socket | None = None

    def open(self) -> bool:
        """Begin to listen; False where the system does not give word."""
        family = getattr(socket, "AF_NETLINK", None)
        if family is None:
            return False
        try:
            opened = socket.socket(family, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        except OSError:
            return False
        try:
            opened.bind((0, _GROUPS))
            asyncio.get_running_loop().add_reader(opened, self._read)
        except (OSError, NotImplementedError):
            opened.close()
            return False
        self._socket = opened
        return True

    def close(self) -> None:
        """Listen no more. May be called twice."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _read(self) -> None:
        """Empty the socket. ENOBUFS says that there was more than it could hold: a change too."""
        assert self._socket is not None
        while True:
            try:
                self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                continue
        self._changed()
