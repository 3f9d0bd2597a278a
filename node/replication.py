"""Keeping up with every peer: one loop each, from dialling to dialling again.

1. A loop waits until an attempt is due, dials all addresses at once, tells and hears hello, opens
   the watch, and then pulls what differs and what is announced.
2. Waits grow by attempts that failed; a call from the peer, an advert or a person's wish counts as
   evidence and allows one attempt at once (``sync.backoff``).
3. Nothing that a peer does ends the node: whatever ends a conversation ends that alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Any, Final

from keys.address import Address
from keys.errors import RoostError, UnreachableError, UsageError
from keys.ids import AgentId, DeviceId
from keys.signing import SigningKey
from memory.peers import Peer
from node.conversation import Conversation
from node.exchange import Exchange
from node.peerlink import PeerClient
from sync.backoff import DialSchedule
from sync.messages import Hello
from sync.recovery import RecoverReply

ONCE_S: Final = 600.0
END_S: Final = 0.3


class PeerSync:
    """The loop of one peer."""

    def __init__(self, exchange: Exchange, peer: Peer, random: Random) -> None:
        self._exchange, self._core = exchange, exchange.core
        self.device, self._certificate = peer.device, peer.certificate
        self._state = exchange.peer(peer.device)
        self._schedule = DialSchedule(random)
        self._wake = asyncio.Event()
        self._client: PeerClient | None = None
        self._making = asyncio.Lock()
        self._caught_up = False
        self._talk_now: Conversation | None = None

    def renew(self) -> None:
        """Ask the peer anew for what it shares."""
        if self._talk_now is not None:
            self._talk_now.ask_again()
        else:
            self.evidence()

    def evidence(self) -> None:
        """Something tells that the peer may be reached."""
        self._schedule.evidence(self._core.clock.monotonic_s())
        self._wake.set()

    async def close(self) -> None:
        """End every connection to the peer."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def run(self) -> None:
        """Dial, talk and dial again, until cancelled."""
        try:
            while True:
                await self._until_due()
                try:
                    await self._talk()
                except Exception as exc:  # noqa: BLE001 - a border: no peer ends the node
                    self._ended(exc)
                    _pass_on_cancellation()
        finally:
            self._state.linked = False

    async def once(self, agent: AgentId | None) -> int:
        """Dial, pull everything (or one agent) and hang up; how many entries came.

        Raises ``RoostError``.
        """
        try:
            async with asyncio.timeout(ONCE_S):
                talk, reply = await self._dial()
                agents = talk.shared(reply)
                wanted = agents if agent is None else [a for a in agents if a == agent]
                new = sum([await talk.sync_agent(a) for a in wanted])
                if new:
                    await talk.hello()
        except TimeoutError as exc:
            raise UnreachableError("the peer took too long") from exc
        except BaseExceptionGroup as group:
            raise cause_of(group) from group
        if not self._state.linked:
            self.evidence()
        return new

    async def recover(self, key: SigningKey) -> RecoverReply:
        """What the peer holds of the owner of a recovery key; raises ``RoostError``."""
        try:
            async with asyncio.timeout(ONCE_S):
                talk, _ = await self._dial()
                return await talk.recover(key)
        except TimeoutError as exc:
            raise UnreachableError("the peer took too long") from exc
        except BaseExceptionGroup as group:
            raise cause_of(group) from group

    async def _until_due(self) -> None:
        """Wait until an attempt is due and there is an address to try."""
        while True:
            now_s = self._core.clock.monotonic_s()
            if self._schedule.is_due(now_s) and await self._addresses():
                return
            wait_s = self._schedule.next_s - now_s
            await self._sleep(wait_s if wait_s > 0 else None)

    async def _sleep(self, seconds: float | None) -> None:
        """Until somebody wakes the loop, or for ``seconds``."""
        async with asyncio.TaskGroup() as tasks:
            woken = tasks.create_task(self._wake.wait())
            waits: set[asyncio.Task[Any]] = {woken}
            if seconds is not None:
                waits.add(tasks.create_task(self._core.clock.sleep(seconds)))
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        self._wake.clear()

    async def _addresses(self) -> list[Address]:
        peer = await self._core.db.run(lambda db: db.peers.get(self.device))
        texts = dict.fromkeys(a.address for a in peer.addresses) if peer else ()
        return [a for text in texts for a in _parsed(text)]

    async def _dial(self) -> tuple[Conversation, Hello]:
        async with self._making:
            if self._client is None:
                self._client = await PeerClient.make(
                    self._core.key,
                    self.device,
                    self._certificate,
                    self._core.home.keys_dir,
                    self._exchange.counters,
                )
        addresses = await self._addresses()
        if not addresses:
            raise UnreachableError("no address of this peer is known", hint="roost pair join")
        sent_ms = self._core.clock.now_us() // 1000
        mine = await self._exchange.hello_for(self.device)
        address, reply = await self._client.dial(addresses, mine)
        talk = Conversation(self._exchange, self._client, address)
        await talk.heard_hello(reply, sent_ms)
        return talk, reply

    async def _talk(self) -> None:
        """From the first attempt to the end of the connection, whatever ends it."""
        self._schedule.attempted(self._core.clock.monotonic_s())
        self._caught_up = False
        try:
            talk, _ = await self._dial()
            async with asyncio.TaskGroup() as tasks:
                opened = asyncio.Event()
                watching = tasks.create_task(talk.watch(opened), name="watch")
                await _either(opened, watching)
                await talk.hello()  # what changed while the watch was not open yet
                self._state.linked, self._state.error = True, None
                self._core.journal.info("peer.connected", peer=self.device)
                self._talk_now = talk
                working = tasks.create_task(talk.work(self._connected), name="pull")
                await asyncio.wait({watching})
                working.cancel()
        finally:
            self._talk_now = None
            if not self._caught_up:
                self._schedule.failed(self._core.clock.monotonic_s())
            self._state.linked = False

    def _connected(self) -> None:
        """The first round was whole: the attempt was a good one."""
        if not self._caught_up:
            self._caught_up = True
            self._schedule.connected(self._core.clock.monotonic_s())

    def _ended(self, exc: Exception) -> None:
        cause = cause_of(exc) if isinstance(exc, BaseExceptionGroup) else exc
        if isinstance(cause, RoostError):
            self._state.error = cause.code
            if not isinstance(cause, UnreachableError):
                self._core.journal.warning("peer.failed", peer=self.device, code=cause.code)
        elif isinstance(cause, (OSError, TimeoutError)):
            self._state.error = UnreachableError.code
        else:
            self._state.error = "internal"
            self._core.journal.error("peer.failed", cause, peer=self.device)


class Replication:
    """The loops of all peers."""

    def __init__(self, exchange: Exchange, random: Random) -> None:
        self._exchange, self._random = exchange, random
        self._peers: dict[DeviceId, PeerSync] = {}
        self._loops: dict[DeviceId, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        exchange.on_hello = self._on_hello

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to keep up with every peer."""
        self._tasks = tasks
        for peer in await self._exchange.core.db.run(lambda db: db.peers.all()):
            await self.add(peer)

    async def stop(self) -> None:
        """End every loop and connection."""
        self._tasks = None
        loops = list(self._loops.values())
        self._loops.clear()
        await end_all(loops)
        for peer in self._peers.values():
            await peer.close()

    async def add(self, peer: Peer) -> None:
        """Keep up with a new peer, or with one that was paired anew."""
        await self.remove(peer.device)
        sync = self._peers[peer.device] = PeerSync(self._exchange, peer, self._random)
        if self._tasks is not None:
            name = f"peer {peer.device.short()}"
            self._loops[peer.device] = self._tasks.create_task(sync.run(), name=name)

    async def remove(self, device: DeviceId) -> None:
        """Have nothing more to do with a device."""
        loop = self._loops.pop(device, None)
        await end_all([loop] if loop is not None else [])
        peer = self._peers.pop(device, None)
        if peer is not None:
            await peer.close()

    def evidence(self, device: DeviceId | None = None) -> None:
        """Something tells that a peer (any, without ``device``) may be reached."""
        for known, peer in self._peers.items():
            if device is None or known == device:
                peer.evidence()

    def renew(self, device: DeviceId | None = None) -> None:
        """Ask everybody (or one peer) anew for what they share."""
        for known, peer in self._peers.items():
            if device is None or known == device:
                peer.renew()

    async def once(self, peers: Sequence[Peer], agent: AgentId | None) -> list[dict[str, Any]]:
        """One round with each of these peers, all at once: entries pulled, or the error."""
        async with asyncio.TaskGroup() as tasks:
            rounds = [tasks.create_task(self._once(peer, agent)) for peer in peers]
        return [task.result() for task in rounds]

    async def recover(self, peers: Sequence[Peer], key: SigningKey) -> list[RecoverReply]:
        """What peers hold of the owner of a recovery key; who cannot answer is passed over."""
        replies: list[RecoverReply] = []
        for peer in peers:
            known = self._peers.get(peer.device)
            sync = known or PeerSync(self._exchange, peer, self._random)
            try:
                replies.append(await sync.recover(key))
            except RoostError as exc:
                self._exchange.core.journal.info("recovery.no", peer=peer.device, code=exc.code)
            finally:
                if known is None:
                    await sync.close()
        return replies

    async def _once(self, peer: Peer, agent: AgentId | None) -> dict[str, Any]:
        known = self._peers.get(peer.device)
        sync = known or PeerSync(self._exchange, peer, self._random)
        row: dict[str, Any] = {"device": str(peer.device), "name": peer.shown_name, "pulled": 0}
        try:
            row["pulled"] = await sync.once(agent)
        except RoostError as exc:
            row["error"] = exc.as_dict()
        finally:
            if known is None:
                await sync.close()
        return row

    def _on_hello(self, device: DeviceId, _hello: Hello) -> None:
        if not self._exchange.peer(device).linked:
            self.evidence(device)


async def end_all(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and give them a moment to end."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S)


def _pass_on_cancellation() -> None:
    """A task group that ends with an error while it is cancelled tells of the error alone."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _either(opened: asyncio.Event, watching: asyncio.Task[None]) -> None:
    """Until the watch is open; raises what ended it before that."""
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(opened.wait())
        await asyncio.wait({waiting, watching}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    if watching.done():
        watching.result()
        raise UnreachableError("the peer ended the watch")


def _parsed(text: str) -> Iterator[Address]:
    try:
        yield Address.parse(text)
    except UsageError:
        return


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error in a group, one for a person before any other."""
    causes = list(_leaves(group))
    return next((c for c in causes if isinstance(c, RoostError)), causes[0])


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc
