"""An agent whose making was cut off before its first commit is no agent."""

from __future__ import annotations

from pathlib import Path

from keys.ids import AgentId
from memory.door import make_file, open_connection
from memory.nodedb import open_node_db
from memory.store import AgentStore
from node.offline import run_verb
from tests.crash.homes import AGENT, create, setup


def _begun(home: Path, number: int) -> Path:
    """A file as ``agent create`` leaves it that was killed before anything was in it."""
    agent = AgentId(bytes([number]) * 32)
    path = home / "agents" / f"{agent}.db"
    make_file(path)
    connection = open_connection(path)
    AgentStore(connection, agent, [], None)
    connection.close()
    key = home / "keys" / f"{agent}.values"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    return path


def test_S_G1_what_is_left_of_an_agent_that_was_never_founded_goes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    setup(home)
    create(home)
    left, known = _begun(home, 1), _begun(home, 2)
    with open_node_db(home / "node.db") as db:
        db.set_agent(AgentId(bytes([2]) * 32), accepted=True, now_us=1)
    names = {a["name"]: a["agent"] for a in run_verb(home, "agent.list", {})["agents"]}
    assert AGENT in names, "positive control: one with a founding stays"
    assert len(names) == 2
    assert not left.exists()
    assert not (home / "keys" / f"{left.stem}.values").exists()
    assert known.exists(), "node.db names it: peers will fill it again"
