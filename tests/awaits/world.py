"""Two nodes of one owner and what they promised; what must hold whenever somebody was killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.awaits.lines import Shared
from tests.awaits.processes import PASSPHRASE, WAIT_S, Child, Node, Said
from tests.support.cluster import files_with

AGENT = "muse"
ROUNDS = 6
LISTED = 1000
PAUSE_S = 0.02


class KilledError(Exception):
    """Somebody obeyed the order to die, so the scene ends here."""


@dataclass
class World:
    """A scene's stage: nodes ``a`` and ``b`` of one owner, and guests of one scene each.

    ``kept``: record -> text that a command acknowledged. ``going``: record -> text of a forget that
    was begun; ``gone`` of one that was acknowledged.
    """

    root: Path
    shared: Shared
    guests: list[Node] = field(default_factory=list)
    waiting: list[tuple[Node, Child]] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    going: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    spoilt: set[str] = field(default_factory=set)  # guests whose files a scene damaged
    number: int = 0

    multicast: bool = False

    def __post_init__(self) -> None:
        secret = self.root / "passphrase"
        secret.write_text(PASSPHRASE)
        secret.chmod(0o600)
        sockets = self.root / "run"
        sockets.mkdir(mode=0o700)
        os.environ |= {"ROOST_PASSPHRASE_FILE": str(secret), "XDG_RUNTIME_DIR": str(sockets)}
        self.a, self.b = Node(self.root, "a"), Node(self.root, "b")

    def begin(self) -> None:
        """Make the two nodes, pair them, and give them an agent."""
        for node in (self.a, self.b):
            self.do(node, "init", "--name", node.name)
            self.up(node)
        self.pair(self.a, self.b)
        self.do(self.a, "agent", "create", AGENT)
        self.check()

    # -- acting ----------------------------------------------------------------------------------

    def do(self, node: Node, *words: str, code: int | None = 0) -> dict[str, Any]:
        """A command that ends with ``code`` (None: however); what it said."""
        return self.ended(node, words, node.run(*words, doomed=self.is_doomed), code)

    def ended(self, node: Node, words: Any, said: Said, code: int | None) -> dict[str, Any]:
        """Look at how a command ended; raises ``KilledError`` when somebody was killed."""
        self.look()
        if code is not None:
            assert said.code == code, f"{node.name} {words}: {said.code} {said.error}"
        return said.result or said.error

    def is_doomed(self) -> bool:
        """Whether somebody was killed, so that who waits for him waits in vain."""
        return bool(self.shared.dead)

    def look(self) -> None:
        """Raises ``KilledError`` when somebody was killed."""
        if self.shared.dead:
            raise KilledError

    def up(self, node: Node, *options: str) -> None:
        """Serve a home."""
        ready = node.up(*options)
        self.look()
        assert ready, f"{node.name} did not start: {node.journal.read_text()[-2000:]}"

    def down(self, node: Node) -> None:
        """Stop serving, by a signal; the node says that it ended well."""
        code = node.down()
        self.look()
        assert code == 0, f"{node.name} ended with {code}"

    def pair(
        self,
        opener: Node,
        joiner: Node,
        *,
        mine: bool = True,
        by: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
    ) -> None:
        """Pair two nodes, by typed address unless ``by`` says otherwise."""
        flags = ["--mine"] if mine else []
        waiting = opener.begin("pair", "open", *flags, *(["--yes"] if mine else []), *words)
        self.waiting.append((opener, waiting))
        first = waiting.line()
        self.look()
        assert first is not None, f"no code: {self._errors(opener)}"
        by = by or ("--address", first["addresses"][0] if words else opener.listen)
        self.do(joiner, "pair", "join", *by, "--code", first["code"], *flags)
        said = opener.finish(waiting, self.is_doomed)
        self.waiting.remove((opener, waiting))
        self.ended(opener, "pair open", said, 0)

    def guest(self, name: str = "g", *, up: bool = True, options: tuple[str, ...] = ()) -> Node:
        """A new home for one scene."""
        self.number += 1
        node = Node(self.root, f"{name}{self.number}")
        if options:
            node.options = options
        self.guests.append(node)
        node.recovery = str(self.do(node, "init", "--name", node.name)["recovery"])
        if up:
            self.up(node)
        return node

    def remember(self, node: Node, text: str, *words: str) -> str:
        """Write a memory; it is a promise once the command has ended."""
        record = str(self.do(node, "remember", AGENT, text, *words)["record"])
        self.kept[record] = text
        return record

    def forget(self, node: Node, record: str, *words: str) -> None:
        """Erase a memory; a promise that all of it is done or nothing, and that it stays."""
        self.going[record] = self.kept.pop(record)
        self.do(node, "forget", AGENT, record, "--reason", "private", *words)
        self.gone[record] = self.going.pop(record)

    def text(self, about: str) -> str:
        """A value that was never there before."""
        self.number += 1
        return f"{about} zq{self.number}x{os.urandom(4).hex()}"

    def until(self, what: str, seen: Any) -> None:
        """Wait until something is so."""
        end_s = time.monotonic() + WAIT_S
        while not seen():
            self.look()
            up = [n.name for n in (self.a, self.b, *self.guests) if n.is_up]
            assert time.monotonic() < end_s, f"waited in vain for {what}; up: {up}"
            time.sleep(PAUSE_S)

    def equal(self, *nodes: Node) -> None:
        """Wait until nodes hold the same."""

        def same() -> bool:
            said = [node.run("digest", AGENT) for node in nodes]
            return all(s.code == 0 for s in said) and len({s.result["digest"] for s in said}) == 1

        self.until("equal digests", same)

    def owner_of(self, node: Node) -> str:
        """The owner of a guest's home, which nobody else tells."""
        with _reading(node.home / "node.db") as db:
            return str(db.execute("SELECT value FROM setting WHERE key = 'owner'").fetchone()[0])

    def state(self, node: Node, record: str) -> str:
        """The state of a record, as a person sees it."""
        return str(self.do(node, "show", AGENT, record)["state"])

    @contextmanager
    def reader(self, node: Node) -> Iterator[None]:
        """Somebody else reads the agents' files of a node meanwhile."""
        with ExitStack() as stack:
            for path in (node.home / "agents").glob("*.db"):
                db = stack.enter_context(_reading(path))
                db.execute("BEGIN")
                db.execute("SELECT count(*) FROM log").fetchone()
            yield

    def seen(self, node: Node, other: Node) -> bool:
        """Whether ``node`` is connected to ``other``."""
        peers = self.do(node, "status")["peers"]
        return any(p["device"] == other.device and p["state"] == "connected" for p in peers)

    # -- after somebody was killed ---------------------------------------------------------------

    def heal(self) -> None:
        """Nobody dies any more; who died comes back, and the guests leave."""
        self.shared.disarm()
        for node in (self.a, self.b, *self.guests):
            if node.child is not None and node.child.pid == self.shared.dead:
                node.child.wait()  # its threads may outlive its first one
        self.shared.forget_dead()
        for node, child in self.waiting:
            child.end()
            node.finish(child)
        self.waiting.clear()
        for guest in self.guests:
            guest.down(signal.SIGKILL)
            guest.end_background()
            if guest.name not in self.spoilt:
                self._stands(guest)
        self.guests.clear()
        self._rise()

    def _rise(self) -> None:
        for node in (self.a, self.b):
            if not node.is_up:
                node.down()
                self.up(node)

    def _stands(self, guest: Node) -> None:
        """Whatever happened to a home, commands work on it: ``init`` until it has a database."""
        if not (guest.home / "node.db").exists():
            self.do(guest, "init", "--name", guest.name)
        audit = self.do(guest, "audit", "verify")
        assert audit["ok"], audit

    def check(self) -> None:
        """What must hold at rest; guests aside."""
        a, b = self.a, self.b
        assert any(self._round() for _ in range(ROUNDS)), "the digests differ at rest"
        for node in (a, b):
            audit = self.do(node, "audit", "verify")
            assert audit["ok"], audit
            self._promises(node)
        self._places()

    def _round(self) -> bool:
        """Both pull from each other; whether they hold the same then."""
        for node in (self.a, self.b):
            self.do(node, "sync", "--once", "--peer", self._other(node).device, code=None)
        return len({self.do(n, "digest", AGENT)["digest"] for n in (self.a, self.b)}) == 1

    def _other(self, node: Node) -> Node:
        return self.b if node is self.a else self.a

    def _promises(self, node: Node) -> None:
        listed = self.do(node, "list", AGENT, "--limit", str(LISTED))["records"]
        held = {r["record"]: r for r in listed}
        for record, text in self.kept.items():
            assert record in held, f"{node.name} lost an acknowledged write: {record}"
            assert held[record]["text"] == text
        for record, text in self.gone.items():
            assert held[record]["state"] == "erased"
            assert not files_with(node.home, text), f"{node.name} holds bytes of {record}"
        for record, text in self.going.items():
            erased = held[record]["state"] == "erased"
            assert erased == (not files_with(node.home, text)), f"half a forget on {node.name}"
        self.counts["promises looked at"] += len(self.kept) + len(self.gone) + len(self.going)

    def _places(self) -> None:
        """No place of a log was signed twice, on either node."""
        seen: dict[tuple[bytes, bytes, int], bytes] = {}
        for node in (self.a, self.b):
            for path in (node.home / "agents").glob("*.db"):
                with _reading(path) as db:
                    rows = db.execute(
                        "SELECT device, incarnation, seq, hash FROM entry"
                        " JOIN log ON log.id = entry.log"
                    )
                    for device, incarnation, seq, entry in rows:
                        first = seen.setdefault((device, incarnation, seq), entry)
                        assert first == entry, f"{node.name}: a place signed twice at {seq}"

    def _errors(self, node: Node) -> str:
        return (self.root / f"{node.name}.errors").read_text()

    def close(self) -> None:
        """End every process."""
        for _, child in self.waiting:
            child.end(signal.SIGKILL)
        for node in (*self.guests, self.a, self.b):
            node.down(signal.SIGKILL)
            node.end_background()


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        yield db
