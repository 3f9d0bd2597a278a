"""What must hold of a world at rest (DESIGN 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memory.query import Filters, list_records
from tests.sim.ledger import Promise
from tests.sim.reference import differences
from tests.support.memory_checks import assert_equal_nodes, assert_sound, erased_records

if TYPE_CHECKING:
    from tests.sim.device import Device
    from tests.sim.world import World

LIVE = ("new", "current")


def check(world: World) -> None:
    """All of them; raises ``AssertionError`` for the first that does not hold."""
    readers = _readers(world)
    world.counts["readers"] += len(readers)
    world.counts["devices"] += len(world.devices)
    _check_readers(world, readers)
    for device in world.devices.values():
        _check_device(world, device)
    if not world.first.store.waiting_for_key:
        found = differences(world.first.store)
        assert not found, "other than the reference:\n" + "\n".join(found[:5])
    world.counts["entries with the removed alone"] += _lose_the_unreachable(world, readers)
    shaky = _shaky(world)
    for reader in readers:
        if not reader.store.waiting_for_key:
            _check_promises(world, reader, shaky)


def _readers(world: World) -> list[Device]:
    """The devices that may read, as the founder's first device knows."""
    authority = world.first.store.authority
    return [d for d in world.devices.values() if authority.holds_device(d.device, "read").held]


def _check_readers(world: World, readers: list[Device]) -> None:
    """Equal rights, equal memories; all hold the same statements, keys and entries."""
    first = world.first
    assert first in readers
    for device in readers:
        assert device.holds("read"), f"{device.name} does not know that it may read"
        same = device.store.statement_ids() == first.store.statement_ids()
        assert same, f"{device.name} holds other statements"
        waits = device.store.waiting_for_key
        assert not waits or _is_lost_key(world, device), f"{device.name} waits for a key"
    held = [d for d in readers if not d.store.waiting_for_key]
    if held:
        assert_equal_nodes(*held)
    counts = world.counts
    counts["forked logs"] += sum(r.fork_seq is not None for r in first.store.logs.rows())
    counts["entries that do not count"] += first.rows(
        "SELECT count(*) FROM entry WHERE reason IS NOT NULL AND reason <> 'erased'"
    )[0][0]
    world.counts["worlds with a lost key"] += len(held) < len(readers)


def _is_lost_key(world: World, device: Device) -> bool:
    """Whether the only copy of a key went with a disk that was set back."""
    wanted = set(device.store.authority.key_commitments())
    held = {k.commitment for d in world.devices.values() for k in d.keys}
    return not wanted <= held and world.counts["restores"] > 0


def _check_device(world: World, device: Device) -> None:
    """The log proves itself, a rebuild changes nothing, what is erased is gone from the files."""
    rows = device.rows("SELECT device, incarnation, seq, hash FROM entry JOIN log ON log.id = log")
    for author, incarnation, seq, entry in rows:
        world.ledger.seen((author, incarnation, seq), entry, may_fork=world.is_forked(author))
    assert_sound(device)
    assert device.clean(), "something reads while it should be clean"
    if not device.store.waiting_for_key:
        _check_bytes(world, device)


def _check_bytes(world: World, device: Device) -> None:
    """A forgotten word is in none of the files, unless a record that is not erased holds it."""
    kept = " ".join(
        t.lower() for (t,) in device.rows("SELECT text FROM record WHERE own <> 'erased'")
    )
    payloads = b"".join(
        p for (p,) in device.rows("SELECT payload FROM entry WHERE payload IS NOT NULL")
    )
    words = {p.text.split()[-1].strip(".").lower() for p in world.ledger.remembered}
    gone = {w for w in words if w not in kept and w.encode() not in payloads.lower()}
    world.counts["words gone from the files"] += len(gone)
    for path in device.disk.files():
        data = path.read_bytes().lower()
        left = [w for w in gone if w.encode() in data]
        assert not left, f"{device.name}: {path.name} still holds {left}"


def _lose_the_unreachable(world: World, readers: list[Device]) -> int:
    """After a restore, what only devices hold that may not read any more is lost, too (R25)."""
    held = set[bytes]().union(*(d.entries() for d in readers))
    return world.ledger.lose(held) if world.counts["restores"] else 0


# -- promises ------------------------------------------------------------------------------------


def _shaky(world: World) -> set[bytes]:
    """Devices of whose acts nothing is promised: cut by somebody, or forked by the world."""
    statements = world.first.store.authority
    cut: set[bytes] = set()
    for kind in ("revoke", "decertify"):
        for statement in statements.valid(kind):
            body = statement.body
            subject = bytes(body["subject"] if kind == "revoke" else body["device"])
            cut |= {subject} | {bytes(d) for d in statements.certified(subject)}
            cut |= {bytes(d.device) for d in world.devices.values() if d.owner.public == subject}
    forked = {bytes(d.device) for d in world.devices.values() if world.is_forked(d.device)}
    admitted = {bytes(d.device) for d in world.devices.values() if not d.holds("write")}
    return cut | forked | admitted


def _check_promises(world: World, reader: Device, shaky: set[bytes]) -> None:
    ledger = world.ledger
    held = {bytes(h) for (h,) in reader.rows("SELECT hash FROM entry")}
    expected = {e for e, p in ledger.entries.items() if p[0] not in shaky and e not in ledger.lost}
    assert expected <= held, f"{reader.name} lacks {len(expected - held)} acknowledged entries"
    world.counts["promises: entries"] += len(expected)
    _check_each(world, "remembered", ledger.kept(ledger.remembered, shaky), _is_there(reader))
    _check_each(world, "forgotten", ledger.kept(ledger.forgotten, shaky), _is_gone(reader))
    acts = reader.store.authority.acts
    retired = [p for p in ledger.kept(ledger.retired, shaky) if p.record not in acts]
    _check_each(world, "retired", retired, _is_withheld(reader))
    listed = list_records(
        reader.store, reader.readers, Filters(), limit=1000, cursor=None, now_us=reader.now_us
    )
    erased = set(erased_records(reader))
    for seen in listed.records:
        assert seen.state in LIVE
        assert seen.record not in erased


def _check_each(
    world: World, what: str, promises: list[Promise], holds: Callable[[Promise], str | None]
) -> None:
    world.counts[f"promises: {what}"] += len(promises)
    for promise in promises:
        problem = holds(promise)
        assert problem is None, f"{what} {promise.record.hex()}: {problem}"


def _row(reader: Device, record: bytes) -> tuple[str, str, str, int] | None:
    rows = reader.rows("SELECT text, own, state, live FROM record WHERE record = ?", record)
    return rows[0] if rows else None


def _is_there(reader: Device) -> Callable[[Promise], str | None]:
    # One that was struck out later counts: the payload may be nowhere by then (R30).
    tombstones = {r for (r,) in reader.rows("SELECT record FROM tombstone")}

    def problem(promise: Promise) -> str | None:
        row = _row(reader, promise.record)
        if promise.record in tombstones:
            return None
        if row is None:
            return "not there"
        return None if row[0] == promise.text else f"reads {row[0]!r}, not {promise.text!r}"

    return problem


def _is_gone(reader: Device) -> Callable[[Promise], str | None]:
    def problem(promise: Promise) -> str | None:
        row = _row(reader, promise.record)
        if row is not None and (row[1] != "erased" or row[0] or row[3]):
            return f"still here as {row[1:]}"
        payloads = reader.rows(
            "SELECT count(*) FROM entry WHERE record = ? AND payload IS NOT NULL"
            " AND payload_kind NOT IN (0, 2)",
            promise.record,
        )
        return None if payloads == [(0,)] else "its payloads are here"

    return problem


def _is_withheld(reader: Device) -> Callable[[Promise], str | None]:
    # Built on what was cut: held and listed, until a person adopts it (DESIGN 6).
    held = {e for (e,) in reader.rows("SELECT hash FROM entry WHERE reason = 'waiting'")}

    def problem(promise: Promise) -> str | None:
        if not held.isdisjoint(promise.entries):
            return None
        row = _row(reader, promise.record)
        return f"readable as {row[2]}" if row is not None and row[3] else None

    return problem
