"""Every refusal leaves a row in ``node.db``: code, verb, who and when; never a text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from keys.errors import RefusedError, RoostError, StoreError
from keys.ids import AgentId
from memory.tokens import Refusal
from node.caller import Caller
from node.core import NodeCore
from node.params import UnknownParameterError

UNKNOWN = "?"


async def note_refusal(
    core: NodeCore, exc: RoostError, verb: str | None, caller: Caller | None, named: object
) -> None:
    """Enter a refused call; ``named`` is the agent in its parameters. Other errors are none."""
    if not isinstance(exc, (RefusedError, UnknownParameterError)):
        return
    agent = caller.agent if caller is not None else None
    if agent is None and caller is not None:
        agent = next((h.agent for h in core.agents.all() if named in (h.name, str(h.agent))), None)
    row = Refusal(
        core.clock.now_us(),
        exc.code,
        verb or UNKNOWN,
        caller.principal.value if caller is not None else UNKNOWN,
        agent,
        caller.token if caller is not None else None,
    )
    with contextlib.suppress(StoreError):  # no room: the call is refused all the same
        await core.db.run(lambda db: db.refusals.add(row))


async def note_refused_rows(
    core: NodeCore, errors: Iterable[RoostError], verb: str, caller: Caller, agent: AgentId
) -> None:
    """Enter what was refused of the rows of one call: once for each code."""
    by_code = {exc.code: exc for exc in errors}
    for exc in by_code.values():
        await note_refusal(core, exc, verb, caller, str(agent))
