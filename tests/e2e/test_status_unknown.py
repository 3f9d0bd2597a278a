"""What a status says of peers that nobody has spoken to: never that all is well."""

from __future__ import annotations

from keys.tls import certificate_of
from memory.peers import NewPeer
from tests.support.peers import PASSPHRASE, Node, befriend, equal, running, share


async def test_S_E3_a_peer_that_was_never_met_is_unknown_and_one_met_before_is_offline(
    three: list[Node],
) -> None:
    """Positive control: a peer that answers is connected and lacks exactly nothing."""
    a, b, never = three
    async with running(a, b, never):
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await a("remember", agent="muse", text="a word")
        await befriend(a, b)
        await share(a, "muse", b, "read", "write")
        await equal("muse", a, b)
        new = NewPeer(never.core.device, "never", certificate_of(never.core.key))
        await a.core.db.run(lambda db: db.peers.add(new, a.core.clock.now_us()))
        rows = {p["name"]: p for p in (await a("status"))["peers"]}
        assert rows["b"]["state"] == "connected"
        assert rows["never"]["state"] == "unknown"
        assert rows["never"]["last_seen"] is None
    again = Node(a.path, new=False)
    async with running(again):
        rows = {p["name"]: p for p in (await again("status"))["peers"]}
        assert rows["b"]["state"] == "offline"
        assert rows["b"]["last_seen"] is not None
        (agent,) = rows["b"]["agents"]
        assert (agent["they_lack"], agent["we_lack"]) == (None, None), "unknown, never nothing"
        assert agent["reason"] == "offline"
