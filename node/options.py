"""How a node is to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from keys.errors import UsageError
from node.lock import Role

IDLE_STOP_S: Final = 60.0
IDLE_STOP_S_MAX: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class UpOptions:
    """How a node is to run; the fields are the options of ``roost up``.

    ``idle_stop`` is in seconds, above 0, and is for a background node.
    """

    listen: str | None = None
    api: str | None = None
    no_discovery: bool = False
    no_scheduler: bool = False
    low_power: bool = False
    background: bool = False
    idle_stop: float = IDLE_STOP_S

    def __post_init__(self) -> None:
        if not 0 < self.idle_stop <= IDLE_STOP_S_MAX:
            raise UsageError(f"a node stops after 0 to {IDLE_STOP_S_MAX:.0f} idle seconds")

    @property
    def discovery(self) -> bool:
        """Whether to look for peers on the local network."""
        return not self.no_discovery

    @property
    def scheduler(self) -> bool:
        """Whether to run jobs."""
        return not self.no_scheduler

    @property
    def role(self) -> Role:
        """What the process holds the home as."""
        return Role.BACKGROUND if self.background else Role.NODE
