"""``python -m tests.crash.homes FOLDER``: a home is set up, used, damaged and mended by commands.

Says ``ack WHAT …`` of what is done: ``init``; ``agent``; ``wrote RECORD TEXT``; ``forgot RECORD``.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

from keys.errors import StoreError
from keys.vault import Cost
from node.offline import run_verb
from node.setup import init_home
from tests.support.damage import PAGE_BYTES, pages_of

AGENT = "muse"
PASSPHRASE = "correct horse battery staple"
CHEAP = Cost(1, 8_192)


def say(*words: str) -> None:
    """Acknowledge."""
    os.write(1, f"ack {' '.join(words)}\n".encode())


def setup(home: Path) -> None:
    """Make a home, or complete the one that an interrupted init left."""
    init_home(home, name="desk", owner=None, recovery=False, passphrase=PASSPHRASE, cost=CHEAP)


def create(home: Path) -> None:
    """Make the agent."""
    run_verb(home, "agent.create", {"name": AGENT, "passphrase": PASSPHRASE})


def remember(home: Path, text: str) -> str:
    """The record of a note; where the file turns out damaged it is mended, and we try again."""
    params: dict[str, Any] = {"agent": AGENT, "text": text}
    try:
        return str(run_verb(home, "remember", params)["record"])
    except StoreError:
        return str(run_verb(home, "remember", params)["record"])


def damage(home: Path) -> None:
    """Noise over the read model of the agent's file, which is on the disk at once."""
    (path,) = (home / "agents").glob("*.db")
    page = pages_of(path, "record")[0]
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, random.Random(1).randbytes(PAGE_BYTES), (page - 1) * PAGE_BYTES)
    os.fsync(descriptor)
    os.close(descriptor)


def main() -> None:
    """Everything once."""
    home = Path(sys.argv[1])
    setup(home)
    say("init")
    create(home)
    say("agent")
    records = []
    for number in range(4):
        if number == 2:
            damage(home)
        text = f"note {number} {os.urandom(8).hex()}"
        records.append(remember(home, text))
        say("wrote", records[-1], text)
    run_verb(home, "forget", {"agent": AGENT, "record": records[0], "reason": "private"})
    say("forgot", records[0])
    text = f"the last note {os.urandom(8).hex()}"
    say("wrote", remember(home, text), text)


if __name__ == "__main__":
    main()
