"""Taking connections on a listening socket, so many at once and no more."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from node.clock import Clock

PAUSE_S: Final = 0.2  # after a failure to accept: out of descriptors, most likely
HANDSHAKE_S: Final = 10.0
SHUTDOWN_S: Final = 1.0

Admit = Callable[[socket.socket], Awaitable[None]]
"""Takes a connection over, and closes it in every case."""


class Acceptor:
    """Hands each connection to ``admit`` in a task of its own.

    Of more than ``most`` that are being admitted the oldest is dropped: somebody who fills the
    places with silent connections keeps nobody out.
    """

    def __init__(self, listener: socket.socket, clock: Clock, admit: Admit, most: int) -> None:
        self._listener, self._clock, self._admit, self._most = listener, clock, admit, most
        self._admitting: dict[asyncio.Task[None], None] = {}
        self._unbegun: dict[asyncio.Task[None], socket.socket] = {}

    async def run(self) -> None:
        """Accept until cancelled; what is being admitted is dropped then."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            while True:
                # Not sock_accept: cancelled at the wrong moment it loses the connection it took.
                loop.add_reader(self._listener, ready.set)
                try:
                    await ready.wait()
                finally:
                    loop.remove_reader(self._listener)
                ready.clear()
                if not self._accept(tasks):
                    await self._clock.sleep(PAUSE_S)

    def _accept(self, tasks: asyncio.TaskGroup) -> bool:
        """Take the connections that wait; False when the system has none to give."""
        for _ in range(self._most):
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return True
            except OSError:
                return False
            connection.setblocking(False)
            if len(self._admitting) >= self._most:
                oldest = next(iter(self._admitting))
                del self._admitting[oldest]
                oldest.cancel()
            task = tasks.create_task(self._one(connection), name="admit")
            self._admitting[task] = None
            self._unbegun[task] = connection
            task.add_done_callback(self._done)
        return True

    def _done(self, task: asyncio.Task[None]) -> None:
        self._admitting.pop(task, None)
        unbegun = self._unbegun.pop(task, None)
        if unbegun is not None:
            unbegun.close()  # cancelled before its first step

    async def _one(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None, "a coroutine that runs has a task"
        del self._unbegun[task]
        with contextlib.suppress(OSError, TimeoutError):  # a stranger, or one that gave up
            await self._admit(connection)


async def handshake(
    connection: socket.socket, context: ssl.SSLContext, protocol: Callable[[], asyncio.Protocol]
) -> asyncio.Transport:
    """The TLS connection on an accepted socket, which is the transport's from now on.

    Raises ``OSError`` or ``TimeoutError``; the connection is closed then.
    """
    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
        protocol,
        connection,
        ssl=context,
        ssl_handshake_timeout=HANDSHAKE_S,
        ssl_shutdown_timeout=SHUTDOWN_S,
    )
    return transport
