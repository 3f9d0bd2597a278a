"""Discovery: adverts that tell strangers nothing, a bounded table, trouble that never surfaces."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
import zeroconf
from hypothesis import given
from hypothesis import strategies as st

import sync.discovery
from keys.address import Address
from keys.limits import ADDRESSES_MAX, ADVERT_NAME_BYTES, ADVERT_SALT_BYTES, FOUND_MAX
from sync.advert import (
    SERVICE,
    Found,
    Interface,
    Table,
    advertised,
    can_be_dialled,
    read_advert,
    salted_id,
    txt_of,
    usable,
)
from sync.discovery import Discovery, Surroundings, system_interfaces
from sync.links import LinkChanges
from tests.support.author import device_key

A, B = device_key("a").device, device_key("b").device
SALT = bytes(range(ADVERT_SALT_BYTES))
LOOPBACK = (Interface("lo", 1, ("127.0.0.1",)),)
Txt = dict[bytes, bytes | None]


def txt(**changes: str | None) -> Txt:
    """The TXT record of an advert of ``A``, with fields replaced or (None) left out."""
    values: dict[str, str | None] = {**txt_of(SALT, A, 7100), **changes}
    return {k.encode(): v.encode() for k, v in values.items() if v is not None}


def found(instance: str = "x", host: str = "10.0.0.2") -> Found:
    """An advert that was read."""
    read = read_advert(instance, [host], 7667, txt())
    assert read is not None
    return read


def test_an_advert_is_read_back() -> None:
    """Ports, version, and the hash that those who know the device recognise."""
    read = found()
    assert (read.port, read.pairing_port, read.version) == (7667, 7100, 1)
    assert (read.is_of(A), read.is_of(B)) == (True, False)
    assert read.addresses() == (Address("10.0.0.2", 7667),)
    assert read.pairing_addresses() == (Address("10.0.0.2", 7100),)
    closed = read_advert("x", ["10.0.0.2"], 7667, txt(p=None))
    assert closed is not None
    assert closed.pairing_addresses() == ()


def test_X_14_an_advert_holds_version_ports_and_random_ids_only() -> None:
    """And another salt makes another id."""
    assert txt_of(SALT, A, None).keys() == {"v", "s", "i"}
    assert txt_of(SALT, A, 1).keys() == {"v", "s", "i", "p"}
    values = "".join(txt_of(SALT, A, 7100).values())
    assert A.hex()[:8] not in values
    assert A.short() not in values
    assert salted_id(SALT, A) != salted_id(bytes(ADVERT_SALT_BYTES), A)


@pytest.mark.parametrize(
    "changed",
    [
        {"v": None},
        {"v": "0"},
        {"v": "01"},
        {"v": "65536"},
        {"v": "x"},
        {"v": "-1"},
        {"v": "²"},
        {"s": None},
        {"s": "00"},
        {"s": "zz" * 8},
        {"s": "AB" * 8},
        {"i": None},
        {"i": " " * 16},
        {"p": ""},
        {"p": "0"},
        {"p": "65536"},
        {"p": "1.5"},
    ],
)
def test_what_is_not_in_our_form_is_no_advert(changed: dict[str, str | None]) -> None:
    """Every field."""
    assert read_advert("x", ["10.0.0.2"], 7667, txt(**changed)) is None


@given(
    st.dictionaries(st.sampled_from([b"v", b"s", b"i", b"p"]), st.none() | st.binary(max_size=20))
)
def test_random_records_are_read_without_harm(values: Txt) -> None:
    """Whatever a record holds, it is an advert or None."""
    read_advert("x", ["10.0.0.2"], 7667, values)


def test_fields_of_later_versions_are_passed_over() -> None:
    """A later node is still found."""
    assert read_advert("x", ["10.0.0.2"], 7667, txt(v="2", z="later")) is not None


@pytest.mark.parametrize("port", [None, 0, -1, 65_536])
def test_an_advert_without_a_port_is_none(port: int | None) -> None:
    """Port 0 cannot be dialled."""
    assert read_advert("x", ["10.0.0.2"], port, txt()) is None


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("fe80::1", False),
        ("fe80::1%0", False),
        ("fe80::1%2", True),
        ("fe80::1%lan0", True),
        ("10.0.0.2", True),
        ("169.254.1.1", True),
        ("2001:db8::1", True),
        ("attic.local", True),
        ("0.0.0.0", False),
        ("::", False),
        ("224.0.0.251", False),
        ("ff02::fb", False),
    ],
)
def test_S_C3_addresses_that_cannot_be_dialled_are_skipped(host: str, fits: bool) -> None:
    """A link-local IPv6 address needs the interface it is of."""
    assert can_be_dialled(host) == fits
    read = read_advert("x", [host], 7667, txt())
    assert (read is not None) == fits
    assert found(host="10.0.0.2") == read_advert("x", ["fe80::1", "10.0.0.2"], 7667, txt())


def test_hosts_of_an_advert_are_bounded() -> None:
    """At most ``ADDRESSES_MAX``."""
    read = read_advert("x", [f"10.0.0.{i}" for i in range(1, 99)], 7667, txt())
    assert read is not None
    assert len(read.hosts) == ADDRESSES_MAX


def test_container_bridges_and_loopback_are_not_advertised() -> None:
    """Loopback only where there is no other network."""
    lan = Interface("eth0", 2, ("192.168.1.5", "fe80::1", "2001:db8::5"))
    others = [
        Interface(name, 9, ("172.17.0.1",))
        for name in ("docker0", "br-0a1b", "virbr0", "veth12", "podman1", "cni0", "lxcbr0")
    ]
    assert usable([*others, *LOOPBACK, lan]) == (
        Interface("eth0", 2, tuple(sorted(lan.addresses))),
    )
    assert usable([*others, *LOOPBACK]) == LOOPBACK
    assert usable([*others, Interface("eth1", 3, ())]) == ()
    assert usable([lan, *LOOPBACK]) == usable([*LOOPBACK, lan])
    assert advertised([lan]) == ["192.168.1.5", "2001:db8::5", "fe80::1"]
    many = [Interface("eth0", 2, tuple(f"10.0.0.{i}" for i in range(1, 99)))]
    assert len(advertised(many)) == ADDRESSES_MAX


def test_X_12_forged_names_do_not_fill_the_table() -> None:
    """60,000 names leave ``FOUND_MAX``, the latest; what is seen again stays."""
    table, one = Table(), found("honest")
    for i in range(60_000):
        assert table.put(replace(one, instance=f"forged {i}"))
        if i % 100 == 0:
            table.put(one)
    assert len(table.all()) == FOUND_MAX
    assert "honest" in {f.instance for f in table.all()}
    assert "forged 59999" in {f.instance for f in table.all()}


def test_a_table_tells_what_is_new() -> None:
    """The same advert again is none; another address, or a return after a goodbye, is."""
    table = Table(size_max=2)
    assert table.put(found())
    assert not table.put(found())
    assert table.put(found(host="10.0.0.3"))
    table.drop("x")
    table.drop("x")
    assert table.put(found())
    table.put(found("y"))
    table.put(found("x"))
    table.put(found("z"))
    assert [f.instance for f in table.all()] == ["x", "z"]
    table.clear()
    assert table.all() == ()


def test_the_interfaces_of_this_machine_can_be_listed() -> None:
    """With loopback among them, and addresses without scope."""
    listed = system_interfaces()
    assert any("127.0.0.1" in i.addresses for i in listed)
    assert not any("%" in a for i in listed for a in i.addresses)


def multicast_works() -> bool:
    """Whether this machine lets a socket join the group on loopback."""
    group = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        except OSError:
            return False
    return True


needs_multicast = pytest.mark.skipif(not multicast_works(), reason="no multicast on loopback")


class World:
    """Random bytes and interfaces that a test decides about."""

    def __init__(self, interfaces: Sequence[Interface] = LOOPBACK, *names: bytes) -> None:
        self.listed: Sequence[Interface] = interfaces
        self.names = list(names)
        self.trouble: OSError | None = None

    def random_bytes(self, size: int) -> bytes:
        """The names that were given, then really random ones."""
        if size == ADVERT_NAME_BYTES and self.names:
            return self.names.pop(0)
        return os.urandom(size)

    def interfaces(self) -> Sequence[Interface]:
        """What was listed last."""
        if self.trouble is not None:
            raise self.trouble
        return self.listed

    @property
    def surroundings(self) -> Surroundings:
        """For ``Discovery``."""
        return Surroundings(self.random_bytes, self.interfaces)


class Running:
    """A discovery that runs until the block ends."""

    def __init__(self, name: str, port: int, world: World, *, low_power: bool = False) -> None:
        self.seen: list[Found] = []
        self.world = world
        self.discovery = Discovery(
            device_key(name).device,
            port,
            self.seen.append,
            world.surroundings,
            low_power=low_power,
        )

    async def __aenter__(self) -> "Running":
        self.task = asyncio.get_running_loop().create_task(self.discovery.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def until(self, fits: Callable[[], bool], seconds: float = 30) -> None:
        """Wait for something to be so."""
        async with asyncio.timeout(seconds):
            while not fits():
                assert not self.task.done(), self.task.exception()
                await asyncio.sleep(0.02)

    async def until_seen(self, name: str) -> None:
        """Wait for an advert of a device."""
        device = device_key(name).device
        await self.until(lambda: any(f.is_of(device) for f in self.seen))


@needs_multicast
async def test_two_nodes_of_one_name_find_each_other_and_not_themselves() -> None:
    """The second to ask for a name takes another; nothing is raised."""
    same = b"same name!"
    async with Running("a", 7001, World(LOOPBACK, same)) as a:
        await a.until(lambda: a.discovery._name_is_ours)
        async with Running("b", 7002, World(LOOPBACK, same)) as b:
            await a.until_seen("b")
            await b.until_seen("a")
            assert a.discovery._name != b.discovery._name
            assert not any(f.is_of(A) for f in a.seen)
            a.discovery.update(7001, 7100)
            await b.until(lambda: any(f.pairing_port == 7100 for f in b.discovery.found))
        await a.until(lambda: not any(f.is_of(B) for f in a.discovery.found))


@needs_multicast
async def test_S_C4_trouble_with_the_network_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Interfaces that cannot be listed, sockets that cannot be opened, names that run out."""
    monkeypatch.setattr(sync.discovery, "INTERFACE_POLL_S", 0.05)
    monkeypatch.setattr(sync.discovery, "INTERFACE_IDLE_S", 0.05)
    world = World()
    world.trouble = OSError(19, "no such device")
    fails = [OSError(98, "address in use"), RuntimeError("no interfaces")]

    def failing(*args: object, **kwargs: object) -> object:
        if fails:
            raise fails.pop()
        return zeroconf.asyncio.AsyncZeroconf(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(sync.discovery, "AsyncZeroconf", failing)
    async with Running("a", 7001, world) as a:
        await asyncio.sleep(0.2)
        world.trouble = None
        await a.until(lambda: a.discovery._name_is_ours)
        assert fails == []
        world.listed = ()
        await a.until(lambda: a.discovery._zeroconf is None)
        a.discovery.refresh()
        await asyncio.sleep(0.1)
        world.listed = LOOPBACK
        await a.until(lambda: a.discovery._zeroconf is not None)


@needs_multicast
async def test_low_power_stops_asking_and_still_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first questions nothing is multicast; a newcomer is heard all the same."""
    monkeypatch.setattr(sync.discovery, "_ASK_S", 0.3)
    async with Running("a", 7001, World(), low_power=True) as a:
        await a.until(lambda: a.discovery._name_is_ours and a.discovery._asker is None)
        async with Running("b", 7002, World()):
            await a.until_seen("b")


@needs_multicast
async def test_an_advert_that_did_not_come_whole_is_asked_for() -> None:
    """A pointer alone names an instance; its node answers, and one that does not costs nothing."""
    async with Running("b", 7002, World()) as b, Running("a", 7001, World()) as a:
        await a.until_seen("b")
        await b.until_seen("a")
        a.seen.clear()
        a.discovery._table.clear()
        for name in (f"{b.discovery._name}.{SERVICE}", f"nobody.{SERVICE}", "x" * 70 + SERVICE):
            a.discovery._pending[name] = None
        a.discovery._wake.set()
        await a.until_seen("b")
        await a.until(lambda: not a.discovery._pending)


async def test_a_system_that_gives_no_word_of_changes_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without such sockets, or where they are forbidden, there is nothing to listen to."""
    told: list[None] = []
    links = LinkChanges(lambda: told.append(None))
    with monkeypatch.context() as patched:
        patched.delattr(socket, "AF_NETLINK", raising=False)
        assert not links.open()
    with monkeypatch.context() as patched:
        patched.setattr(socket, "AF_NETLINK", 255, raising=False)
        assert not links.open()
    links.close()
    assert told == []


async def test_word_of_a_change_is_passed_on_and_not_read() -> None:
    """Whatever stands in the socket is emptied at once."""
    told: list[None] = []
    links = LinkChanges(lambda: told.append(None))
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.setblocking(False)
    there.setblocking(False)
    with there:
        links._socket = here
        there.send(b"one")
        there.send(b"two")
        links._read()
        assert len(told) == 1
        with pytest.raises(BlockingIOError):
            here.recv(1)
        links.close()
