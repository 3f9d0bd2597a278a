"""The parts that a node is put together from, as the process sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from node.caller import ACCOUNT, Credential

Emit = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends one event of a verb to whoever called it."""


class Dispatch(Protocol):
    """Runs verbs."""

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        """The result of ``verb``; raises ``RoostError``.

        Who calls is made from ``credential`` alone: what a surface was shown.

        A verb that reports as it goes awaits ``emit`` per event; it is cancelled when its caller is
        gone or the node stops. Without ``emit`` the caller takes nothing but the result.
        """


class Service(Protocol):
    """Something that runs as long as the node does."""

    @property
    def name(self) -> str:
        """A short word for the journal."""

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin; further tasks go into ``tasks``. What this raises ends the node."""

    async def stop(self) -> None:
        """End within a second, whether or not ``start`` was called; more than once does nothing."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node consists of beside its local API; services start in order."""

    dispatch: Dispatch
    services: Sequence[Service]
