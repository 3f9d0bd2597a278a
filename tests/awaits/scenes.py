"""The workload: what two nodes, and guests of theirs, do. Each scene can be played again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tests.awaits.trouble import cloned, copied, damaged, meeting, odd, returning, unforgotten
from tests.awaits.world import AGENT, World

Scene = Callable[[World], None]


def writing(w: World) -> None:
    """Every verb that writes, and the ones that read, through a running node."""
    a, b = w.a, w.b
    first = w.remember(a, w.text("the kite"), "--tag", "sky")
    w.do(a, "remember", AGENT, w.kept[first])
    w.do(a, "tag", AGENT, first, "red")
    w.do(a, "untag", AGENT, first, "red")
    w.do(a, "move", AGENT, first, "--layer", "week")
    w.do(b, "sync", "--once", code=None)
    w.equal(a, b)
    w.do(b, "keep", AGENT, first)
    w.do(a, "revise", AGENT, first, w.text("the kite is"), "--reason", "moved", code=None)
    old = w.remember(a, w.text("the shop"))
    w.do(a, "retire", AGENT, old, "--reason", "closed")
    w.do(a, "remember", AGENT, w.kept[old], code=3)
    w.do(a, "reinstate", AGENT, old, "--reason", "open again")
    for words in (
        ("search", AGENT, "kite", "--explain"),
        ("show", AGENT, first),
        ("history", AGENT, first),
        ("list", AGENT),
        ("status",),
        ("doctor",),
        ("permissions", AGENT),
        ("agent", "list"),
        ("agent", "show", AGENT),
        ("audit", "log", AGENT),
        ("peers",),
        ("pair", "list"),
        ("conflicts", "list", AGENT),
        ("quarantine", "list", AGENT),
        ("review", "list", AGENT),
        ("rebuild", AGENT),
    ):
        w.do(a, *words, code=None)


def forgetting(w: World) -> None:
    """Forget what has reached the other; look at the receipts; let the value return."""
    a, b = w.a, w.b
    secret = w.remember(a, w.text("the spare key"))
    made = w.remember(a, w.text("a note of it"), "--derived-from", secret)
    w.equal(a, b)
    w.do(b, "forget", AGENT, secret, "--reason", "private", "--dry-run")
    text = w.kept.pop(made)
    w.forget(b, secret)
    w.gone[made] = text
    w.equal(a, b)
    w.do(a, "forget", AGENT, secret, "--status")
    w.do(a, "remember", AGENT, w.gone[secret], code=3)
    other = w.remember(a, w.text("the other key"))
    lost = w.kept[other]
    w.forget(a, other)
    w.do(a, "lift", AGENT, other, "--reason", "wrong one")
    w.gone.pop(other)
    w.remember(a, lost)


def apart(w: World) -> None:
    """One node is away while the other writes and forgets; then it is told."""
    a, b = w.a, w.b
    secret = w.remember(a, w.text("the safe"))
    w.equal(a, b)
    w.down(b)
    rows = w.root / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": w.text("shelf")}) + "\n" for _ in range(40)))
    w.do(a, "remember", AGENT, "--jsonl", str(rows))
    w.forget(a, secret)
    w.do(a, "sync", "--once", code=4)
    w.remember(b, w.text("written alone"))
    w.do(b, "sync", "--once", code=None)
    w.up(b)
    w.equal(a, b)


def alone(w: World) -> None:
    """Commands on a home that no node serves."""
    b = w.b
    w.down(b)
    record = w.remember(b, w.text("by hand"))
    for words in (("list", AGENT), ("status",), ("peers",), ("doctor",), ("audit", "verify")):
        w.do(b, *words, code=None)
    w.do(b, "keep", AGENT, record)
    w.up(b)


def moving(w: World) -> None:
    """Export, import on a second agent, approve and reject what waits."""
    a = w.a
    w.remember(a, w.text("to export"))
    out = w.root / f"export{w.number}.jsonl"
    w.do(a, "export", AGENT, "--out", str(out))
    name = f"copy{w.number}"
    w.do(a, "agent", "create", name)
    said = w.do(a, "import", name, str(out))
    w.do(a, "review", "approve", name, "--run", str(said["run"]), code=None)
    for decision in ("approve", "reject"):
        rule = w.do(a, "remember", AGENT, w.text("a rule"), "--category", "rule")["record"]
        shown = w.do(a, "review", "show", AGENT, rule)
        heads = ("--heads", str(shown["heads"])) if decision == "approve" else ()
        reason = ("--reason", "checked")
        w.do(a, "review", decision, AGENT, rule, *heads, *reason)


def pairing(w: World) -> None:
    """A third device of the owner joins, gets everything, and is lost."""
    guest = w.guest("mine")
    w.pair(w.a, guest)
    w.until("the agent to arrive", lambda: guest.run("digest", AGENT).code == 0)
    w.equal(w.a, guest)
    device = guest.device
    w.do(guest, "remember", AGENT, w.text("by the guest"))
    w.equal(w.a, w.b, guest)
    w.do(w.a, "devices", "revoke", device)
    w.equal(w.a, w.b)
    w.down(guest)
    w.do(w.a, "peers", "remove", device)


def granting(w: World) -> None:
    """Somebody else's device: paired, granted, let in, revoked, removed."""
    a = w.a
    guest = w.guest("foreign")
    w.pair(a, guest, mine=False)
    w.do(guest, "sync", "--once")
    w.do(a, "grant", AGENT, guest.device, "read,write")

    def offered() -> bool:
        guest.run("sync", "--once")
        return bool(guest.run("agent", "list").result.get("agents"))

    w.until("the offer", offered)
    agent = w.do(guest, "agent", "list")["agents"][0]["agent"]
    w.do(guest, "agent", "accept", agent)
    w.equal(a, guest)
    w.do(guest, "remember", AGENT, w.text("a foreign word"))
    w.equal(a, guest)
    w.do(a, "revoke", AGENT, guest.device, "--since", "2020-01-01")
    w.do(guest, "sync", "--once", code=None)
    w.do(guest, "remember", AGENT, w.text("no more"), code=None)
    w.do(a, "peers", "remove", guest.device)
    w.do(guest, "sync", "--once", code=None)
    w.down(guest)


def refusing(w: World) -> None:
    """A wrong code, the pairing of nobody, a declined one: each ends on both sides."""
    a = w.a
    guest = w.guest("wrong")
    waiting = a.begin("pair", "open")
    w.waiting.append((a, waiting))
    first = waiting.line()
    w.look()
    assert first is not None
    code = first["code"][:2] + f"{(int(first['code'][2:]) + 1) % 10_000:04}"
    w.do(guest, "pair", "join", "--address", a.listen, "--code", code, code=None)
    waiting.end()
    a.finish(waiting)
    w.waiting.clear()
    w.do(guest, "pair", "join", "--address", "127.0.0.1:9", "--code", first["code"], code=None)
    w.do(a, "pair", "open", "--ttl", "1", code=None)
    w.down(guest)


def recovering(w: World) -> None:
    """Every device of an owner is lost, and a new one takes his place by the code."""
    friend = w.guest("friend")
    holder = w.guest("lost")
    code = w.root / f"code{w.number}"
    code.write_text(holder.recovery)
    name = f"own{w.number}"
    w.do(holder, "agent", "create", name)
    w.do(holder, "remember", name, w.text("mine alone"))
    w.pair(holder, friend, mine=False)
    w.do(holder, "grant", name, friend.device, "read")

    def offered() -> bool:
        friend.run("sync", "--once")
        return bool(friend.run("agent", "list").result.get("agents"))

    w.until("the offer", offered)
    agent = w.do(friend, "agent", "list")["agents"][0]["agent"]
    w.do(friend, "agent", "accept", agent)
    w.do(friend, "sync", "--once")
    w.down(holder)
    new = w.guest("new")
    w.pair(friend, new, mine=False)
    w.do(new, "owner", "recover", "--code-file", str(code))
    w.do(new, "remember", name, w.text("mine again"), code=None)
    w.do(new, "sync", "--once", code=None)
    w.down(new)
    w.down(friend)


def background(w: World) -> None:
    """A command that needs a node starts one; a node that is started takes over from it."""
    guest = w.guest("idle", up=False)
    other = w.guest("caller")
    w.pair(guest, other, mine=False, words=("--ttl", "60"))
    w.up(guest, "--no-discovery", "--api", "127.0.0.1:0")
    w.do(guest, "up", "--listen", "127.0.0.1:0", code=5)
    w.do(other, "peers")
    open_still = guest.begin("pair", "open")
    w.waiting.append((guest, open_still))
    open_still.line()
    w.look()
    w.down(guest)
    w.down(other)


SCENES: Final[tuple[Scene, ...]] = (
    writing,
    forgetting,
    apart,
    alone,
    moving,
    pairing,
    granting,
    refusing,
    recovering,
    background,
    returning,
    unforgotten,
    copied,
    damaged,
    cloned,
    odd,
    meeting,
)
