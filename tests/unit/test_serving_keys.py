"""R25: which fingerprint keys a device gets with the statements, and when it gets none."""

from pathlib import Path

from crdt.fingerprint import FingerprintKey
from node.serving import statements_for
from sync.messages import StatementsRequest
from tests.support.author import seeded
from tests.support.memory_world import World

ASKED = StatementsRequest(())
NOW_MS = 1_700_000_000_000


def test_a_key_that_no_statement_names_yet_is_not_given_to_anybody(tmp_path: Path) -> None:
    """A removal makes a key before its statement; the device may ask in between."""
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    a.store.keys.append(FingerprintKey(seeded("for those who stay")))
    reply = statements_for(a.store, b.key.device, ASKED, NOW_MS)
    assert reply is not None
    assert [box.commitment for box in reply.keys] == a.store.authority.key_commitments()
    world.close()


def test_a_removed_device_gets_its_removal_and_no_key(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    removal = a.revoke(b, "read")
    reply = statements_for(a.store, b.key.device, ASKED, NOW_MS)
    assert reply is not None
    assert reply.keys == ()
    assert [data for data, _ in reply.statements] == [removal.data]
    world.close()
