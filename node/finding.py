"""Peers and pairing devices in sight: what adverts on the local network lead to.

1. An advert that says it is of a peer gives addresses to dial and one attempt at once. Who is there
   says the TLS key alone; what was stored before is kept (X-11).
2. Of a stranger nothing is kept. A device that shows a code is known by the leaf of its pairing
   listener, which is looked at when a person asks.
3. When the machine's addresses change, or it wakes from a suspend, everybody is asked anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from keys.address import Address
from keys.errors import AmbiguousError, NotFoundError, UnreachableError, UsageError
from keys.ids import DeviceId
from keys.signing import random_bytes
from memory.peers import Source
from node.core import NodeCore
from node.joining import Target
from node.pairwire import PairStream
from sync.advert import Found
from sync.discovery import Discovery, Surroundings
from sync.links import LinkChanges

WAITING_MAX: Final = 256
LOOK_S: Final = 4.0  # for the first advert, where this node has only just begun to listen
LOOK_AGAIN_S: Final = 0.2
SETTLE_S: Final = 1.0  # a change of addresses comes as several
WAKE_LOOK_S: Final = 30.0
SUSPENDED_US: Final = 5_000_000

Evidence = Callable[[DeviceId], None]


class Finding:
    """Discovery at work for one node."""

    def __init__(
        self,
        core: NodeCore,
        port: int,
        evidence: Evidence,
        *,
        low_power: bool,
        on_double: Callable[[Found], Awaitable[None]] | None = None,
    ) -> None:
        self._core, self._port, self._evidence = core, port, evidence
        self._on_double = on_double
        self._discovery = Discovery(
            core.device, port, self._seen, Surroundings(random_bytes), low_power=low_power
        )
        self._waiting: dict[str, Found] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Advertise, listen, and tell of peers that are seen; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._discovery.run(), name="discovery")
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._waiting = self._waiting, {}
                await self._take(list(waiting.values()))

    def show_pairing(self, port: int | None) -> None:
        """A person pairs at this port, or not any more."""
        self._discovery.update(self._port, port)

    def refresh(self) -> None:
        """Announce and ask anew."""
        self._discovery.refresh()

    def look_for_peers(self) -> None:
        """Compare what is in sight with the peers again: there is a new one."""
        for found in self._discovery.found:
            self._seen(found)

    def _seen(self, found: Found) -> None:
        if found.instance in self._waiting or len(self._waiting) < WAITING_MAX:
            self._waiting[found.instance] = found
            self._wake.set()

    async def _take(self, adverts: list[Found]) -> None:
        peers = await self._core.db.run(lambda db: db.peers.all())
        now_us = self._core.clock.now_us()
        for found in adverts:
            if found.is_of(self._core.device) and self._on_double is not None:
                await self._on_double(found)
            for peer in peers:
                if found.is_of(peer.device):
                    device, places = peer.device, [str(a) for a in found.addresses()]
                    await self._core.db.run(
                        lambda db, d=device, p=places: db.peers.replace_addresses(  # type: ignore[misc]
                            d, Source.MDNS, p, now_us
                        )
                    )
                    self._evidence(device)

    # -- pairing ---------------------------------------------------------------------------------

    async def pairing_devices(self) -> list[dict[str, Any]]:
        """The devices in sight that show a code."""
        return [
            {"name": device.short(), "device": str(device), "addresses": [str(a) for a in places]}
            for device, places in (await self._look()).items()
        ]

    async def target(self, text: str, code: str) -> Target:
        """The device in sight whose id is or begins with ``text``.

        Raises ``NotFoundError`` and ``AmbiguousError``.
        """
        found = await self._look()
        wanted = _whole_id(text)
        fits = [d for d in found if d == wanted or str(d).startswith(text.strip().lower())]
        if not fits:
            raise NotFoundError(
                f"no device {text[:64]!r} shows a code in sight",
                hint="roost pair list, or give its --address HOST:PORT",
            )
        if len(fits) > 1:
            raise AmbiguousError("more than one device fits", candidates=[str(d) for d in fits])
        return Target(found[fits[0]], code, fits[0])

    async def _look(self) -> dict[DeviceId, tuple[Address, ...]]:
        """Who is behind each advert with a pairing port, by the leaf that it shows."""
        adverts = await self._adverts()
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(_leaf_at(f.pairing_addresses())) for f in adverts]
        found: dict[DeviceId, tuple[Address, ...]] = {}
        for advert, task in zip(adverts, asked, strict=True):
            device = task.result()
            if device is not None and device != self._core.device:
                found[device] = advert.pairing_addresses()
        return found

    async def _adverts(self) -> list[Found]:
        """The adverts with a pairing port; where there is none, wait a moment for one."""
        until_s = self._core.clock.monotonic_s() + LOOK_S
        while True:
            adverts = [f for f in self._discovery.found if f.pairing_port]
            if adverts or self._core.clock.monotonic_s() >= until_s:
                return adverts[:WAITING_MAX]
            await self._core.clock.sleep(LOOK_AGAIN_S)


class Changes:
    """Calls ``changed`` when this machine's addresses changed or it woke from a suspend."""

    def __init__(self, core: NodeCore, changed: Callable[[], None]) -> None:
        self._clock, self._changed = core.clock, changed
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        links = LinkChanges(self._moved.set)
        links.open()
        try:
            while True:
                before_us, before_s = self._clock.now_us(), self._clock.monotonic_s()
                moved = await self._rest()
                passed_us = (self._clock.monotonic_s() - before_s) * 1_000_000
                slept = self._clock.now_us() - before_us - passed_us > SUSPENDED_US
                if moved or slept:
                    await self._clock.sleep(SETTLE_S)
                    self._moved.clear()
                    self._changed()
        finally:
            links.close()

    async def _rest(self) -> bool:
        try:
            async with asyncio.timeout(WAKE_LOOK_S):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True


async def _leaf_at(places: tuple[Address, ...]) -> DeviceId | None:
    for place in places:
        try:
            stream, device = await PairStream.dial(place)
        except UnreachableError:
            continue
        await stream.close()
        return device
    return None


def _whole_id(text: str) -> DeviceId | None:
    try:
        return DeviceId.parse(text)
    except UsageError:
        return None
