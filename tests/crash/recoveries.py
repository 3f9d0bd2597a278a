"""A node dies at each call that writes or syncs while its owner is recovered with the code.

No agent may be left with a key that a crash took along: whoever owns it afterwards is the owner of
before, or the one whose key the vault holds.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from keys.errors import RoostError
from keys.ids import AgentId
from keys.keyfile import read_secret
from keys.limits import VAULT_BYTES_MAX
from keys.vault import open_owner
from memory.door import open_connection
from memory.nodedb import open_node_db
from memory.store import AgentStore
from tests.awaits.processes import PASSPHRASE
from tests.crash.pairs import AGENT, Watched


def _keys(node: Watched) -> tuple[str, str, bytes, list[bytes]]:
    """The owner by the database and by the vault, its key, and the key of each agent's owner."""
    path = node.home / "keys" / "owner.vault"
    held = open_owner(read_secret(path, VAULT_BYTES_MAX), PASSPHRASE)
    with open_node_db(node.home / "node.db") as db:
        said = str(db.setting("owner"))
    current = []
    for file in (node.home / "agents").glob("*.db"):
        connection = open_connection(file)
        authority = AgentStore(connection, AgentId.parse(file.stem)).authority
        assert authority.founder is not None
        current.append(bytes(authority.current_key(authority.founder)))
        connection.close()
    return said, str(held.owner), bytes(held.public), current


def _one(root: Path, number: int, at: int) -> int:
    """One recovery; how many calls it makes (``at`` 0), or whether it died."""
    node = Watched(root, f"r{number}")
    code = str(node.run("init", "--name", "r").result["recovery"])
    try:
        assert node.up()
        for name in (AGENT, "clio"):
            node.do("agent.create", name=name, passphrase=PASSPHRASE)
        _, _, old, _ = _keys(node)
        node.watching.arm(at)
        with suppress(RoostError, AssertionError):  # it died before it answered
            node.do("owner.recover", code=code, passphrase=PASSPHRASE)
        calls, died = node.watching.disarm(), bool(node.watching.dead)
        if died:
            node.down()
            assert node.up(), node.journal.read_text()[-2000:]
        said, held, key, current = _keys(node)
        assert said == held, f"the home is of {said}, and its vault of {held}"
        assert len(current) == 2
        assert set(current) <= {old, key}, "an agent's owner has a key that is nowhere"
        assert at or set(current) == {key} != {old}, "positive control: it was recovered"
        assert node.do("doctor")["ok"]
        return died if at else calls
    finally:
        node.down(9)


def play(root: Path, stride: int) -> dict[str, Any]:
    """Count, then die at every how many-th call; what came of it."""
    calls = _one(root, 0, 0)
    died, failed = 0, []
    chosen = range(min(calls % stride + 1, calls // 2), calls + 1, stride)
    for number, at in enumerate(chosen, 1):
        try:
            died += _one(root, number, at)
        except Exception as exc:  # noqa: BLE001 - the others are tried all the same
            failed.append(f"recovery,{at}: {type(exc).__name__}: {exc}")
            print(f"FAILED {failed[-1]}", flush=True)
    return {"calls": calls, "tried": len(chosen), "died": died, "failed": failed}
