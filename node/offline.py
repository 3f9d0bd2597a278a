"""One verb on a home that no node serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from node.assembly import command_dispatch
from node.core import NodeCore
from node.moment import run_on_home


def run_verb(path: Path, verb: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of ``verb``, run in this process; raises as ``run_on_home`` and the verb do."""

    async def work(core: NodeCore) -> dict[str, Any]:
        return await command_dispatch(core).call(verb, params, None)

    return run_on_home(path, work)
