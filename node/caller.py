"""Who calls: bound from the credential, never from a parameter of a verb.

1. The account's own commands come without a token: principal ``local``, "this account, not proven".
   They may say that they speak for one agent (``roost mcp`` does): that only takes rights away.
2. A bearer token makes its caller the ``agent`` it was made for.
3. Whoever speaks for an agent reaches that agent alone, and sees only what is live.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from crdt.entry import Via
from keys.ids import AgentId
from memory.scope import Scope
from memory.store import AgentStore

OWN_WRITES_MAX: Final = 10_000
DEFAULT_SESSION: Final = "default"
AGENT_PROVENANCES: Final = ("agent", "tool", "file", "web")


class Principal(StrEnum):
    """The kinds of caller."""

    LOCAL = "local"
    PERSON = "person"
    AGENT = "agent"
    CONSOLIDATOR = "consolidator"
    IMPORTER = "importer"


_VIAS: Final = {
    Principal.LOCAL: Via.LOCAL,
    Principal.PERSON: Via.PERSON,
    Principal.AGENT: Via.AGENT,
    Principal.CONSOLIDATOR: Via.CONSOLIDATOR,
    Principal.IMPORTER: Via.IMPORTER,
}


@dataclass(frozen=True, slots=True)
class Credential:
    """What a surface was shown by whoever calls.

    ``bearer`` is a token. Without one, ``agent`` names the agent that the account speaks for, in a
    session of the kind ``session``. ``run`` tells one session of a surface from the next.
    """

    bearer: str | None = field(default=None, repr=False)
    agent: str | None = None
    session: str = DEFAULT_SESSION
    channel: str | None = None
    profile: str = "default"
    run: str | None = None


ACCOUNT: Final = Credential()


class OwnWrites:
    """The records that one session made, as long as the node runs (R37)."""

    def __init__(self) -> None:
        self._made: set[str] = set()

    def add(self, record: str) -> None:
        """Note one; beyond ``OWN_WRITES_MAX`` nothing is noted, and a person is asked instead."""
        if len(self._made) < OWN_WRITES_MAX:
            self._made.add(record)

    def __contains__(self, record: object) -> bool:
        return str(record) in self._made


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a verb. ``agent`` None: the account itself, which sees every agent and state."""

    principal: Principal = Principal.LOCAL
    agent: AgentId | None = None
    session: str = DEFAULT_SESSION
    channel: str | None = None
    profile: str = "default"
    token: bytes | None = None
    own: OwnWrites = field(default_factory=OwnWrites, repr=False, compare=False)

    @property
    def via(self) -> Via:
        """What an entry that this caller writes says of it."""
        return _VIAS[self.principal]

    @property
    def bound(self) -> bool:
        """Whether the call speaks for one agent, on an agent's surface."""
        return self.agent is not None

    def scope(self, store: AgentStore) -> Scope:
        """What this caller may see of an agent: every state only without an agent's surface."""
        agent = store.agent if self.agent is None else self.agent
        return Scope(agent, every_state=not self.bound, channel=self.channel)


LOCAL: Final = Caller()
