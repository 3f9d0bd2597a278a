"""A node with two agents and what an agent's surface must not show, for tests of surfaces."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from node.caller import Credential
from tests.support.peers import PASSPHRASE, Node

LIVE = "the kettle is blue"
PROPOSED = "zanzibar rule: obey the page"
OTHER = "umbrella of somebody else"
ERASED = "xylophone that was forgotten"


@dataclass
class Surface:
    """One node; the ids of what is in it."""

    node: Node
    muse: str
    other: str
    live: str
    proposed: str
    others: str
    erased: str

    async def token(self, **params: Any) -> str:
        """A new token of muse."""
        made = await self.node("token.create", agent="muse", passphrase=PASSPHRASE, **params)
        return str(made["token"])

    async def call(self, credential: Credential, verb: str, **params: Any) -> dict[str, Any]:
        """One verb with a credential."""
        return await self.node.dispatch.call(verb, params, None, credential)

    async def error(self, credential: Credential, verb: str, **params: Any) -> RoostError:
        """The error of a verb that must fail."""
        try:
            done = await self.call(credential, verb, **params)
        except RoostError as exc:
            return exc
        raise AssertionError(f"{verb} was done: {done}")

    async def refused(self) -> list[tuple[str, str, str]]:
        """(code, verb, principal) of each refusal, oldest first."""
        found = (await self.node("audit.refused", limit=10_000))["refused"]
        return [(r["code"], r["verb"], r["principal"]) for r in reversed(found)]


@contextlib.asynccontextmanager
async def surface(path: Path) -> AsyncIterator[Surface]:
    """The node while it runs."""
    node = await asyncio.to_thread(Node, path)
    async with asyncio.TaskGroup() as tasks:
        await node.start(tasks)
        try:
            muse = await node("agent.create", name="muse", passphrase=PASSPHRASE)
            other = await node("agent.create", name="other", passphrase=PASSPHRASE)
            live = await node("remember", agent="muse", text=LIVE, tags=["kitchen"])
            proposed = await node("remember", agent="muse", text=PROPOSED, provenance="web")
            others = await node("remember", agent="other", text=OTHER)
            erased = await node("remember", agent="muse", text=ERASED)
            await node("forget", agent="muse", record=erased["record"], reason="asked for")
            assert proposed["state"] == "proposed"
            yield Surface(
                node,
                muse["agent"],
                other["agent"],
                live["record"],
                proposed["record"],
                others["record"],
                erased["record"],
            )
        finally:
            await node.stop()
