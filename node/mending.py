"""Looking through what a home holds, and mending what is not as it was written (S-G1, S-G6).

1. An agent's file that was not closed as it should is looked through while the node serves: every
   statement, hash, chain and signature, then the read model against its log.
2. Damage in the log: the file is set aside and made anew. Drift in the read model: it is folded
   anew from the log. Neither derives a deletion from something that is absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain

from keys.errors import DamageError, StoreError
from memory.audit import Audit, file_steps, is_unclean, note_unclean, verify_steps
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle

_DONE = object()


async def look_through(handle: AgentHandle) -> Audit:
    """Verify one agent, in hops of one step: other calls get in between."""
    audit = Audit()
    steps: list[Iterator[None]] = []

    def one(store: AgentStore) -> bool:
        if not steps:
            steps.append(chain(file_steps(store, audit), verify_steps(store, audit)))
        return next(steps[0], _DONE) is not _DONE

    while await handle.read(one):
        pass
    return audit


async def mend(core: NodeCore, handle: AgentHandle) -> list[str]:
    """Look through one agent and mend it; what was found, in words."""
    try:
        audit = await look_through(handle)
    except DamageError as exc:
        return [exc.message]  # it was set aside when it was noticed
    if audit.damage:
        await core.agents.replace(handle, "log")
    elif audit.drift and not await handle.read(lambda store: store.waiting_for_key):
        await handle.write(lambda store, _author, _now_us: store.rebuild())
        core.journal.warning("drift.rebuilt", agent=handle.agent, found=len(audit.drift))
    if not audit.damage:
        await handle.read(lambda store: note_unclean(store, unclean=False))
    return audit.problems


class Scrub:
    """A service: looks through what was not closed as it should, once after the start."""

    name = "scrub"

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        self._job: asyncio.Task[None] | None = None

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin."""
        self._job = tasks.create_task(self._run(), name="scrub")

    async def stop(self) -> None:
        """Leave off; the next start goes on."""
        if self._job is not None:
            self._job.cancel()

    async def _run(self) -> None:
        for handle in self._core.agents.all():
            try:
                if await handle.read(is_unclean):
                    found = await mend(self._core, handle)
                    self._core.journal.info("scrubbed", agent=handle.agent, problems=len(found))
            except StoreError as exc:
                self._core.journal.warning("scrub.failed", agent=handle.agent, code=exc.code)
