"""Which verbs there are for whom: the one table, and the one place where it is enforced.

1. A verb without a line here is for the account alone. ``PERSON`` verbs are never on an agent's
   surface; those with ``passphrase`` sign as the owner, and fail without the passphrase.
2. A session's kind says what its agent may do; an unknown kind may do nothing.
3. The agent is the credential's. Another one in the parameters is refused, whether or not there is
   such an agent, and so is whatever only a person may say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from keys.errors import RefusedError
from memory.shapes import folded_name
from node.caller import DEFAULT_SESSION, Caller, Principal


class Does(Enum):
    """What a verb does with an agent's memory."""

    PERSON = auto()  # anything else: for the account alone
    READ = auto()
    CREATE = auto()
    CHANGE = auto()
    RETIRE = auto()
    FORGET = auto()
    TELL = auto()  # who the caller is


@dataclass(frozen=True, slots=True)
class Rule:
    """For whom a verb is."""

    does: Does
    passphrase: bool = False

    @property
    def writes(self) -> bool:
        """Whether an agent changes its memory by it."""
        return self.does in {Does.CREATE, Does.CHANGE, Does.RETIRE, Does.FORGET}


class NotForAgentsError(RefusedError):
    """The verb, or a parameter, is not on an agent's surface."""

    code = "not_for_agents"


class SessionKindError(RefusedError):
    """The session's kind does not allow the verb."""

    code = "session_kind"


class OtherAgentError(RefusedError):
    """The parameters name another agent than the credential."""

    code = "other_agent"


_READ: Final = Rule(Does.READ)
_CREATE: Final = Rule(Does.CREATE)
_CHANGE: Final = Rule(Does.CHANGE)
_PERSON: Final = Rule(Does.PERSON)
_OWNER: Final = Rule(Does.PERSON, passphrase=True)

RULES: Final[Mapping[str, Rule]] = {
    "session.about": Rule(Does.TELL),
    "session.changes": _READ,
    "remember": _CREATE,
    "remember.batch": _CREATE,
    "revise": _CHANGE,
    "tag": _CHANGE,
    "untag": _CHANGE,
    "move": _CHANGE,
    "retire": Rule(Does.RETIRE),
    "forget": Rule(Does.FORGET),
    "search": _READ,
    "list": _READ,
    "show": _READ,
    "history": _READ,
    "context": _READ,
    "supersede": _CHANGE,
    "merge": _CHANGE,
    "pin": _PERSON,
    "unpin": _PERSON,
    "keep": _PERSON,
    "conflicts.list": _PERSON,
    "conflicts.resolve": _PERSON,
    "quarantine.list": _PERSON,
    "quarantine.adopt": _PERSON,
    "quarantine.drop": _OWNER,
    "quarantine.settle": _OWNER,
    "review.list": _PERSON,
    "review.show": _PERSON,
    "review.approve": _OWNER,
    "review.reject": _OWNER,
    "agent.create": _OWNER,
    "agent.list": _PERSON,
    "agent.show": _PERSON,
    "agent.accept": _OWNER,
    "agent.forget": _OWNER,
    "agent.policy": _PERSON,
    "agent.policy.set": _OWNER,
    "grant": _OWNER,
    "revoke": _OWNER,
    "devices.revoke": _OWNER,
    "devices.renew": _OWNER,
    "reinstate": _OWNER,
    "lift": _OWNER,
    "digest": _PERSON,
    "rebuild": _PERSON,
    "audit.verify": _PERSON,
    "audit.log": _PERSON,
    "audit.refused": _PERSON,
    "export.page": _PERSON,
    "import.begin": _PERSON,
    "import.lines": _PERSON,
    "doctor": _PERSON,
    "pair.open": _PERSON,
    "pair.confirm": _PERSON,
    "pair.join": _PERSON,
    "pair.list": _PERSON,
    "peers": _PERSON,
    "peers.remove": _PERSON,
    "sync": _PERSON,
    "status": _PERSON,
    "permissions": _PERSON,
    "forget.status": _PERSON,
    "owner.recover": _OWNER,
    "diary.add": _CREATE,
    "diary.list": _READ,
    "diary.remove": _PERSON,
    "diary.show": _READ,
    "entity.add": _CREATE,
    "entity.list": _READ,
    "entity.move": _CHANGE,
    "entity.remove": Rule(Does.RETIRE),
    "entity.set": _CHANGE,
    "entity.show": _READ,
    "file.add": _CREATE,
    "file.list": _READ,
    "file.remove": Rule(Does.RETIRE),
    "file.set": _CHANGE,
    "file.show": _READ,
    "identity.add": _PERSON,
    "identity.list": _READ,
    "identity.show": _READ,
    "layer.list": _READ,
    "layer.set": _PERSON,
    "perspective.list": _READ,
    "perspective.remove": _PERSON,
    "perspective.set": _PERSON,
    "perspective.show": _READ,
    "relation.add": _CREATE,
    "relation.list": _READ,
    "relation.remove": Rule(Does.RETIRE),
    "relation.show": _READ,
    "session.add": _CREATE,
    "session.append": _CREATE,
    "session.end": _CREATE,
    "session.list": _READ,
    "session.remove": _PERSON,
    "session.show": _READ,
    "session.summarise": _CREATE,
    "skill.add": _CREATE,
    "skill.list": _READ,
    "skill.show": _READ,
    "consolidate": _PERSON,
    "jobs.list": _PERSON,
    "jobs.log": _PERSON,
    "jobs.pause": _PERSON,
    "jobs.run": _PERSON,
    "token.create": _OWNER,
    "token.list": _PERSON,
    "token.revoke": _PERSON,
}

SESSION_KINDS: Final[Mapping[str, frozenset[Does]]] = {
    DEFAULT_SESSION: frozenset(Does) - {Does.PERSON},
    "intake": frozenset({Does.READ, Does.CREATE, Does.TELL}),
    "review": frozenset({Does.READ, Does.RETIRE, Does.TELL}),
}

PERSONAL_PARAMETERS: Final = frozenset(
    {"passphrase", "lift", "approve", "heads", "with_sources", "where", "run"}
)


def rule_of(verb: str) -> Rule:
    """The rule of a verb."""
    return RULES.get(verb, _PERSON)


def admit(
    verb: str, caller: Caller, names: frozenset[str], params: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The parameters of a call that may be made; with the agent filled in where it is bound.

    ``names`` are what the caller's agent is called here. Raises ``RefusedError``.
    """
    if caller.agent is None:
        return params
    rule, own = rule_of(verb), str(caller.agent)
    if rule.does is Does.PERSON:
        raise NotForAgentsError("this is for a person", hint="ask the person who runs this node")
    if rule.does not in SESSION_KINDS.get(caller.session, frozenset()):
        raise SessionKindError("a session of this kind may not do this")
    given = {k: v for k, v in params.items() if v is not None}
    personal = PERSONAL_PARAMETERS & given.keys()
    if personal:
        raise NotForAgentsError(f"{min(personal)!r} is for a person")
    named = given.get("agent", "-")
    if not (isinstance(named, str) and {named, folded_name(named)} & (names | {own, "-"})):
        raise OtherAgentError("this credential is for another agent", hint="leave the agent out")
    return given | {"agent": own}


def is_local(caller: Caller) -> bool:
    """Whether the account itself calls, for no agent."""
    return caller.principal is Principal.LOCAL and not caller.bound
