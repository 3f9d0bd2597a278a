"""What befalls devices: crashes, restores, copies, clocks that jump, networks that part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.device import Device
from tests.sim.disk import Disk

if TYPE_CHECKING:
    from tests.sim.world import World

YEAR_US = 365 * 86_400 * 1_000_000
COPIES_MAX = 2
PLACES_IN_A_HOP = 90


def crash(world: World, device: Device) -> None:
    """Killed at whatever await each of its tasks is."""
    world.trace(f"{device.name} crashes")
    world.counts["crashes"] += 1
    device.crash()


def kill_later(world: World, device: Device) -> None:
    """Killed inside one of its next hops."""
    if world.random.random() < 0.3:
        device.fuse.torn = True
    else:
        device.fuse.left = world.random.randrange(PLACES_IN_A_HOP)


def back_up(world: World, device: Device) -> None:
    """A copy of the home, as it lies there now."""
    world.trace(f"{device.name} is backed up")
    number = len(world.backups.setdefault(device.name, []))
    target = world.root / f"backup-{device.name}-{number}"
    world.backups[device.name].append(device.disk.copy_to(target))


def restore(world: World, device: Device) -> None:
    """The home, its database alone or the whole disk goes back to an earlier copy."""
    copies = world.backups.get(device.name)
    if not copies:
        back_up(world, device)
        return
    how = world.random.choice(("database", "home", "disk"))
    world.trace(f"{device.name} is restored: {how}")
    world.counts["restores"] += 1
    world.counts[f"restore: {how}"] += 1
    device.crash()
    _put(world, device, world.random.choice(copies), how)
    held: set[bytes] = set().union(*(other.entries() for other in world.devices.values()))
    world.counts["entries lost with a disk"] += world.ledger.lose(held)


def _put(world: World, device: Device, copy: Disk, how: str) -> None:
    if how == "database":
        device.disk.put_back(copy.database_files())
        return
    copy.copy_to(device.home)
    if how == "disk":
        device.disk.bless()
        device.may_fork = True


def copy_home(world: World, device: Device) -> None:
    """A second machine with the same home: noticed by its marker, or a whole clone."""
    if sum(d.name.startswith("copy") for d in world.devices.values()) >= COPIES_MAX:
        return
    name = f"copy{len(world.devices)}-of-{device.name}"
    twin = Device(world, name, device.key, device.owner)
    device.disk.copy_to(twin.home)
    if world.random.random() < 0.5:
        twin.disk.bless()
        twin.may_fork = True
        world.counts["clones"] += 1
    else:
        world.counts["copies"] += 1
    world.devices[name] = twin
    world.trace(f"{name} comes up, {'as a clone' if twin.may_fork else 'as a copy'}")
    twin.boot()


def jump(world: World, device: Device) -> None:
    """The clock jumps, by seconds or by years."""
    device.offset_us = world.random.choice(
        (0, -20 * YEAR_US, 14 * YEAR_US, 3_600_000_000, -172_800_000_000, -1_000_000)
    )
    world.counts["clock jumps"] += 1
    if abs(device.offset_us) > YEAR_US:
        world.counts[f"clock years {'ahead' if device.offset_us > 0 else 'back'}"] += 1
    world.trace(f"{device.name}'s clock is off by {device.offset_us / 1e6:.0f} s")


def part(world: World, device: Device) -> None:
    """Nothing passes between two devices."""
    others = [d for d in world.devices.values() if d is not device]
    if others:
        world.network.part(device, world.random.choice(others))
        world.counts["partitions"] += 1


def join(world: World, _device: Device) -> None:
    """The network is whole again, for a while without faults."""
    world.network.heal()
    world.network.fault_rate = world.random.choice((0.0, 0.1, world.theme.fault_rate))


LUCK: dict[str, tuple[int, Callable[[World, Device], None]]] = {
    "crash": (4, crash),
    "kill_later": (6, kill_later),
    "back_up": (4, back_up),
    "restore": (3, restore),
    "copy_home": (1, copy_home),
    "jump": (3, jump),
    "part": (3, part),
    "join": (4, join),
}


def happen(world: World) -> None:
    """One mishap, or a device that was down comes up."""
    down = [d for d in world.devices.values() if not d.up]
    if down and world.random.random() < 0.6:
        device = world.random.choice(down)
        world.trace(f"{device.name} comes up")
        world.counts["comes up"] += 1
        device.boot()
        return
    up = world.up()
    if up:
        name = world.choose({name: weight for name, (weight, _) in LUCK.items()})
        LUCK[name][1](world, world.random.choice(up))
