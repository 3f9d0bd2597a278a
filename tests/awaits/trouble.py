"""Scenes of trouble: homes that come back, are copied or damaged, and are asked for odd things."""

from __future__ import annotations

import shutil
from typing import Final

from tests.awaits import netspace
from tests.awaits.world import AGENT, World

PAGE: Final = 4_096


def returning(w: World) -> None:
    """Values that a person lets in again; rights of an owner; what is asked for by name."""
    a, b = w.a, w.b
    record = w.remember(a, w.text("the old number"))
    text = w.kept[record]
    w.forget(a, record)
    w.gone.pop(record)
    w.remember(a, text, "--lift", "--reason", "it is the new one too")
    guest = w.guest("owner")
    w.pair(a, guest, mine=False)
    owner = str(w.do(guest, "status").get("owner") or w.owner_of(guest))
    w.do(a, "grant", AGENT, owner, "read")
    w.do(a, "revoke", AGENT, owner)
    w.do(a, "audit", "log", AGENT, "--device", b.device)
    w.do(a, "sync", "--once", "--agent", AGENT, code=None)
    out = w.root / f"again{w.number}.jsonl"
    w.do(a, "export", AGENT, "--out", str(out))
    name = f"vouched{w.number}"
    w.do(a, "agent", "create", name)
    w.do(a, "import", name, str(out), "--approve", code=None)
    w.do(a, "agent", "create", name, code=None)
    w.down(guest)


def unforgotten(w: World) -> None:
    """A tombstone reaches one node only and is cut off there: the payload is asked for again."""
    a, b = w.a, w.b
    guest = w.guest("eraser")
    w.pair(a, guest, mine=False)
    w.pair(b, guest, mine=False)
    w.do(a, "grant", AGENT, guest.device, "read,write")

    def offered() -> bool:
        guest.run("sync", "--once")
        return bool(guest.run("agent", "list").result.get("agents"))

    w.until("the offer", offered)
    w.do(guest, "agent", "accept", str(w.do(guest, "agent", "list")["agents"][0]["agent"]))
    record = w.remember(a, w.text("the anchor"))
    w.equal(a, b, guest)
    w.down(a)
    w.do(guest, "forget", AGENT, record, "--reason", "by a guest")
    w.do(b, "sync", "--once", code=None)
    w.until("b to hear", lambda: b.run("show", AGENT, record).result.get("state") == "erased")
    w.down(guest)
    w.down(b)
    w.up(a)
    w.do(a, "revoke", AGENT, guest.device, "--since", "2020-01-01")
    w.up(b)
    w.equal(a, b)


def copied(w: World) -> None:
    """A snapshot of a home is restored, and a copy of it comes up beside it."""
    a, b = w.a, w.b
    w.remember(b, w.text("before"))
    w.equal(a, b)
    w.down(b)
    snapshot = w.root / f"snapshot{w.number}"
    shutil.copytree(b.home, snapshot)
    w.up(b)
    w.remember(b, w.text("after"))
    w.equal(a, b)
    w.down(b)
    shutil.rmtree(b.home)
    snapshot.rename(b.home)
    w.up(b)
    w.equal(a, b)
    w.remember(b, w.text("and on"))
    w.equal(a, b)


def damaged(w: World) -> None:
    """A database that is none: whatever a node makes of it, it ends."""
    guest = w.guest("broken", up=False)
    w.spoilt.add(guest.name)
    (guest.home / "node.db").write_bytes(b"no database" * 1000)
    w.do(guest, "status", code=None)
    w.do(guest, "agent", "list", code=None)
    other = w.guest("torn", up=False)
    w.spoilt.add(other.name)
    name = f"torn{w.number}"
    w.do(other, "agent", "create", name)
    w.do(other, "remember", name, w.text("on a page that goes"))
    (path,) = (other.home / "agents").glob("*.db")
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    w.do(other, "status", code=None)
    w.do(other, "doctor", code=None)
    path.write_bytes(whole[:PAGE] + bytes(len(whole) - PAGE))
    w.up(other)
    w.do(other, "list", name, code=None)
    path.write_bytes(whole[:PAGE] + b"x" * (len(whole) - PAGE))
    w.do(other, "search", name, "page", code=None)
    w.do(other, "doctor", code=None)
    other.down()
    w.look()


def cloned(w: World) -> None:
    """Two copies of one home are up at once: both stop writing, and a person decides."""
    friend = w.guest("friend")
    one = w.guest("one")
    w.pair(friend, one, mine=False)
    name = f"shared{w.number}"
    w.do(one, "agent", "create", name)
    w.do(one, "remember", name, w.text("before the copy"))
    w.down(one)
    w.number += 1
    two = type(one)(w.root, f"two{w.number}")
    shutil.copytree(one.home, two.home)
    w.guests.append(two)
    options = () if w.multicast else ("--no-discovery",)
    for node in (one, two):
        node.listen = ":0" if w.multicast else node.listen
        node.options = options
        w.up(node)

    def stopped() -> bool:
        for node in (one, two):
            node.run("sync", "--once")
        said = [n.run("remember", name, w.text("on a copy")) for n in (one, two)]
        return all(s.error.get("code") == "cloned" for s in said)

    w.until("both copies to stop", stopped)
    w.down(one)
    w.down(two)
    w.do(two, "devices", "renew", "--name", two.name)
    w.do(one, "devices", "renew", "--keep")
    for node in (one, two):
        w.do(node, "remember", name, w.text("going on"))
    w.down(friend)


def odd(w: World) -> None:
    """What people ask for by mistake, twice at once, or while somebody reads the file."""
    a = w.a
    w.do(a, "sync", "--once", "--agent", "nobody", code=None)
    w.do(a, "grant", AGENT, w.owner_of(a), "read", code=None)
    guest = w.guest("odd")
    first, second = a.begin("pair", "open"), None
    w.waiting.append((a, first))
    shown = first.line()
    w.look()
    assert shown is not None
    second = a.begin("pair", "open")
    w.waiting.append((a, second))
    second.line()
    w.look()
    by = ("--address", a.listen, "--code")
    w.do(guest, "pair", "join", *by, shown["code"], "--mine", code=None)
    w.do(guest, "pair", "join", *by, shown["code"], code=None)
    for _, child in w.waiting:
        child.end()
    w.waiting.clear()
    w.down(guest)
    idle = w.guest("late", up=False)
    w.up(idle, "--no-discovery", "--background", "--idle-stop", "0.5")
    w.do(idle, "up", "--background", code=None)
    assert idle.child is not None
    idle.child.wait(w.is_doomed)
    record = w.remember(a, w.text("read while it goes"))
    w.going[record] = w.kept.pop(record)
    with w.reader(a):
        going = a.begin("forget", AGENT, record, "--reason", "private")
        w.waiting.append((a, going))
        w.until("it to be erased", lambda: w.state(a, record) == "erased")
    w.ended(a, "forget", a.finish(going, w.is_doomed), 0)
    w.waiting.clear()
    w.gone[record] = w.going.pop(record)


def meeting(w: World) -> None:
    """Nodes find each other by multicast, while addresses come and go."""
    if not w.multicast:
        return
    one = w.guest("near", options=("--listen", ":0"))
    two = w.guest("by", options=("--listen", ":0"))
    one.listen = two.listen = ":0"
    waiting = one.begin("pair", "open", "--mine", "--yes")
    w.waiting.append((one, waiting))
    first = waiting.line()
    w.look()
    assert first is not None
    w.do(two, "pair", "list")
    netspace.change_address()
    w.do(two, "pair", "join", "--device", one.device, "--code", first["code"], "--mine")
    w.ended(one, "pair open", one.finish(waiting, w.is_doomed), 0)
    w.waiting.clear()
    w.do(one, "agent", "create", f"near{w.number}")
    w.do(two, "sync", "--once")
    w.down(one)
    w.up(one)
    w.until("sight", lambda: w.seen(two, one))
    w.down(one)
    w.down(two)
