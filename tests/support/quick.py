"""Real ``roost`` processes, spoken to through their sockets: a command each would cost a start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from node.offline import run_verb
from node.setup import init_home
from tests.support import cluster
from tests.support.cluster import PASSPHRASE, Cluster, until
from tests.support.processes import CHEAP, call

LOOK_S = 0.05


@dataclass
class Quick(cluster.Node):
    """A home, and the node process on it while it is up."""

    def ask(self, verb: str, **params: Any) -> dict[str, Any]:
        """The result of a verb, or ``{"error": …}``; of the node, else as a command does it."""
        if self.process is not None:
            reply = call(self.home, verb, **params)
            return reply if "error" in reply else dict(reply["result"])
        try:
            return run_verb(self.home, verb, params)
        except RoostError as exc:
            return {"error": exc.as_dict()}

    def do(self, verb: str, **params: Any) -> dict[str, Any]:
        """The result of a verb that must succeed."""
        found = self.ask(verb, **params)
        assert "error" not in found, f"{self.name}: {verb}: {found}"
        return found

    def remember(self, text: str) -> str:
        """Write a memory; its id."""
        return str(self.do("remember", agent="muse", text=text)["record"])

    def finds(self, query: str, agent: str = "muse") -> list[str]:
        """The records that a search shows."""
        return [r["record"] for r in self.do("search", agent=agent, query=query)["results"]]

    def alert(self, code: str) -> str:
        """The message of an alert; empty where there is none."""
        found = self.do("status")["alerts"]
        return next((str(x["message"]) for x in found if x["code"] == code), "")


def quick_node(made: Cluster, root: Path, name: str, *, up: bool = True) -> Quick:
    """A new home with a vault that costs nothing to open."""
    node = Quick(root, name)
    init_home(node.home, name=name, owner=None, recovery=False, passphrase=PASSPHRASE, cost=CHEAP)
    made.nodes.append(node)
    if up:
        node.up()
    return node


def found(node: Quick) -> None:
    """Found the agent that these tests are about."""
    node.do("agent.create", name="muse", passphrase=PASSPHRASE)


def same(*nodes: Quick) -> None:
    """Wait until all nodes report one digest."""

    def equal() -> bool:
        time.sleep(LOOK_S)
        said = [node.ask("digest", agent="muse") for node in nodes]
        return all("digest" in s for s in said) and len({s["digest"] for s in said}) == 1

    until(equal, "equal digests")
