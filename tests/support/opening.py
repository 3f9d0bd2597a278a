"""A ``pair open`` at work on a node of a test."""

from __future__ import annotations

import asyncio
from typing import Any

from keys.errors import PairingError
from tests.support.peers import Node


class Opening:
    """``pair open`` at work on a node."""

    def __init__(self, node: Node, tasks: asyncio.TaskGroup, **params: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self._first = asyncio.Event()
        self._outcome = tasks.create_task(self._run(node, params))

    async def _run(self, node: Node, params: dict[str, Any]) -> Exception | None:
        try:
            await node.dispatch.call("pair.open", params, self._emit)
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            self._first.set()
            return exc
        return None

    async def _emit(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._first.set()

    async def code(self) -> str:
        await self._first.wait()
        return str(self.events[0]["code"])

    async def address(self) -> str:
        await self._first.wait()
        return str(self.events[0]["addresses"][0])

    async def failure(self) -> Exception | None:
        return await self._outcome

    def cancel(self) -> None:
        self._outcome.cancel()


def reason(exc: BaseException | None) -> object:
    assert isinstance(exc, PairingError)
    return exc.details["reason"]
