"""Finding other nodes on the local network: the one door to zeroconf (mDNS, DNS-SD).

1. ``run`` lasts until it is cancelled and raises nothing of the network's: an interface that is
   down, a name that is taken, a port that is not to be had are tried again (S-C4, S-C5).
2. When addresses of this machine change, or ``refresh`` is called after a suspend, everything is
   opened and announced anew.
3. Without changes nothing is multicast on a timer of ours; in low-power mode the questions that
   keep the table fresh stop too, and only what others announce is heard.
4. What comes from the network is read in ``sync.advert``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, TypeAlias

import ifaddr
import zeroconf
from zeroconf import IPVersion, RecordUpdate, RecordUpdateListener, Zeroconf
from zeroconf._dns import DNSPointer
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from keys.ids import DeviceId
from keys.limits import (
    ADVERT_NAME_BYTES,
    ADVERT_SALT_BYTES,
    FOUND_MAX,
    INTERFACE_IDLE_S,
    INTERFACE_POLL_S,
    RESOLVE_S,
    RESOLVES_MAX,
)
from sync.advert import (
    SERVICE,
    Found,
    Interface,
    Table,
    advertised,
    read_advert,
    txt_of,
    usable,
)
from sync.links import LinkChanges

_NAMES_TRIED: Final = 3
_ASK_S: Final = 15  # how long questions are asked in low-power mode: four, over 14 s
_ASK_AGAIN_MS: Final = 60_000
_TROUBLE: Final = (OSError, zeroconf.Error, RuntimeError, TimeoutError)
Choice: TypeAlias = str | int | tuple[tuple[str, int, int], int]
_journal: Final = logging.getLogger(__name__)


def system_interfaces() -> list[Interface]:
    """The interfaces of this machine as they are now."""
    return [
        Interface(
            adapter.name,
            adapter.index or 0,
            tuple(ip.ip if isinstance(ip.ip, str) else _bare(ip.ip[0]) for ip in adapter.ips),
        )
        for adapter in ifaddr.get_adapters()
    ]


def _bare(address: str) -> str:
    return address.partition("%")[0]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What ``Discovery`` takes from outside: random bytes, and the machine's interfaces."""

    random_bytes: Callable[[int], bytes]
    interfaces: Callable[[], Sequence[Interface]] = system_interfaces


class Discovery:
    """Advertises this node and calls ``seen`` for every advert of another that says anything new.

    ``seen`` runs in the event loop and must not block. ``port`` is where the node listens.
    """

    def __init__(
        self,
        device: DeviceId,
        port: int,
        seen: Callable[[Found], None],
        surroundings: Surroundings,
        *,
        low_power: bool = False,
    ) -> None:
        self._device = device
        self._port = port
        self._pairing_port: int | None = None
        self._seen = seen
        self._around = surroundings
        self._low_power = low_power
        self._name = surroundings.random_bytes(ADVERT_NAME_BYTES).hex()
        self._name_is_ours = False  # asked for once, and nobody else had it
        self._table = Table()
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._look_due = self._open_due = True
        self._advert_due = False
        self._interfaces: tuple[Interface, ...] = ()
        self._trouble = False
        self._zeroconf: AsyncZeroconf | None = None
        self._asker: AsyncServiceBrowser | None = None

    # -- for the node ----------------------------------------------------------------------------

    @property
    def found(self) -> tuple[Found, ...]:
        """The adverts that are kept."""
        return self._table.all()

    def update(self, port: int, pairing_port: int | None) -> None:
        """Advertise these ports from now on; ``pairing_port`` is None while nobody pairs."""
        if (port, pairing_port) != (self._port, self._pairing_port):
            self._port, self._pairing_port = port, pairing_port
            self._advert_due = True
            self._wake.set()

    def refresh(self) -> None:
        """Open, announce and ask anew: after a suspend, or when a person looks who is there."""
        self._look_due = self._open_due = True
        self._wake.set()

    async def run(self) -> None:
        """Advertise and listen until cancelled; then say goodbye."""
        logging.getLogger("zeroconf").setLevel(logging.CRITICAL)
        links = LinkChanges(self._links_changed)
        pause = INTERFACE_IDLE_S if links.open() else INTERFACE_POLL_S
        try:
            while True:
                self._wake.clear()
                if self._look_due:
                    await self._look()
                if self._advert_due:
                    await self._advertise_again()
                await self._ask_pending()
                await self._rest(pause)
        finally:
            links.close()
            await self._close()

    # -- interfaces ------------------------------------------------------------------------------

    def _links_changed(self) -> None:
        self._look_due = True
        self._wake.set()

    async def _rest(self, pause: float) -> None:
        """Until there is something to do, or it is time to look at the interfaces."""
        if self._pending or self._look_due or self._advert_due:
            return
        asking = self._low_power and self._asker is not None
        healthy = not self._trouble
        wait = None if self._low_power and healthy else pause if healthy else INTERFACE_POLL_S
        try:
            async with asyncio.timeout(_ASK_S if asking else wait):
                await self._wake.wait()
        except TimeoutError:
            if asking:
                await self._stop_asking()
            else:
                self._look_due = True

    async def _look(self) -> None:
        self._look_due, self._trouble = False, True
        try:
            now = usable(self._around.interfaces())
        except OSError as exc:
            _journal.debug("cannot list the interfaces: %s", exc)
            return
        if self._open_due or now != self._interfaces or (now and self._zeroconf is None):
            self._open_due = False
            await self._open(now)
        elif self._zeroconf is not None:
            # An address that could not be bound the first time, such as one still being probed.
            with suppress(*_TROUBLE):
                await self._zeroconf.async_update_interfaces(_choice(now), _version(now))
        self._trouble = bool(now) and self._zeroconf is None

    async def _open(self, interfaces: tuple[Interface, ...]) -> None:
        await self._close()
        self._table.clear()
        self._interfaces = interfaces
        if not interfaces:
            return
        try:
            opened = _opened(interfaces)
        except _TROUBLE as exc:
            _journal.debug("cannot open the multicast sockets: %s", exc)
            return
        self._zeroconf = opened
        try:
            await opened.zeroconf.async_wait_for_start()
            opened.zeroconf.async_add_listener(_Listener(self._changed), None)
            self._asker = AsyncServiceBrowser(
                opened.zeroconf, SERVICE, handlers=[_ignore], delay=_ASK_AGAIN_MS
            )
            await self._advertise(opened)
        except _TROUBLE as exc:
            _journal.debug("cannot advertise: %s", exc)
            await self._close()

    async def _close(self) -> None:
        await self._stop_asking()
        if self._zeroconf is not None:
            # In a task of its own: in one that is being cancelled, zeroconf's waits give up early.
            await asyncio.gather(self._zeroconf.async_close(), return_exceptions=True)
            self._zeroconf = None

    async def _stop_asking(self) -> None:
        asker, self._asker = self._asker, None
        if asker is not None:
            await asker.async_cancel()

    # -- our advert ------------------------------------------------------------------------------

    def _advert(self) -> AsyncServiceInfo:
        salt = self._around.random_bytes(ADVERT_SALT_BYTES)
        return AsyncServiceInfo(
            SERVICE,
            f"{self._name}.{SERVICE}",
            port=self._port,
            properties=txt_of(salt, self._device, self._pairing_port),
            server=f"{self._name}.local.",
            parsed_addresses=advertised(self._interfaces),
        )

    async def _advertise(self, opened: AsyncZeroconf) -> None:
        for _ in range(_NAMES_TRIED):
            self._advert_due = False
            try:
                told = await opened.async_register_service(
                    self._advert(), cooperating_responders=self._name_is_ours
                )
            except zeroconf.NonUniqueNameException:
                taken, self._name = self._name, self._around.random_bytes(ADVERT_NAME_BYTES).hex()
                # What the other one said was passed over as our own, and may not be said again.
                self._changed(opened.zeroconf, f"{taken}.{SERVICE}", is_gone=False)
            else:
                self._name_is_ours = True
                await told
                return

    async def _advertise_again(self) -> None:
        self._advert_due = False
        if self._zeroconf is not None:
            with suppress(*_TROUBLE):
                await (await self._zeroconf.async_update_service(self._advert()))

    # -- others' adverts -------------------------------------------------------------------------

    def _changed(self, zc: Zeroconf, name: str, is_gone: bool) -> None:
        """Something was said of an instance: read it from what has come, or ask for the rest."""
        if name.removesuffix("." + SERVICE) == self._name:
            return
        if is_gone:
            self._table.drop(name)
            return
        with suppress(zeroconf.Error):
            info = AsyncServiceInfo(SERVICE, name)
            if info.load_from_cache(zc):
                self._take(info)
            elif len(self._pending) < FOUND_MAX:
                self._pending[name] = None
                self._wake.set()

    async def _ask_pending(self) -> None:
        names = list(self._pending)[:RESOLVES_MAX]
        for name in names:
            del self._pending[name]
        opened = self._zeroconf
        if opened is not None and names:
            await asyncio.gather(*(self._ask(opened.zeroconf, name) for name in names))

    async def _ask(self, zc: Zeroconf, name: str) -> None:
        with suppress(*_TROUBLE):
            info = AsyncServiceInfo(SERVICE, name)
            if await info.async_request(zc, RESOLVE_S * 1_000):
                self._take(info)

    def _take(self, info: AsyncServiceInfo) -> None:
        hosts = self._reachable(info.parsed_scoped_addresses())
        found = read_advert(info.name, hosts, info.port, info.properties)
        if found is not None and not found.is_of(self._device) and self._table.put(found):
            self._seen(found)

    def _reachable(self, hosts: Iterable[str]) -> list[str]:
        """Loopback is another node's address only where there is no other network."""
        alone = all(ip_address(a).is_loopback for a in advertised(self._interfaces))
        return [h for h in hosts if alone or not ip_address(h).is_loopback]


class _Listener(RecordUpdateListener):
    """Hears of every record that is new, changed or gone, and tells which instances it concerns."""

    def __init__(self, changed: Callable[[Zeroconf, str, bool], None]) -> None:
        self._changed = changed
        self._names: dict[str, bool] = {}
        self._zc: Zeroconf | None = None

    def async_update_records(self, zc: Zeroconf, now: float, records: list[RecordUpdate]) -> None:
        """Collect; the cache does not have them yet."""
        self._zc = zc
        for update in records:
            record = update.new
            if isinstance(record, DNSPointer):
                if record.name.lower() == SERVICE:
                    self._names[record.alias] = record.is_expired(now)
            elif update.old is None and record.name.lower().endswith("." + SERVICE):
                self._names.setdefault(record.name, False)

    def async_update_records_complete(self) -> None:
        """Now the cache has them."""
        names, self._names = self._names, {}
        assert self._zc is not None or not names
        for name, is_gone in names.items():
            assert self._zc is not None
            self._changed(self._zc, name, is_gone)


def _ignore(**_: object) -> None:
    """The browser asks the questions; ``_Listener`` hears the answers."""


def _opened(interfaces: tuple[Interface, ...]) -> AsyncZeroconf:
    """On IPv4 and IPv6, or on IPv4 alone where the two together are not to be had."""
    choice, version = _choice(interfaces), _version(interfaces)
    try:
        return AsyncZeroconf(interfaces=choice, ip_version=version)
    except (OSError, RuntimeError):
        only = [c for c in choice if isinstance(c, str)]
        if not only or version is not IPVersion.All:
            raise
        return AsyncZeroconf(interfaces=only, ip_version=IPVersion.V4Only)


def _choice(interfaces: tuple[Interface, ...]) -> list[Choice]:
    """For zeroconf: IPv4 by address, IPv6 by the index of the interface."""
    fours: list[Choice] = [a for i in interfaces for a in i.addresses if ":" not in a]
    return fours + [i.index for i in interfaces if i.index and any(":" in a for a in i.addresses)]


def _version(interfaces: tuple[Interface, ...]) -> IPVersion:
    choice = _choice(interfaces)
    six = any(isinstance(c, int) for c in choice)
    four = any(isinstance(c, str) for c in choice)
    return IPVersion.All if six and four else IPVersion.V6Only if six else IPVersion.V4Only
