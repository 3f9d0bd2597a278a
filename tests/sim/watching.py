"""What leaves a device for another is checked there and then, by rules written a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keys.ids import DeviceId
from keys.statements import parse as parse_statement
from sync.frames import Failure, FrameReader, parse
from sync.messages import Hello, Refusal, StatementsReply
from tests.reference.rights import Rights
from tests.sim.network import Server

if TYPE_CHECKING:
    from tests.sim.device import Device
    from tests.sim.world import World

REMOVALS = ("revoke", "decertify")


class Watcher:
    """Nothing of an agent is served to a device that may not read it then (S-I2)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[tuple[bytes, DeviceId], bool] = {}

    def check(self, server: Server, client: Server, path: str, piece: bytes | Refusal) -> None:
        """Look at a piece of an answer; fails if it is more than the asker may have."""
        counts = self._world.counts
        if isinstance(piece, Refusal):
            counts["pieces: refusals"] += 1
            return
        device = self._world.devices[server.name]
        may_read = self._may_read(device, client.device)
        counts["pieces: served" if may_read else "pieces: to the removed"] += 1
        if may_read:
            return
        if path.endswith("/hello"):
            assert not Hello.decode(piece).agents, "a hello names what may not be read"
        elif path.endswith("/statements"):
            reply = StatementsReply.decode(piece)
            kinds = {parse_statement(*signed).kind for signed in reply.statements}
            assert not reply.keys, "keys for a device without the right to read"
            assert kinds <= set(REMOVALS), f"statements for a removed device: {kinds}"
        else:
            reader = FrameReader()
            reader.feed(piece)
            frames = [parse(body) for body in iter(reader.next_body, None)]
            assert all(isinstance(f, Failure) for f in frames), "entries for a removed device"

    def _may_read(self, device: Device, peer: DeviceId) -> bool:
        place = (device.store.statements_digest(), peer)
        if place not in self._known:
            statements = device.store.statements()
            rights = Rights(device.sim.agent, statements)
            everything = frozenset(bytes(s.id) for s in statements)
            self._known[place] = bool(rights.ways(peer, "read", everything))
        return self._known[place]
