"""A seeded world: devices, their clocks and disks, the network between them, and its ill luck.

Everything follows from the seed: who acts, what is lost, when a process dies. ``run`` lives through
a number of steps; ``come_to_rest`` then heals everything and pulls until nothing moves.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from keys.signing import OwnerKey
from keys.statements import Statement
from node.receiving import PULL_ENTRIES
from tests.sim import acts, mishaps
from tests.sim.device import Device
from tests.sim.disk import Disk, Killed
from tests.sim.ledger import Ledger
from tests.sim.network import Network
from tests.sim.pulling import Session
from tests.sim.schedule import MILLISECOND_US, SECOND_US, Schedule, Task
from tests.sim.themes import Theme
from tests.sim.watching import Watcher
from tests.support import memory_world
from tests.support.author import certify, device_key, owner_key
from tests.support.memory_world import START_US

TRACE_LINES = 60
ROUNDS_MAX = 8
STEPS_PER_SESSION_MAX = 20_000
VALUES = 14


class World(memory_world.World):
    """One agent of Alice's, her devices, and Bob's."""

    def __init__(
        self, root: Path, source: random.Random, theme: Theme, *, durable: bool = False
    ) -> None:
        super().__init__(root, durable=durable)
        self.theme = theme
        self.random = source
        self.schedule = Schedule(random.Random(source.random()))
        self.schedule.ended = self._ended
        self.counts: Counter[str] = Counter()
        self.network = Network(self.schedule, random.Random(source.random()), self.counts)
        self.network.fault_rate = theme.fault_rate
        self.network.watch = Watcher(self).check
        self.ledger = Ledger()
        self.lines: list[str] = []
        self.failure: BaseException | None = None
        self.pull_limits: tuple[int, ...] = (3, 20, PULL_ENTRIES)
        self.values = [_word(source) for _ in range(VALUES)]
        self.bob = owner_key("bob")
        self.devices: dict[str, Device] = {}
        self.backups: dict[str, list[Disk]] = {}
        self._found()

    def _found(self) -> None:
        count = self.random.randint(self.theme.fewest, 5)
        alices = self.random.randint(1, min(count - 1, 3)) if count > 2 else count
        for name in "abc"[:alices]:
            self.certify(name)
        for i, name in enumerate("abcde"[:count]):
            self._add(name, self.owner if i < alices else self.bob)
        if alices < count and self.random.random() < 0.7:
            self.first.store.add_statements(self.certificates_of(self.bob), self.first.now_us)
            self.first.grant(self.bob, *self.random.choice(acts.RIGHTS))
        self.trace(f"{self.theme.name}: {count} devices, {alices} of them Alice's")

    def _add(self, name: str, owner: OwnerKey) -> None:
        device = self.devices[name] = Device(self, name, device_key(name), owner)
        device.boot()
        if owner is self.owner:
            device.save_keys(list(self.keys))
            device.store.add_statements(self.statements, device.now_us)
            device.take_keys(list(self.keys))

    # -- looking ---------------------------------------------------------------------------------

    @property
    def wall_us(self) -> int:
        """What a right clock shows."""
        return START_US + self.schedule.now_us

    def trace(self, line: str) -> None:
        """Remember what happened."""
        self.lines.append(f"{self.schedule.now_us / SECOND_US:10.3f} {line}")

    def up(self) -> list[Device]:
        return [d for d in self.devices.values() if d.up]

    def removable(self) -> list[Device]:
        """Devices that rights are given to and taken from: never the first."""
        return [d for d in self.devices.values() if d.key.public != self.first.key.public]

    @property
    def first(self) -> Device:
        """Alice's first device, which always may do everything."""
        return self.devices["a"]

    def certificates_of(self, owner: OwnerKey) -> list[Statement]:
        """What an owner signed about devices."""
        return [
            certify(owner, d.key)
            for d in self.devices.values()
            if d.owner is owner and d.name in "abcde"
        ]

    def note_entries(self, device: Device) -> None:
        """Look at what entered a device's log: its own entries are promised now."""
        device.last_written = []
        for _, author, incarnation, seq, entry in device.fresh_entries():
            place = (author, incarnation, seq)
            self.ledger.seen(place, entry, may_fork=self.is_forked(author))
            if author == device.device:
                self.ledger.written(place, entry)
                device.last_written.append(entry)

    def is_forked(self, author: bytes) -> bool:
        """Whether the world may have made two of a device."""
        return any(d.may_fork for d in self.devices.values() if d.device == author)

    # -- living ----------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Live: each step one thing begins, and some time passes."""
        for _ in range(steps):
            self._begin_something()
            self.go_on(self.random.randrange(400) * MILLISECOND_US)

    def go_on(self, us: int) -> None:
        """Let time pass."""
        self.schedule.run(self.schedule.now_us + us)
        self._raise()

    def _begin_something(self) -> None:
        roll = self.random.random()
        up = self.up()
        if roll < self.theme.mishaps or not up:
            mishaps.happen(self)
        elif roll < 0.45 + self.theme.mishaps and len(self.devices) > 1:
            device = self.random.choice(up)
            self.visit(
                device, self.random.choice([d for d in self.devices.values() if d is not device])
            )
        else:
            self._act(self.random.choice(up))

    def _act(self, device: Device) -> None:
        if not device.holds("write") and self.random.random() < 0.8:
            device = self.first if self.first.up else device
        table = dict(acts.ANYBODY)
        if device.owner is self.owner and device.holds("read"):
            table |= acts.FOUNDER
        name = self.choose({name: weight for name, (weight, _) in table.items()})
        self.schedule.spawn(device, name, acts.allowed(device, name, table[name][1]))

    def choose(self, weights: dict[str, int]) -> str:
        """One of these, as likely as the theme has it."""
        factors = [weight * self.theme.factors.get(name, 1) for name, weight in weights.items()]
        return self.random.choices(list(weights), factors)[0]

    def visit(self, device: Device, peer: Device) -> Session:
        """Begin a session."""
        session = Session(device, peer)
        self.schedule.spawn(device, f"session with {peer.name}", session.run())
        self.counts["sessions"] += 1
        return session

    def _ended(self, task: Task, error: BaseException | None) -> None:
        if isinstance(error, Killed):
            device = task.owner
            assert isinstance(device, Device)
            self.counts["kills inside a hop"] += 1
            self.trace(f"{device.name} is killed in {task.name}")
            device.crash()
        elif error is not None and self.failure is None:
            self.trace(f"{task.name}: {type(error).__name__}: {error}")
            self.failure = error

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- coming to rest --------------------------------------------------------------------------

    def come_to_rest(self) -> int:
        """Heal everything and pull until nothing moves; the rounds it took."""
        self.network.heal()
        # A forked log is sent from its start to who is not known to hold the fork's place, so a
        # limit below its length would be all that ever comes.
        self.pull_limits = (PULL_ENTRIES,)
        for device in self.devices.values():
            if not device.up:
                device.boot()
            device.fuse.left, device.fuse.torn = None, False
        self.schedule.run()
        self._raise()
        self.trace("everything is healed")
        for done in range(ROUNDS_MAX):
            before = self._positions()
            stalled = self._round()
            if self._positions() == before:
                assert not stalled, f"stalled at rest: {stalled}"
                return done
        raise AssertionError(f"not quiet after {ROUNDS_MAX} rounds")

    def _round(self) -> list[str]:
        """Everybody pulls from everybody; the sessions that stalled."""
        pairs = [(d, p) for d in self.devices.values() for p in self.devices.values() if d is not p]
        self.random.shuffle(pairs)
        stalled = []
        while pairs:
            some, pairs = pairs[:3], pairs[3:]
            sessions = [(self.visit(d, p), f"{d.name} from {p.name}") for d, p in some]
            self.schedule.run()
            self._raise()
            stalled += [names for session, names in sessions if session.stalled]
            assert not self.schedule.tasks, f"left hanging: {[t.name for t in self.schedule.tasks]}"
            assert not any(s.broken for s, _ in sessions), "a session broke without a cause"
        return stalled

    def _positions(self) -> list[tuple[object, ...]]:
        return [
            (
                d.store.vector_digest(),
                d.store.statements_digest(),
                len(d.store.keys),
                len(d.store.wants(256)),
            )
            for d in self.devices.values()
        ]

    def close(self) -> None:
        for device in self.devices.values():
            device.close()


def _word(source: random.Random) -> str:
    """A value with a word that is nowhere else, to look for its bytes."""
    word = "".join(source.choices("bcdfghjklmnpqrstvwxz", k=11))
    return f"the owner likes {word}"
