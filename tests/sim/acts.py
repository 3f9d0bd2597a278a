"""What people and agents do on the devices of a simulated world."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from keys.errors import NotFoundError, RefusedError, StoreError, UsageError
from keys.ids import RecordId
from memory.cutting import cuts_of, tombstones_past
from memory.notes import Note
from memory.writing import remember_batch
from tests.sim.ledger import Promise
from tests.support.author import seeded

if TYPE_CHECKING:
    from tests.sim.device import Device

TAGS = ("home", "work", "garden")
LAYERS = ("day", "week", "month")
RIGHTS = (("read",), ("write",), ("review", "write"))
NOBODY_BACK_US = 3_600_000_000

Act = Callable[["Device"], Coroutine[Any, Any, None]]


def pick(device: Device) -> RecordId:
    """A record that the device knows of, rather a late one."""
    known = [
        r for (r,) in device.rows("SELECT record FROM record WHERE kind = 'observation' ORDER BY n")
    ]
    if not known:
        raise NotFoundError("nothing is here")
    back = min(int(device.random.expovariate(0.3)), len(known) - 1)
    return RecordId(known[-1 - back])


def spelled(text: str, source: random.Random) -> str:
    """One value, written another way."""
    return source.choice((str, str.upper, str.title, lambda t: f"  {t}. "))(text)


def some_text(device: Device) -> str:
    return spelled(device.random.choice(device.sim.values), device.random)


async def allowed(device: Device, name: str, act: Act) -> None:
    """An act that may be refused; nothing else may go wrong."""
    sim = device.sim
    try:
        await act(device)
    except (RefusedError, UsageError, NotFoundError) as exc:
        sim.counts["acts refused"] += 1
        sim.trace(f"{device.name} {name}: {type(exc).__name__}")
    except StoreError:
        assert device.store.waiting_for_key, "a store that fails without a reason"
    else:
        sim.counts[f"act: {name}"] += 1
        sim.trace(f"{device.name} {name}")


def promise(device: Device, record: RecordId, text: str = "") -> Promise:
    """That what the last hop wrote about a record will hold."""
    return Promise(device.device, record, tuple(device.last_written), text)


# -- memories ------------------------------------------------------------------------------------


async def remember(device: Device) -> None:
    text, tags = some_text(device), tuple(device.random.sample(TAGS, device.random.randrange(3)))
    provenance = device.random.choice(("user", "user", "user", "web"))
    note = Note(text, tags=tags, provenance=provenance)
    written = await device.hop(lambda: device.write(note))
    if written.created:
        device.sim.ledger.remembered.append(promise(device, written.record, text))


async def batch(device: Device) -> None:
    notes = [Note(some_text(device)) for _ in range(device.random.randint(2, 9))]
    await device.hop(lambda: remember_batch(device.author, notes, Via.LOCAL, device.now_us))


async def derive(device: Device) -> None:
    text = f"{some_text(device)} and so on"

    def act() -> None:
        sources = {pick(device), pick(device)}
        device.remember(text, derived_from=tuple(sorted(sources)))

    await device.hop(act)


async def revise(device: Device) -> None:
    text = some_text(device)
    await device.hop(lambda: device.revise(pick(device), text))


async def retire(device: Device) -> None:
    def act() -> RecordId | None:
        record = pick(device)
        return record if device.retire(record) == "deprecated" else None

    record = await device.hop(act)
    if record is not None and device.last_written:
        device.sim.ledger.retired.append(promise(device, record))


async def keep(device: Device) -> None:
    await device.hop(lambda: device.keep(pick(device)))


async def tag(device: Device) -> None:
    word = device.random.choice(TAGS)
    verb = device.tag if device.random.random() < 0.6 else device.untag
    await device.hop(lambda: verb(pick(device), word))


async def move(device: Device) -> None:
    layer = device.random.choice(LAYERS)
    await device.hop(lambda: device.move(pick(device), layer))


async def forget(device: Device) -> None:
    with_sources = device.random.random() < 0.3

    def act() -> RecordId:
        record = pick(device)
        assert device.forget(record, with_sources=with_sources) == []
        return record

    record = await device.hop(act)
    if device.last_written:
        device.sim.ledger.forgotten.append(promise(device, record))


# -- what only a person may do -------------------------------------------------------------------


async def lift(device: Device) -> None:
    await device.hop(lambda: device.lift(pick(device)))


async def review(device: Device) -> None:
    yes = device.random.random() < 0.7

    def act() -> None:
        waiting = [r for (r,) in device.rows("SELECT record FROM record WHERE state = 'proposed'")]
        if not waiting:
            raise NotFoundError("nothing waits")
        record = RecordId(device.random.choice(sorted(waiting)))
        (device.approve if yes else device.reject)(record)

    await device.hop(act)


async def grant(device: Device) -> None:
    sim, rights = device.sim, device.random.choice(RIGHTS)
    subject = device.random.choice(sim.removable())
    to_owner = subject.owner is not device.owner and device.random.random() < 0.5

    def act() -> None:
        if to_owner:
            device.store.add_statements(sim.certificates_of(subject.owner), device.now_us)
        device.grant(subject.owner if to_owner else subject, *rights)

    await device.hop(act)


async def revoke(device: Device) -> None:
    sim, source = device.sim, device.random
    subject = source.choice(sim.removable())
    is_owner = subject.owner is not device.owner and source.random() < 0.5
    rights = source.choice((("read",), ("read",), ("write",), ("review",)))
    since = device.now_us - source.randrange(NOBODY_BACK_US) if source.random() < 0.5 else None
    keeps = source.random() < 0.7
    if since is not None:
        sim.counts["backdated cuts"] += 1

    def act() -> None:
        public = subject.owner.public if is_owner else subject.key.public
        certified = device.store.authority.certified(public)
        devices = [bytes(d) for d in certified] if is_owner else [bytes(subject.key.public)]
        fresh = fresh_key(device) if "read" in rights else None
        body = {
            "subject_kind": "owner" if is_owner else "device",
            "subject": public,
            "rights": sorted(rights),
            "cuts": cuts_of(device.store, devices, since),
            "keep": tombstones_past(device.store, devices, since) if keeps else [],
            "keeps": [],
            "replaces": [],
            "key": fresh.commitment if fresh else b"",
        }
        device.act("revoke", body)

    await device.hop(act)


def fresh_key(device: Device) -> FingerprintKey:
    """A new fingerprint key, in its file before the statement that names it (R25)."""
    device.sim.key_count += 1
    key = FingerprintKey(seeded(f"fingerprint key {device.sim.key_count}"))
    device.save_keys([key])
    device.store.keys.append(key)
    return key


ANYBODY: dict[str, tuple[int, Act]] = {
    "remember": (14, remember),
    "batch": (3, batch),
    "derive": (5, derive),
    "revise": (6, revise),
    "retire": (5, retire),
    "keep": (3, keep),
    "tag": (4, tag),
    "move": (2, move),
    "forget": (5, forget),
}
FOUNDER: dict[str, tuple[int, Act]] = {
    "lift": (2, lift),
    "review": (3, review),
    "grant": (4, grant),
    "revoke": (2, revoke),
}
