"""Every command with its family, where it is defined and what it does, in the order of the help.

The help of ``roost`` and the names of its commands need none of their modules; a module is loaded
when one of its commands is called. A test holds the texts equal to those of the commands.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import Final, NamedTuple

import click


class Listed(NamedTuple):
    """One command of ``roost``."""

    module: str
    purpose: str
    attribute: str = ""


CATALOG: Final[dict[str, dict[str, Listed]]] = {
    "Start here": {
        "init": Listed("setup", "Set up this machine as a node."),
        "up": Listed("setup", "Run the node here until it is stopped."),
        "status": Listed("nodes", "Show the agents, the peers, and what needs attention."),
        "doctor": Listed("nodes", "Check the home, the clock, the network and the keys."),
        "demo": Listed("setup", "Watch two nodes share a memory, and forget it."),
        "completion": Listed("setup", "Print the completion script of a shell."),
    },
    "Agents and what they remember": {
        "agent": Listed("agents", "Create and list agents."),
        "mcp": Listed("mcp", "Serve an agent's memory to a client, on standard input and output."),
        "token": Listed("agents", "List and revoke the tokens of agents."),
        "remember": Listed("memory", "Write memories."),
        "search": Listed("recall", "Find memories by what they say.", "search"),
        "list": Listed("recall", "List memories in every state.", "list_records"),
        "context": Listed("recall", "Show the block that an agent is given."),
        "show": Listed("recall", "Show one memory in full."),
        "history": Listed("recall", "Show every version of a memory."),
        "revise": Listed("memory", "Replace a memory's text by a better one."),
        "supersede": Listed("whole", "Say that one memory replaces another."),
        "merge": Listed("whole", "Make one memory of several."),
        "pin": Listed("whole", "Keep a memory in every context block."),
        "unpin": Listed("whole", "Let a memory compete for its place again."),
        "tag": Listed("memory", "Add tags to a memory."),
        "untag": Listed("memory", "Take tags off a memory."),
        "move": Listed("memory", "Move a memory to another layer."),
        "keep": Listed("memory", "Mark a memory as reviewed and current."),
        "retire": Listed("memory", "Withhold a memory; it stays in the log."),
        "reinstate": Listed("memory", "Take a retired memory back."),
        "lift": Listed("memory", "Let a retired or forgotten value return."),
        "forget": Listed("erasing", "Erase a memory on every node, for good."),
    },
    "What it knows beyond single memories": {
        "entity": Listed("graph", "Keep persons, places, projects and what is known of them."),
        "relation": Listed("graph", "Relate entities."),
        "file": Listed("kinds", "Keep files verbatim, section by section."),
        "session": Listed("kinds", "Keep what was said, turn by turn."),
        "diary": Listed("kinds", "Keep a diary."),
        "layer": Listed("kinds", "See and set the seven layers of an agent."),
        "perspective": Listed("kinds", "Keep how things look: retrospective, current, future."),
        "skill": Listed("kinds", "Keep scripts that a person has approved; Roost never runs them."),
        "identity": Listed("kinds", "Keep who the agent is: a core, and amendments."),
    },
    "What the node does by itself": {
        "consolidate": Listed("jobs", "Take in what was written and review the layers, now."),
        "jobs": Listed("jobs", "See and steer what the node does by itself."),
    },
    "What waits for a person": {
        "review": Listed("review", "Look at proposed memories, approve or reject them."),
        "conflicts": Listed("review", "See memories that two devices changed at once."),
        "quarantine": Listed("review", "See changes that were set aside."),
    },
    "Other devices and people": {
        "pair": Listed("pairing", "Make two nodes know each other."),
        "peers": Listed("pairing", "List the devices this node knows."),
        "sync": Listed("nodes", "Exchange changes with everybody reachable, once."),
        "grant": Listed("authority", "Let a device or a person use an agent's memory."),
        "revoke": Listed("authority", "Take a right back."),
        "devices": Listed("authority", "Revoke a device that was lost, or part two copies of one."),
        "permissions": Listed("authority", "List who may do what with an agent."),
        "owner": Listed("setup", "Get the owner's authority back."),
    },
    "Checking and moving": {
        "audit": Listed("nodes", "Prove the signed log, or read it."),
        "digest": Listed("nodes", "Show the digest of an agent's memory."),
        "rebuild": Listed("nodes", "Make an agent's tables anew from its log."),
        "export": Listed("moving", "Write an agent's memory as JSON Lines.", "export_agent"),
        "import": Listed("moving", "Read memories from a file.", "import_file"),
    },
}


class Commands(MutableMapping[str, click.Command]):
    """The commands by name, each loaded when it is asked for."""

    def __init__(self) -> None:
        self._listed = {
            name: found for family in CATALOG.values() for name, found in family.items()
        }
        self._added: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name in self._added:
            return self._added[name]
        listed = self._listed[name]
        module = importlib.import_module(f"cli.commands.{listed.module}")
        command = getattr(module, listed.attribute or name)
        assert isinstance(command, click.Command)
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._added[name] = command

    def __delitem__(self, name: str) -> None:
        del self._added[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._listed, *self._added])

    def __len__(self) -> int:
        return len(self._listed) + len(self._added)
