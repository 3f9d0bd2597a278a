"""The process that serves a home: takes the lock, puts the parts together, stops cleanly.

1. One process per home; ``roost up`` takes over from a background node (``node.takeover``).
2. Every task is in one group. When a part fails, the node ends rather than serve half of itself.
3. Stopping: no new calls, calls in flight end or are told, the parts stop, the databases close, the
   lock goes last. What hangs is cut off at a deadline: every commit is durable when it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from keys.errors import DiskFullError, RoostError
from node.clock import Clock, SystemClock
from node.control import Control
from node.core import NodeCore
from node.hardening import files_for_owner_only, no_core_file
from node.home import Home, open_home
from node.journal import BoundedFile, Journal, LibraryHandler, write_stderr
from node.listen import address_of, open_listener
from node.localapi import InternalError, LocalApi
from node.lock import POLL_S
from node.loopback import LoopbackApi
from node.options import UpOptions
from node.service import Parts, Service
from node.takeover import take_home

SERVICE_STOP_S: Final = 0.5
YIELD_DEADLINE_S: Final = 1.7  # the one who takes over waits 2 s
STOP_DEADLINE_S: Final = 10.0
PORT_SETTING: Final = "listen_port"
FORCED_EXIT: Final = 1
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Ready = dict[str, Any]
Assemble = Callable[[NodeCore, UpOptions, socket.socket], Awaitable[Parts]]
"""Makes the parts of a node, not yet started; the socket listens for peers already."""


def serve(
    path: Path, options: UpOptions, on_ready: Callable[[Ready], None], assemble: Assemble
) -> int:
    """Serve the home at ``path`` until a signal, or a background node's end; the exit code.

    ``on_ready`` gets ``{"event": "ready", "device", "listen", "api", "pid"}`` once. Raises
    ``RoostError`` when it cannot serve.
    """
    no_core_file()
    files_for_owner_only()
    home = open_home(path)
    clock = SystemClock()
    write = BoundedFile(home.journal_path).write if options.background else write_stderr
    journal = Journal(write, clock)
    with _libraries_to(journal), contextlib.closing(journal):
        node = _Node(home, options, clock, journal)
        try:
            asyncio.run(node.serve(on_ready, assemble))
        except BaseExceptionGroup as group:
            raise _cause(group, journal) from group
        finally:
            node.no_deadline()
    return 0


class _Node:
    """One run of the process."""

    def __init__(self, home: Home, options: UpOptions, clock: Clock, journal: Journal) -> None:
        self._home, self._options = home, options
        self._clock, self._journal = clock, journal
        self._stopping = asyncio.Event()
        self._deadline: threading.Timer | None = None

    async def serve(self, on_ready: Callable[[Ready], None], assemble: Assemble) -> None:
        """From the lock to its release."""
        lock = await take_home(self._home, self._options.role, self._clock)
        try:
            core = await NodeCore.open(self._home, self._clock, self._journal)
            try:
                await self._run(core, on_ready, assemble)
            finally:
                await core.close()
        finally:
            lock.release()

    async def _run(
        self, core: NodeCore, on_ready: Callable[[Ready], None], assemble: Assemble
    ) -> None:
        listener = await self._listen(core)
        parts = await assemble(core, self._options, listener)
        control = Control(parts.dispatch, core.device, self._options.role, self.stop)
        local = LocalApi(self._home, control, self._journal, self._clock)
        loopback = (
            LoopbackApi(self._options.api, control, self._journal) if self._options.api else None
        )
        services = [*parts.services, *([loopback] if loopback else []), local]
        with listener, self._signals_watched():
            try:
                async with asyncio.TaskGroup() as tasks:
                    try:
                        for service in services:
                            await service.start(tasks)
                        if self._options.background:
                            tasks.create_task(self._stop_when_idle(local), name="idle")
                        on_ready(self._ready(core, address_of(listener), loopback))
                        await self._stopping.wait()
                    finally:
                        await self._stop_all(services)
                    raise _StoppedError  # cancels whatever task is left
            except* _StoppedError:
                self._journal.info("stopped")

    async def _listen(self, core: NodeCore) -> socket.socket:
        """Listen for peers, at last time's port where it is free."""
        said = await core.db.run(lambda db: db.setting(PORT_SETTING))
        listener = open_listener(self._options.listen, int(said) if said else None)
        port = str(listener.getsockname()[1])
        if port != said:
            with contextlib.suppress(DiskFullError):  # another port next time
                await core.db.run(lambda db: db.set_settings(**{PORT_SETTING: port}))
        return listener

    def _ready(self, core: NodeCore, listen: str, loopback: LoopbackApi | None) -> Ready:
        self._journal.info("ready", listen=listen, role=self._options.role.value)
        return {
            "event": "ready",
            "device": str(core.device),
            "listen": listen,
            "api": loopback.address if loopback else None,
            "pid": os.getpid(),
        }

    def stop(self, reason: str) -> None:
        """Begin to stop; more than once does nothing."""
        if self._stopping.is_set():
            return
        self._journal.info("stopping", reason=reason)
        after_s = YIELD_DEADLINE_S if self._options.background else STOP_DEADLINE_S
        self._deadline = threading.Timer(after_s, self._cut_off)
        self._deadline.daemon = True
        self._deadline.start()
        self._stopping.set()

    def no_deadline(self) -> None:
        """The process has stopped as it should."""
        if self._deadline is not None:
            self._deadline.cancel()

    def _cut_off(self) -> None:
        """End now, though a thread still works: its transaction is undone at the next start."""
        self._journal.error("stop.forced")
        self._journal.close()
        os._exit(FORCED_EXIT)

    async def _stop_when_idle(self, local: LocalApi) -> None:
        while local.idle_s < self._options.idle_stop:
            await self._clock.sleep(max(self._options.idle_stop - local.idle_s, POLL_S))
        self.stop("idle")

    async def _stop_all(self, services: Sequence[Service]) -> None:
        """The local API first, so that nothing new begins; then the others together."""
        *others, local = services
        await local.stop()
        async with asyncio.TaskGroup() as stopping:
            for service in others:
                stopping.create_task(self._stop_one(service), name=f"stop {service.name}")

    async def _stop_one(self, service: Service) -> None:
        try:
            async with asyncio.timeout(SERVICE_STOP_S):
                await service.stop()
        except Exception as exc:  # noqa: BLE001 - the others are to be stopped all the same
            self._journal.error("stop.failed", exc, part=service.name)

    @contextlib.contextmanager
    def _signals_watched(self) -> Iterator[None]:
        """A signal stops the node; the second one ends it at once."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            self._cut_off()
        self.stop(number.name)


class _StoppedError(Exception):
    """The node was asked to stop."""


@contextlib.contextmanager
def _libraries_to(journal: Journal) -> Iterator[None]:
    """Let the journal have what libraries log."""
    handler = LibraryHandler(journal)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _cause(group: BaseExceptionGroup[BaseException], journal: Journal) -> BaseException:
    """The error to show of those that ended the node: one for a person, if there is one."""
    causes = list(_leaves(group))
    for exc in causes:
        if isinstance(exc, RoostError):
            return exc
    for exc in causes:
        journal.error("failed", exc)
    return InternalError("the node failed", hint="the journal says where")


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc
