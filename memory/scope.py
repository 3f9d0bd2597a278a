"""Scope: whose memory a read is of, and who reads. A required argument of every read function."""

from __future__ import annotations

from dataclasses import dataclass

from keys.errors import RefusedError
from keys.ids import AgentId


@dataclass(frozen=True, slots=True)
class Scope:
    """One agent's memory as one reader may see it.

    ``every_state`` is for a person's own screens: it shows what is withheld, with its state. An
    agent's surface never has it. With a ``channel`` nothing that was said in another is seen.
    """

    agent: AgentId
    every_state: bool
    channel: str | None = None

    @property
    def readers(self) -> Scope:
        """The same without what is withheld."""
        return Scope(self.agent, every_state=False, channel=self.channel)

    def require(self, agent: AgentId) -> None:
        """Raise ``RefusedError`` unless the store read from is this scope's agent's."""
        if self.agent != agent:
            raise RefusedError("a read outside its scope", agent=str(agent))
