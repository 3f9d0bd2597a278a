"""The one place where a call becomes an act: verbs by name, their parameters, their results.

1. Every surface (command line, later MCP and HTTP) only ever calls this.
2. A verb nobody knows, or a parameter a verb does not know, is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from keys.errors import UsageError
from node.core import NodeCore
from node.network import Network
from node.params import Params
from node.service import Emit
from node.verbs import (
    authority,
    checking,
    erasing,
    moving,
    reading,
    review,
    status,
    writing,
)
from node.verbs.network import NETWORK_VERBS

Result = dict[str, Any]
Verb = Callable[[NodeCore, Params], Awaitable[Result]]

VERBS: Final[Mapping[str, Verb]] = {
    "remember": writing.remember_verb,
    "remember.batch": writing.remember_many,
    "revise": writing.revise_verb,
    "retire": writing.retire,
    "keep": writing.keep,
    "tag": writing.tag,
    "untag": writing.untag,
    "move": writing.move,
    "forget": erasing.forget_verb,
    "search": reading.search_verb,
    "list": reading.list_verb,
    "show": reading.show,
    "history": reading.history_verb,
    "conflicts.list": reading.conflicts,
    "quarantine.list": reading.quarantine,
    "review.list": review.review_list,
    "review.show": review.review_show,
    "review.approve": review.review_approve,
    "review.reject": review.review_reject,
    "agent.create": authority.create,
    "agent.list": authority.list_agents,
    "agent.show": authority.show_agent,
    "grant": authority.grant,
    "revoke": authority.revoke,
    "devices.revoke": authority.revoke_device,
    "reinstate": authority.lift,
    "lift": authority.lift,
    "digest": checking.digest,
    "rebuild": checking.rebuild,
    "audit.verify": checking.audit_verify,
    "audit.log": checking.audit_log,
    "export.page": moving.export_page_verb,
    "import.begin": moving.import_begin,
    "import.lines": moving.import_lines,
    "doctor": status.doctor,
}


class Dispatcher:
    """Runs verbs against one open home."""

    def __init__(self, core: NodeCore, network: Network) -> None:
        self._core, self._network = core, network

    async def call(self, verb: str, params: Mapping[str, Any], emit: Emit | None = None) -> Result:
        """The result of a verb; raises ``RoostError``."""
        taken = Params(params)
        network_verb = NETWORK_VERBS.get(verb) or status.NETWORK_VERBS.get(verb)
        if network_verb is not None:
            return await network_verb(self._core, self._network, taken, emit)
        known = VERBS.get(verb)
        if known is None:
            near = difflib.get_close_matches(verb, [*VERBS, *NETWORK_VERBS], 1)
            raise UsageError(
                f"no verb {verb[:40]!r}", hint=f"did you mean {near[0]}?" if near else None
            )
        return await known(self._core, taken)
