"""The one place where a call becomes an act: verbs by name, their parameters, their results.

1. Every surface (command line, MCP and HTTP) only ever calls this.
2. Who calls is made of the credential, before the verb runs (``node.callers``), and what it may do
   is looked up in one table (``node.rules``).
3. A verb nobody knows, or a parameter a verb does not know, is an error. Refusals are noted.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from keys.errors import RoostError, UsageError
from memory.shapes import folded_name
from node.caller import ACCOUNT, Caller, Credential
from node.callers import Callers
from node.core import NodeCore
from node.params import Params
from node.refusals import note_refusal
from node.rules import Does, admit, rule_of
from node.service import Emit
from node.verbs import (
    authority,
    checking,
    clashes,
    doctoring,
    lifecycle,
    moving,
    policies,
    quarantine,
    reading,
    review,
    session,
    writing,
)
from node.verbs.context import context_verb
from node.verbs.keeping import KEEPING
from node.verbs.kinds import WRITING_KINDS
from node.verbs.kindviews import READING_KINDS

if TYPE_CHECKING:
    from node.network import Network

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
    "search": reading.search_verb,
    "list": reading.list_verb,
    "show": reading.show,
    "history": reading.history_verb,
    "conflicts.list": clashes.conflicts_list,
    "conflicts.resolve": clashes.conflicts_resolve,
    "quarantine.list": quarantine.quarantine_list,
    "quarantine.adopt": quarantine.quarantine_adopt,
    "quarantine.drop": quarantine.quarantine_drop,
    "quarantine.settle": quarantine.quarantine_settle,
    "review.list": review.review_list,
    "review.show": review.review_show,
    "review.approve": review.review_approve,
    "review.reject": review.review_reject,
    "agent.create": authority.create,
    "agent.list": authority.list_agents,
    "agent.show": authority.show_agent,
    "agent.policy": policies.policy_verb,
    "agent.policy.set": policies.set_policy,
    "grant": authority.grant,
    "revoke": authority.revoke,
    "devices.revoke": authority.revoke_device,
    "reinstate": authority.reinstate,
    "lift": authority.lift,
    "digest": checking.digest,
    "rebuild": checking.rebuild,
    "audit.verify": checking.audit_verify,
    "audit.log": checking.audit_log,
    "audit.refused": session.refused,
    "session.about": session.about,
    "session.changes": session.changes,
    "token.create": session.create_token,
    "token.list": session.list_tokens,
    "token.revoke": session.revoke_token,
    "export.page": moving.export_page_verb,
    "import.begin": moving.import_begin,
    "import.lines": moving.import_lines,
    "doctor": doctoring.doctor,
    "context": context_verb,
    "supersede": lifecycle.supersede_verb,
    "merge": lifecycle.merge_verb,
    "pin": lifecycle.pin_verb,
    "unpin": lifecycle.unpin_verb,
    **KEEPING,
    **WRITING_KINDS,
    **READING_KINDS,
}


# Verbs that reach other nodes, by the module that has them: loaded when one is called, since what
# they need costs more to load than all that a command on this machine does.
_NETWORK_MODULES: Final[Mapping[str, str]] = {
    "pair.open": "network",
    "pair.confirm": "network",
    "pair.join": "network",
    "pair.list": "network",
    "peers": "network",
    "peers.remove": "network",
    "sync": "network",
    "agent.accept": "network",
    "status": "status",
    "permissions": "status",
    "forget": "status",
    "forget.status": "status",
    "agent.forget": "status",
    "owner.recover": "status",
    "devices.renew": "renewing",
}


class Dispatcher:
    """Runs verbs against one open home."""

    def __init__(self, core: NodeCore, network: Callable[[], Network]) -> None:
        self._core, self._network = core, network
        self._callers = Callers(core)

    async def call(
        self,
        verb: str,
        params: Mapping[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> Result:
        """The result of a verb; raises ``RoostError``. What is refused is noted."""
        caller: Caller | None = None
        known = verb in VERBS or verb in _NETWORK_MODULES
        try:
            caller = await self._callers.of(credential)
            if not known:
                raise _no_verb(verb)
            return await self._run(verb, params, emit, caller)
        except RoostError as exc:
            named = params.get("agent")
            await note_refusal(self._core, exc, verb if known else None, caller, named)
            raise

    async def _run(
        self, verb: str, params: Mapping[str, Any], emit: Emit | None, caller: Caller
    ) -> Result:
        taken = Params(admit(verb, caller, await self._names(caller), params), caller)
        rule = rule_of(verb)
        if caller.token is not None:
            rows = params.get("rows")
            made = len(rows) if isinstance(rows, list) else int(rule.does is Does.CREATE)
            self._callers.charge(caller, len(repr(params)), made)
        module = _NETWORK_MODULES.get(verb)
        if module is not None:
            found = importlib.import_module(f"node.verbs.{module}").NETWORK_VERBS[verb]
            done: Result = await found(self._core, self._network(), taken, emit)
        else:
            done = await VERBS[verb](self._core, taken)
        if caller.bound and rule.writes and done.get("created"):
            caller.own.add(str(done.get("record")))
        return done

    async def _names(self, caller: Caller) -> frozenset[str]:
        """What the agent of a caller is called here."""
        if caller.agent is None:
            return frozenset()
        name = (await self._core.agents.open(caller.agent)).name
        return frozenset({name, folded_name(name)})


def _no_verb(verb: str) -> UsageError:
    near = difflib.get_close_matches(verb, [*VERBS, *_NETWORK_MODULES], 1)
    return UsageError(f"no verb {verb[:40]!r}", hint=f"did you mean {near[0]}?" if near else None)
