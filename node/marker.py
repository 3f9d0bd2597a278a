"""The incarnation marker: tells whether the databases are the ones this device last wrote (R38).

It lies outside the databases, so that restoring one of them, or copying the home, shows:

1. It names its place: the machine, the home's directory and *its own file*. Restored or copied
   bytes lie in another file than the one they name.
2. It counts this device's own entries per agent: ``advance`` runs after the commit and before
   anybody is served from it. A database ahead of the marker is normal, one behind was restored.
3. ``opening`` runs before the first commit of an incarnation. So a log of our own without a word in
   the marker is a doubt too.
4. A doubt lasts until a new incarnation is in the database. Starting does not open one, the first
   write does; a thousand starts in between change nothing, and tell of the doubt once.
5. Replaced whole, never synced: after a power cut it is the old one or damaged, which costs a new
   incarnation and loses nothing.

Whoever restores a whole disk, marker and all, is noticed by peers that remember more.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from keys.errors import RoostError, StoreError
from keys.ids import AgentId, Incarnation, hash256
from memory.faults import os_error
from node.home import Home
from node.identity import FileIdentity, identity_of, machine_id
from node.jsontext import parse_json

VERSION: Final = 1
MARKER_BYTES_MAX: Final = 4 * 1024 * 1024


class DoubtKind(StrEnum):
    """Why this device's own log cannot simply be continued."""

    MISSING = "missing"  # the marker is gone, or silent about a log of ours
    MOVED = "moved"  # the home, or the marker in it, is a copy
    BEHIND = "behind"  # the marker has counted more than the database holds
    PEER = "peer"  # a peer holds more of our log than we do
    DAMAGED = "damaged"  # the agent's file was damaged and made anew of what could be read
    CLONED = "cloned"  # another copy of this device was up; a person said that this one goes on


@dataclass(frozen=True, slots=True)
class Doubt:
    """Continuity of our log of one agent is not proven.

    ``incarnation`` and ``seq`` are as far as the log is known to have reached, where known.
    ``told`` is whether it was noticed at an earlier start.
    """

    kind: DoubtKind
    incarnation: Incarnation | None
    seq: int
    told: bool
    successor: Incarnation | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    incarnation: Incarnation
    seq: int


@dataclass(frozen=True, slots=True)
class _Place:
    machine: str
    home: FileIdentity

    def same_as(self, other: _Place) -> bool:
        known = self.machine and other.machine
        return self.home.same_as(other.home) and (not known or self.machine == other.machine)


class Marker:
    """The marker of one home. Every method may be called from any thread."""

    def __init__(self, home: Home) -> None:
        self._path = home.marker_path
        self._home = home.path
        self._mutex = threading.Lock()
        self._elsewhere: DoubtKind | None = DoubtKind.MISSING
        self._entries: dict[AgentId, _Entry] = {}
        self._doubts: dict[AgentId, Doubt] = {}

    @classmethod
    def create(cls, home: Home) -> Self:
        """The marker of a new home; raises ``StoreError`` when it cannot be written."""
        marker = cls(home)
        marker.settle()
        return marker

    @classmethod
    def load(cls, home: Home) -> Self:
        """The marker as it lies there; one that is damaged or absent counts as missing."""
        marker = cls(home)
        with contextlib.suppress(OSError, ValueError, TypeError, LookupError, RoostError):
            marker._read()
        return marker

    @property
    def place_doubt(self) -> DoubtKind | None:
        """What is wrong with the whole home, before any agent is asked for."""
        return self._elsewhere

    def check(self, agent: AgentId, own: Mapping[Incarnation, int]) -> Doubt | None:
        """Whether our log of ``agent`` may be continued: None if so.

        ``own`` is the last sequence number held of each log of this device.
        """
        with self._mutex:
            doubt = self._judge(agent, own)
            if doubt is None:
                self._doubts.pop(agent, None)
            elif not doubt.told:
                self._doubts[agent] = replace(doubt, told=True)
                with contextlib.suppress(StoreError):  # it will be told of again
                    self._write()
            return doubt

    def note(self, agent: AgentId, incarnation: Incarnation, seq: int) -> bool:
        """A peer holds our log up to ``seq``, beyond ours; True if that is news.

        Raises ``StoreError`` when it cannot be written down.
        """
        with self._mutex:
            known = self._doubts.get(agent)
            if known is not None and (known.incarnation != incarnation or known.seq >= seq):
                return False
            kind = DoubtKind.PEER if known is None else known.kind
            self._doubts[agent] = Doubt(kind, incarnation, seq, told=True)
            self._write()
            return known is None

    def knows(self, agent: AgentId) -> bool:
        """Whether this device has written to an agent."""
        return agent in self._entries

    def renew(self, agent: AgentId, kind: DoubtKind) -> None:
        """Our log of ``agent``, if there is one, is not to be continued.

        Raises ``StoreError`` when it cannot be written down.
        """
        with self._mutex:
            entry = self._entries.get(agent)
            if entry is not None:
                self._doubts[agent] = Doubt(kind, entry.incarnation, entry.seq, told=True)
                self._write()

    def doubt(self, agent: AgentId) -> Doubt | None:
        """The doubt about ``agent`` that was found and is not over."""
        return self._doubts.get(agent)

    def settle(self) -> None:
        """Take this place for the marker's own; doubts found stay until a write ends them.

        Agents that nobody checked stay doubtful. Raises ``StoreError``.
        """
        with self._mutex:
            if self._elsewhere is not None:
                for agent, entry in self._entries.items():
                    self._doubts.setdefault(
                        agent, Doubt(self._elsewhere, entry.incarnation, entry.seq, told=False)
                    )
            self._elsewhere = None
            self._write()

    def opening(self, agent: AgentId, incarnation: Incarnation) -> None:
        """Before the first commit of a new incarnation. Raises ``StoreError``."""
        if self._elsewhere is not None:
            self.settle()  # it could not be written at the start
        with self._mutex:
            doubt = self._doubts.get(agent)
            if doubt is not None:
                self._doubts[agent] = replace(doubt, successor=incarnation)
            self._entries[agent] = _Entry(incarnation, 0)
            self._write()

    def advance(self, agent: AgentId, incarnation: Incarnation, seq: int) -> None:
        """After a commit that ended at ``seq``, before anybody is served from it.

        Raises ``StoreError``; the database is then ahead, which is normal.
        """
        assert self._elsewhere is None, "the marker is settled before anything is written"
        with self._mutex:
            doubt = self._doubts.get(agent)
            if doubt is not None and doubt.successor == incarnation:
                del self._doubts[agent]
            before = self._entries.get(agent)
            if before is not None and before.incarnation == incarnation and before.seq >= seq:
                return
            self._entries[agent] = _Entry(incarnation, seq)
            self._write()

    def drop(self, agent: AgentId) -> None:
        """Forget an agent that this node left. Raises ``StoreError``."""
        with self._mutex:
            had = self._entries.pop(agent, None), self._doubts.pop(agent, None)
            if any(had):
                self._write()

    def _judge(self, agent: AgentId, own: Mapping[Incarnation, int]) -> Doubt | None:
        recorded, entry = self._doubts.get(agent), self._entries.get(agent)
        if recorded is not None:
            over = recorded.successor is not None and own.get(recorded.successor, 0) > 0
            if not over:
                return recorded
        if entry is None:
            return Doubt(DoubtKind.MISSING, None, 0, told=False) if any(own.values()) else None
        if self._elsewhere is not None:
            return Doubt(self._elsewhere, entry.incarnation, entry.seq, told=False)
        if own.get(entry.incarnation, 0) < entry.seq:
            return Doubt(DoubtKind.BEHIND, entry.incarnation, entry.seq, told=False)
        return None

    def _here(self) -> _Place:
        machine = machine_id()
        # Hashed: the system's id is not to be shown around.
        named = hash256(b"roost machine", machine.encode()).hex() if machine else ""
        return _Place(named, identity_of(self._home))

    def _read(self) -> None:
        with open(self._path, "rb") as file:
            said = parse_json(file.read(MARKER_BYTES_MAX))
        if said["version"] != VERSION:
            return
        entries = {_agent(k): _Entry(_incarnation(v[0]), int(v[1])) for k, v in said["agents"]}
        doubts = {_agent(k): _doubt(v) for k, v in said["doubts"]}
        place = _Place(str(said["machine"]), FileIdentity(**said["home"]))
        mine = FileIdentity(**said["file"])
        same = place.same_as(self._here()) and mine.same_as(identity_of(self._path))
        self._entries, self._doubts = entries, doubts
        self._elsewhere = None if same else DoubtKind.MOVED

    def _write(self) -> None:
        if self._elsewhere is not None:
            return  # until it is settled, what lies there is the evidence
        try:
            self._replace()
        except OSError as exc:
            raise os_error(exc, self._path) from exc

    def _replace(self) -> None:
        temporary = self._path.with_name(self._path.name + ".new")
        temporary.unlink(missing_ok=True)  # of a process that was killed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(self._encode(temporary))
        temporary.replace(self._path)

    def _encode(self, lying_at: Path) -> bytes:
        here = self._here()
        said = {
            "version": VERSION,
            "machine": here.machine,
            "home": asdict(here.home),
            "file": asdict(identity_of(lying_at)),
            "agents": [(k.hex(), (v.incarnation.hex(), v.seq)) for k, v in self._entries.items()],
            "doubts": [(k.hex(), _doubt_row(v)) for k, v in self._doubts.items()],
        }
        return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def _agent(text: str) -> AgentId:
    return AgentId(bytes.fromhex(text))


def _incarnation(text: str) -> Incarnation:
    return Incarnation(bytes.fromhex(text))


def _doubt_row(doubt: Doubt) -> list[object]:
    known, successor = doubt.incarnation, doubt.successor
    return [
        doubt.kind.value,
        known.hex() if known is not None else "",
        doubt.seq,
        doubt.told,
        successor.hex() if successor is not None else "",
    ]


def _doubt(row: list[Any]) -> Doubt:
    kind, known, seq, told, successor = row
    return Doubt(
        DoubtKind(kind),
        _incarnation(known) if known else None,
        int(seq),
        bool(told),
        _incarnation(successor) if successor else None,
    )
