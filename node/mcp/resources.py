"""Resources: the block and single memories, and who is told when one of them reads otherwise.

A subscriber is told of a change only where what it would read has changed: what waits for a person,
or belongs to another agent, tells nobody anything.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Final

from keys.errors import NotFoundError, RoostError, UsageError
from keys.ids import hash256
from node.clock import SystemClock
from node.mcp.tools import Call, Result

CONTEXT_URI: Final = "memory://context"
RECORD_URI: Final = "memory://record/"
WATCHED_MAX: Final = 64
WAIT_S: Final = 20.0
AGAIN_S: Final = 1.0


async def read(call: Call, uri: str) -> tuple[str, str]:
    """(text, type) of a resource; raises ``NotFoundError`` where there is none to see."""
    if uri == CONTEXT_URI:
        return str((await call("context", {}))["text"]), "text/plain"
    if uri.startswith(RECORD_URI):
        seen = await call("show", {"record": uri.removeprefix(RECORD_URI)})
        return json.dumps(seen, ensure_ascii=False), "application/json"
    raise NotFoundError(f"no resource {uri[:80]!r}", hint=f"{CONTEXT_URI} or {RECORD_URI}ID")


class Watched:
    """The resources that one subscriber watches, with what each read as when it last looked."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._prints: dict[str, bytes] = {}

    async def add(self, uris: Iterable[str]) -> None:
        """Watch some more; raises ``UsageError`` where they are too many."""
        for uri in uris:
            if len(self._prints) >= WATCHED_MAX:
                raise UsageError(f"at most {WATCHED_MAX} resources are watched")
            self._prints[uri] = await self._print(uri)

    def remove(self, uri: str) -> None:
        """Watch one no more."""
        self._prints.pop(uri, None)

    async def _print(self, uri: str) -> bytes:
        try:
            text, _ = await read(self._call, uri)
        except RoostError as exc:
            return exc.code.encode()
        return hash256(b"resource", text.encode("utf-8", "replace"))

    async def changes(self) -> AsyncIterator[str]:
        """The resources that read otherwise now, as long as somebody asks."""
        since: Result = {}
        while True:
            try:
                told = await self._call("session.changes", since | {"wait_s": WAIT_S})
            except RoostError:  # the node stops, or is started anew
                await SystemClock().sleep(AGAIN_S)
                continue
            first, since = not since, {"since": told["at"]}
            if not (first or told["changed"]):
                continue
            for uri, before in list(self._prints.items()):
                now = await self._print(uri)
                if now != before and uri in self._prints:
                    self._prints[uri] = now
                    yield uri
