"""Verbs about the process itself, before those about memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final

from keys.errors import RefusedError, UsageError
from keys.ids import DeviceId
from node.caller import ACCOUNT, Credential
from node.lock import Role
from node.service import Dispatch, Emit

PING: Final = "node.ping"
YIELD: Final = "node.yield"
HOLD: Final = "node.hold"


class Control:
    """Answers ``node.…`` verbs and hands all others on.

    - ``node.ping``: the device, the process and its role.
    - ``node.yield``: a background node stops, since ``roost up`` wants to serve in its place.
    - ``node.hold``: emits once, then lasts until the caller hangs up; keeps a background node up.
    """

    def __init__(
        self, inner: Dispatch, device: DeviceId, role: Role, stop: Callable[[str], None]
    ) -> None:
        self._inner, self._device, self._role, self._stop = inner, device, role, stop

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        """Run one verb; raises ``RoostError``."""
        if verb not in {PING, YIELD, HOLD} or credential.bearer is not None:
            return await self._inner.call(verb, params, emit, credential)
        if params:
            raise UsageError(f"{verb} takes no parameters")
        if verb == YIELD:
            return self._yield()
        if verb == HOLD:
            return await self._hold(emit)
        return {"device": str(self._device), "pid": os.getpid(), "role": self._role.value}

    def _yield(self) -> dict[str, Any]:
        if self._role is not Role.BACKGROUND:
            raise RefusedError("this node was started to stay", hint="stop it first")
        self._stop("yielded")
        return {"yielding": True}

    @staticmethod
    async def _hold(emit: Emit | None) -> dict[str, Any]:
        if emit is None:
            raise UsageError("node.hold needs a caller that listens")
        await emit({"event": "held"})
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")
