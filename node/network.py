"""The network part of a node: who is let in, who is called, and how things stand.

Without a listener (a command on a home that no node serves) it can call peers and nothing else.
"""

from __future__ import annotations

import asyncio
import socket
from random import Random
from typing import Any, Final

from crdt.entry import LogId
from crdt.log import Tip
from keys.address import Address
from keys.errors import NotFoundError, RefusedError, RoostError
from keys.ids import AgentId, DeviceId
from keys.signing import SigningKey, random_bytes
from keys.tls import certificate_of
from memory.peers import NewPeer, Peer
from node.core import NodeCore
from node.exchange import Exchange
from node.finding import Changes, Finding
from node.handle import AgentHandle
from node.joining import Target
from node.listen import address_of
from node.options import UpOptions
from node.pairing import PairingService
from node.peerlink import PeerClient
from node.reachable import reachable_at
from node.replication import Replication, end_all
from node.server import SyncServer
from node.serving import PeerApi
from node.sharing import spread
from node.standing import peer_row, unconfirmed
from node.watching import WatchHub
from sync.advert import Found
from sync.plan import holds
from sync.recovery import RecoverReply

Result = dict[str, Any]
RECEIPTS_S: Final = 3.0
RECEIPTS_STILL_S: Final = 0.6
RECEIPTS_LOOK_S: Final = 0.02


class Network:
    """A service; and the calls of the verbs about peers."""

    name = "network"

    def __init__(
        self,
        core: NodeCore,
        options: UpOptions | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self._core, self._listener = core, listener
        self._options = options or UpOptions()
        self._exchange = Exchange(core, self.addresses)
        self._hub = WatchHub(self._exchange)
        seed = int.from_bytes(random_bytes(8), "big")
        self._replication = Replication(self._exchange, Random(seed))  # noqa: S311 - jitter
        self._exchange.on_start = self._replication.renew  # is the one before still there?
        self._exchange.on_clones = self._tell_clones
        self._server = (
            SyncServer(core, listener, PeerApi(self._exchange, self._hub).answer)
            if listener is not None
            else None
        )
        self.pairing = PairingService(core, self.addresses, self._take_peer, self._follow)
        self._finding: Finding | None = None
        self._jobs: list[asyncio.Task[None]] = []

    @property
    def listen(self) -> str | None:
        """Where peers reach this node; None when nothing serves."""
        return address_of(self._listener) if self._listener is not None else None

    def addresses(self) -> tuple[Address, ...]:
        """What to tell others of where we are."""
        return reachable_at(self._listener) if self._listener is not None else ()

    # -- as a service ----------------------------------------------------------------------------

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Serve, and keep up with every peer."""
        self._core.agents.changed = self._hub.changed
        await spread(self._core)
        self._jobs.append(tasks.create_task(self._hub.run(), name="announce"))
        self.pairing.beside(self._listener)
        if self._server is not None:
            await self._server.start(tasks)
        await self._replication.start(tasks)
        changes = Changes(self._core, self._moved)
        self._jobs.append(tasks.create_task(changes.run(), name="changes"))
        if self._listener is not None and self._options.discovery:
            self._finding = Finding(
                self._core,
                self._listener.getsockname()[1],
                self._replication.evidence,
                low_power=self._options.low_power,
                on_double=self._look_at_double,
            )
            self.pairing.on_port = self._finding.show_pairing
            self._jobs.append(tasks.create_task(self._finding.run(), name="finding"))

    def _tell_clones(self, device: DeviceId) -> None:
        """Both copies of a device are to come back and hear of it (S-A7)."""
        self._hub.end_of(device)
        self._replication.renew(device)

    async def _look_at_double(self, found: Found) -> None:
        """Somebody announces itself as this very device: ask who holds our key there (S-A7)."""
        core = self._core
        certificate = await asyncio.to_thread(certificate_of, core.key)
        client = await PeerClient.make(
            core.key, core.device, certificate, core.home.keys_dir, self._exchange.counters
        )
        try:
            hello = await self._exchange.hello_for(core.device)
            address, reply = await client.dial(found.addresses(), hello)
            await self._exchange.clones.met_ourselves(reply.boot_nonce, str(address))
        except RoostError as exc:  # a forged advert, or one that is over
            core.journal.info("double.no", code=exc.code)
        finally:
            await client.close()

    def _moved(self) -> None:
        """Our machine has other addresses, or has slept."""
        self._core.journal.info("network.changed")
        if self._finding is not None:
            self._finding.refresh()
        self._replication.renew()

    async def stop(self) -> None:
        """End every connection."""
        self._core.agents.changed = None
        self.pairing.beside(None)
        self._hub.end_all()
        jobs, self._jobs = self._jobs, []
        async with asyncio.TaskGroup() as ending:
            ending.create_task(self._replication.stop())
            ending.create_task(end_all(jobs))
            if self._server is not None:
                ending.create_task(self._server.stop())

    # -- peers -----------------------------------------------------------------------------------

    async def _take_peer(self, new: NewPeer, addresses: list[str]) -> None:
        """A device was paired: store it and let it in."""
        now_us = self._core.clock.now_us()
        peer = await self._core.db.run(lambda db: db.peers.add(new, now_us, addresses))
        if self._server is not None:
            await self._server.add_peer(peer)
        self._core.journal.info("peer.added", peer=new.device)

    async def _follow(self, device: DeviceId) -> None:
        """Keep up with a peer that lets us in by now."""
        peer = await self._core.db.run(lambda db: db.peers.get(device))
        if peer is None or peer.removed_us is not None:
            return
        await self._replication.add(peer)
        if self._finding is not None:
            self._finding.look_for_peers()

    async def remove_peer(self, device: DeviceId) -> None:
        """Have nothing more to do with a device; raises ``NotFoundError``."""
        now_us = self._core.clock.now_us()
        await self._core.db.run(lambda db: db.peers.remove(device, now_us))
        if self._server is not None:
            await self._server.remove_peer(device)
        await self._replication.remove(device)
        self._exchange.forget(device)
        self._core.journal.info("peer.removed", peer=device)

    def look_again(self) -> None:
        """Something changed that peers may have an answer to: an agent was accepted."""
        self._replication.renew()

    async def found(self) -> list[Result]:
        """The devices in sight that show a code."""
        return await self._sight().pairing_devices()

    async def found_target(self, device: str, code: str) -> Target:
        """Where the device in sight whose id is or begins so may be joined."""
        return await self._sight().target(device, code)

    def _sight(self) -> Finding:
        if self._finding is None:
            raise RefusedError(
                "this node does not look for devices on the network",
                hint="give --address HOST:PORT, or run roost up without --no-discovery",
            )
        return self._finding

    # -- one round -------------------------------------------------------------------------------

    async def sync_once(self, peer: DeviceId | None, agent: AgentId | None) -> Result:
        """One round with everybody, or one peer; raises ``NotFoundError`` for no such peer."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        wanted = [p for p in peers if peer in (None, p.device)]
        if peer is not None and not wanted:
            raise NotFoundError(f"{peer.short()} is no peer of this node", hint="roost peers")
        before = self._exchange.counters.served, self._exchange.counters.bytes
        rows = await self._replication.once(wanted, agent)
        if self._server is not None:
            await self._let_them_pull(wanted)
        counters = self._exchange.counters
        return {
            "pulled": sum(row["pulled"] for row in rows),
            "served": counters.served - before[0],
            "bytes": counters.bytes - before[1],
            "peers": rows,
        }

    async def _let_them_pull(self, peers: list[Peer]) -> None:
        """Give those that keep up with us a moment to take what we have more."""
        clock = self._core.clock
        started_s = moved_s = clock.monotonic_s()
        served = self._exchange.counters.served
        while await self._lacking(peers):
            now_s = clock.monotonic_s()
            if self._exchange.counters.served != served:
                served, moved_s = self._exchange.counters.served, now_s
            if now_s - started_s > RECEIPTS_S or now_s - moved_s > RECEIPTS_STILL_S:
                return
            await clock.sleep(RECEIPTS_LOOK_S)

    async def _lacking(self, peers: list[Peer]) -> bool:
        for peer in peers:
            state = self._exchange.peer(peer.device)
            for handle in self._exchange.readable(peer.device) if state.connected else ():
                mine = await handle.read(lambda store: store.vector_digest())
                if state.told(handle.agent).vector_digest != mine:
                    return True
        return False

    async def recover(self, key: SigningKey) -> list[RecoverReply]:
        """What the peers hold of the owner of a recovery key (R20)."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        return await self._replication.recover(peers, key)

    # -- how things stand ------------------------------------------------------------------------

    async def status_peers(self) -> list[Result]:
        """Each peer as ``roost status`` shows it."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        return [await peer_row(self._exchange, peer) for peer in peers]

    async def receipts(
        self, handle: AgentHandle, erasures: list[list[tuple[LogId, Tip]]]
    ) -> list[Result]:
        """The peers that may read an agent, and whether they have shown a place of each erasure."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        rows: list[Result] = []
        for peer in peers:
            if self._exchange.may_read(handle, peer.device):
                vector = self._exchange.peer(peer.device).told(handle.agent).vector or {}
                done = all(any(holds(vector, *place) for place in places) for places in erasures)
                rows.append({"device": str(peer.device), "name": peer.shown_name, "done": done})
        return rows

    async def unconfirmed(self, handle: AgentHandle) -> list[str]:
        """Peers that may read an agent and have not shown its newest statements (S-I2)."""
        peers = await self._core.db.run(lambda db: db.peers.all())
        return await unconfirmed(self._exchange, peers, handle)
