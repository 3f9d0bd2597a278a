"""Pairing on this node: opening a code, and joining with one (PAIRING.md, R39).

1. The listener is there only while a person pairs, on the first free port after the one for sync.
2. At most 5 codes in 10 minutes, restarts included. A code is dead at the first answer; then both
   sides are told, and this side's person makes a new one.
3. Nobody is stored before both proofs were right. The opener stores first and then tells the
   joiner, which stores and says so: whoever calls the other then is let in.
4. With ``mine`` the opener's person has unlocked the owner's key beforehand and, on a terminal, is
   asked about the device that proved the code; then its certificate is signed. The key is dropped
   with the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from keys.address import Address
from keys.errors import (
    BadInput,
    BadSignature,
    NotFoundError,
    PairingError,
    RefusedError,
    RoostError,
)
from keys.ids import DeviceId
from keys.limits import PAIR_CODE_TTL_S, PAIR_CONNECTIONS_MAX, PAIR_PORTS_TRIED
from keys.pair_code import CodeBook, Offer, Reason, failed
from keys.pair_messages import Introduction, encode_refused
from keys.pair_uri import pair_uri
from keys.pairing import Opener, Paired
from keys.signing import OwnerKey
from keys.tls import pairing_server_context
from memory.peers import NewPeer
from node.accepting import Acceptor
from node.core import NodeCore
from node.gifts import STORED, Gifts, encode_owners, joiner_gift
from node.household import NO_RECOVERY, Household
from node.listen import PORT_MAX
from node.pairwire import CONFIRM_S, PROTOCOL, PairStream
from node.reachable import reachable_at
from node.service import Emit

FINISH_S: Final = (
    30.0 + CONFIRM_S
)  # for an exchange that was in the middle when the code's time was over
BACKLOG: Final = 16
FIREWALL: Final = (
    "both must be on one network, with 7667/TCP and 5353/UDP open: "
    "sudo ufw allow 7667/tcp && sudo ufw allow 5353/udp"
)

TakePeer = Callable[[NewPeer, list[str]], Awaitable[None]]
"""Stores a peer with its addresses and lets it in."""

Follow = Callable[[DeviceId], Awaitable[None]]
"""Begins to keep up with a stored peer."""

Outcome = dict[str, Any] | RoostError

_LEFT: Final = False
_News = dict[str, Any] | RoostError | bool | None
"""An event; or how it ended: an error, None for well, ``_LEFT``."""


class PairingService:
    """Opens codes; at most one at a time, which everybody who asks meanwhile is shown."""

    def __init__(
        self,
        core: NodeCore,
        addresses: Callable[[], tuple[Address, ...]],
        take_peer: TakePeer,
        follow: Follow,
    ) -> None:
        self.core, self._addresses, self._take_peer = core, addresses, take_peer
        self.follow = follow
        self.household = Household(core)
        self._shown: _Shown | None = None
        self._listener: socket.socket | None = None
        self._question: tuple[DeviceId, asyncio.Future[bool]] | None = None
        self.on_port: Callable[[int | None], None] = lambda _port: None

    def beside(self, listener: socket.socket | None) -> None:
        """Peers are served at this socket; pairing opens one of its own beside it."""
        self._listener = listener

    async def open(
        self, *, ttl_s: int | None, owner_key: OwnerKey | None, emit: Emit, ask: bool = False
    ) -> None:
        """Show a code and wait until somebody paired with it; with ``owner_key``: as ``mine``.

        Who asks while a code of the same kind is open is shown that one (two codes of one device
        could not be told apart by the joiner), and a code of its own when the first caller leaves.
        Emits ``open``, ``attempt`` for each that failed and left the code alive, and ``paired``;
        with ``ask`` also ``confirm``, and waits for ``answer`` before anything is signed.
        Raises ``PairingError`` where nobody did.
        """
        if self._listener is None:
            raise RefusedError("no node serves this home", hint="roost up")
        mine = owner_key is not None
        while self._shown is not None:
            if self._shown.mine is not mine:
                other = "without" if mine else "with"
                raise RefusedError(
                    f"this node shows a code {other} --mine already",
                    hint="stop the other pair open",
                )
            if await self._shown.follow(emit):
                return
        shown = self._shown = _Shown(mine, emit)
        try:
            await self._open(ttl_s or PAIR_CODE_TTL_S, owner_key, shown.emit, ask=ask)
        except RoostError as exc:
            shown.end(exc)
            raise
        else:
            shown.end(None)
        finally:
            self._shown = None
            shown.leave()

    async def _open(self, ttl_s: int, owner_key: OwnerKey | None, emit: Emit, *, ask: bool) -> None:
        core = self.core
        offer = CodeBook().open(core.device, core.clock.monotonic_s(), ttl_s)[1]
        wait_s = await core.db.run(lambda db: db.count_code(core.clock.now_us()))
        if wait_s:
            raise failed(Reason.PAUSED, wait_s=wait_s)
        assert self._listener is not None
        with open_pair_listener(self._listener) as listener:
            self.on_port(listener.getsockname()[1])
            try:
                await self._announce(offer, listener, emit)
                await _Opening(self, offer, owner_key, emit, ask=ask).run(listener)
            finally:
                offer.close()
                self.on_port(None)

    async def _announce(self, offer: Offer, listener: socket.socket, emit: Emit) -> None:
        addresses = reachable_at(listener)
        await emit(
            {
                "event": "open",
                "code": offer.code,
                "device": str(self.core.device),
                "addresses": [str(a) for a in addresses],
                "uri": pair_uri(self.core.device, addresses, offer.code),
                "ttl": offer.ttl_s,
            }
        )

    async def ask(self, device: DeviceId, name: str, emit: Emit) -> None:
        """Ask our person whether this is the device meant; raises ``PairingError`` unless it is."""
        answer = asyncio.get_running_loop().create_future()
        self._question = device, answer
        try:
            await emit({"event": "confirm", "device": str(device), "name": name})
            async with asyncio.timeout(CONFIRM_S):
                if not await answer:
                    raise failed(Reason.DECLINED)
        except TimeoutError as exc:
            raise failed(Reason.DECLINED) from exc
        finally:
            self._question = None

    def answer(self, device: DeviceId, *, yes: bool) -> None:
        """What our person says of the device; raises ``NotFoundError`` when it is not asked."""
        if self._question is None or self._question[0] != device:
            raise NotFoundError("nobody is asked about this device", hint="roost pair open --mine")
        if not self._question[1].done():
            self._question[1].set_result(yes)

    async def introduction(self, *, mine: bool) -> Introduction:
        """What this node says of itself."""
        return await self.household.introduction(mine=mine, addresses=self._addresses())

    async def keep(self, paired: Paired, host: str, *, adopted: bool = False) -> None:
        """Enter the other side as a peer, at the addresses it told and where it was met.

        One that was ``adopted`` has our owner now, whatever it said of its own.
        """
        said = paired.introduction
        me = await self.introduction(mine=adopted)
        info = me.owner if adopted else said.owner
        recovery = b"" if info.recovery_hash == NO_RECOVERY else info.recovery_hash
        new = NewPeer(paired.device, said.name, paired.certificate, info.owner, recovery)
        told = [str(a) for a in said.addresses]
        met = [str(Address(host, a.port)) for a in said.addresses[:1]]
        await self._take_peer(new, list(dict.fromkeys([*told, *met])))


class _Shown:
    """What is told of an open code: to the caller that opened it, and to those that came later."""

    def __init__(self, mine: bool, emit: Emit) -> None:
        self.mine, self._emit = mine, emit
        self._told: list[_News] = []
        self._followers: set[asyncio.Queue[_News]] = set()

    async def emit(self, event: dict[str, Any]) -> None:
        """Tell an event to everybody."""
        self._tell(event)
        await self._emit(event)

    def end(self, error: RoostError | None) -> None:
        """The code is used, or dead."""
        self._tell(error)

    def leave(self) -> None:
        """The caller that opened it has gone, or been told."""
        self._tell(_LEFT)

    async def follow(self, emit: Emit) -> bool:
        """Emit what is and will be told; False where the code went with who opened it.

        Raises ``RoostError`` where nobody paired.
        """
        news: asyncio.Queue[_News] = asyncio.Queue()
        for told in self._told:
            news.put_nowait(told)
        self._followers.add(news)
        try:
            while isinstance(event := await news.get(), dict):
                await emit(event)
        finally:
            self._followers.discard(news)
        if isinstance(event, RoostError):
            raise event
        return event is None

    def _tell(self, told: _News) -> None:
        self._told.append(told)
        for news in self._followers:
            news.put_nowait(told)


class _Opening:
    """One code while it is open: the connections that try it, and how it ends."""

    def __init__(
        self,
        service: PairingService,
        offer: Offer,
        owner_key: OwnerKey | None,
        emit: Emit,
        *,
        ask: bool,
    ) -> None:
        self._service, self._core, self._offer = service, service.core, offer
        self._owner_key, self._emit, self._ask = owner_key, emit, ask
        self._spender: PairStream | None = None
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def _mine(self) -> bool:
        return self._owner_key is not None

    async def run(self, listener: socket.socket) -> None:
        """Serve connections until one paired, the code died, or its time is over."""
        core = self._core
        self._me = await self._service.introduction(mine=self._mine)
        self._context = await asyncio.to_thread(
            pairing_server_context, core.key, keys_dir=core.home.keys_dir
        )
        self._context.set_alpn_protocols([PROTOCOL])
        acceptor = Acceptor(listener, core.clock, self._admit, PAIR_CONNECTIONS_MAX)
        async with asyncio.TaskGroup() as tasks:
            accepting = tasks.create_task(acceptor.run(), name="pair accept")
            outcome = await self._wait()
            accepting.cancel()
        if isinstance(outcome, RoostError):
            raise outcome
        await self._emit(outcome)

    async def _wait(self) -> Outcome:
        """The outcome; a code that nobody tried ends with its time."""
        for seconds in (self._offer.ttl_s, FINISH_S):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await asyncio.shield(self._outcome)
            if self._spender is None:
                break
        return _nobody_came(self._offer.ttl_s)

    async def _admit(self, connection: socket.socket) -> None:
        outcome: Outcome | None
        async with PairStream.accepted(connection, self._context) as stream:
            try:
                outcome = await self._pair(stream)
            except RoostError as exc:
                outcome = await self._lost(stream, exc)
        if outcome is not None and not self._outcome.done():  # after the last word has left
            self._outcome.set_result(outcome)

    async def _pair(self, stream: PairStream) -> dict[str, Any]:
        """The opener's side of one exchange; the event to show."""
        paired = await self._prove(stream)
        paired.channel.release(paired.device)  # whom the person wanted: it had the code
        household = self._service.household
        gifts = Gifts(stream, paired.channel)
        theirs, rest = await gifts.receive()
        gift = joiner_gift(rest)
        if self._owner_key is not None:
            if self._ask:
                await self._service.ask(paired.device, paired.introduction.name, self._emit)
            await household.adopt(self._owner_key, paired, gift)
        await household.know(paired.introduction.owner.owner, theirs)
        await self._service.keep(paired, stream.host, adopted=self._mine)
        await gifts.send_statements(await household.statements())
        await gifts.send((await household.opener_gift(mine=self._mine)).encode())
        with contextlib.suppress(RoostError):  # it is our peer all the same
            _, last = await gifts.receive()
            if last != [STORED]:
                self._core.journal.warning("pair.not_stored", peer=paired.device)
        await self._service.follow(paired.device)
        return {
            "event": "paired",
            "device": str(paired.device),
            "name": paired.introduction.name,
            "mine": self._mine,
        }

    async def _prove(self, stream: PairStream) -> Paired:
        owners = await self._service.household.owners() if self._mine else []
        machine = Opener(self._core.key, self._me, self._offer, encode_owners(owners))
        for _ in ("join", "confirm"):
            message = await stream.receive()
            now_s = self._core.clock.monotonic_s()
            answer = await asyncio.to_thread(machine.receive, message, now_s)
            self._spender = stream
            await stream.send(answer)
        return machine.paired

    async def _lost(self, stream: PairStream, exc: RoostError) -> PairingError | None:
        """Tell the other side, and our person; the outcome, if that was the code's one answer."""
        with contextlib.suppress(RoostError):
            await stream.send(encode_refused(as_pairing_error(exc)))
        reason = str(exc.details.get("reason", exc.code))
        self._core.journal.info("pair.failed", reason=reason)
        if self._spender is stream or (self._spender is None and not self._offer.is_open):
            return as_pairing_error(exc)
        if isinstance(exc, PairingError) and self._offer.is_open:
            with contextlib.suppress(RoostError):  # our caller is gone; it will be noticed
                await self._emit({"event": "attempt", "reason": reason})
        return None


def open_pair_listener(beside: socket.socket) -> socket.socket:
    """A socket on the first free port of the ten after that of ``beside``, at the same host.

    Raises ``RefusedError`` where none is free.
    """
    host, port = beside.getsockname()[:2]
    for candidate in range(port + 1, min(port + PAIR_PORTS_TRIED, PORT_MAX) + 1):
        listener = socket.socket(beside.family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if beside.family == socket.AF_INET6:
                both = beside.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, both)
            listener.bind((host, candidate))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            continue
        return listener
    raise RefusedError(
        f"no free port for pairing among the {PAIR_PORTS_TRIED} after {port}",
        hint="stop what listens there, or use another port: roost up --listen HOST:PORT",
    )


def _nobody_came(ttl_s: int) -> PairingError:
    return PairingError(
        f"nobody joined within {ttl_s} seconds; the code is dead",
        hint=f"make a new code with `roost pair open`; {FIREWALL}",
        reason=str(Reason.EXPIRED),
    )


def as_pairing_error(exc: RoostError) -> PairingError:
    """What any error of the exchange means to the person who pairs."""
    if isinstance(exc, PairingError):
        return exc
    reason = Reason.MALFORMED if isinstance(exc, BadInput) else Reason.CLOSED
    error = failed(Reason.WRONG_CODE if isinstance(exc, BadSignature) else reason)
    error.__cause__ = exc
    return error
