"""Logs written out from RULES.md: where an entry stands, and when it was made.

What RULES.md leaves open is decided as follows.

1. A log that is not admitted has a reason of its own.
2. A cut whose entry is not here, at a place where nothing else is, is believed up to its seq.
3. A cut or a settling settles a fork for its way when it names an entry of a branch.
4. Deps are operations on the same record; what else an entry cites does not raise its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from crdt.entry import Header, LogId, PayloadKind
from crdt.payload import decode_open
from keys.statements import Cut, Statement
from tests.reference.rights import Rights

APART = (PayloadKind.OPEN, PayloadKind.TOMBSTONE)


@dataclass(frozen=True)
class Held:
    """An entry as a node holds it; ``opening`` is set while its chain is not here (R30)."""

    header: Header
    payload: bytes | None
    opening: bytes | None = None

    @property
    def hash(self) -> bytes:
        """The entry's hash."""
        return bytes(self.header.hash)

    @property
    def apart(self) -> bool:
        """Whether it is an opening or a tombstone: no operations on a record."""
        return self.header.payload_kind in APART


@dataclass(frozen=True)
class Place:
    """Where an entry stands: the reason against it, and what counts of it nonetheless."""

    reason: str | None
    inside: bool  # a tombstone here is effective; when frozen, what withholds stays (R7)
    reviews: bool  # ``current`` counts (R11)


class Places:
    """The logs held under one set of statements."""

    def __init__(
        self, agent: bytes, entries: Iterable[Held], statements: Iterable[Statement]
    ) -> None:
        self.agent = agent
        self.rights = Rights(agent, statements)
        everything = list(entries)
        self.all = {e.hash: e for e in everything if e.opening is None}
        self.ahead = [e for e in everything if e.opening is not None and e.hash not in self.all]
        self._places: dict[bytes, Place] = {}
        self._forks: dict[LogId, int | None] = {}

    @cached_property
    def logs(self) -> dict[LogId, list[Held]]:
        """The entries of every log."""
        out: dict[LogId, list[Held]] = {}
        for e in self.all.values():
            out.setdefault(e.header.log, []).append(e)
        return out

    def chain(self, entry: bytes) -> list[bytes]:
        """An entry and everything before it in its log, newest first."""
        out = []
        while entry in self.all:
            out.append(entry)
            entry = bytes(self.all[entry].header.prev)
        return out

    def named(self, log: LogId, cut: Cut) -> bytes | None:
        """The entry that a cut names, rounded down to the end of a commit (R3)."""
        e = self.all.get(bytes(cut.hash))
        if e is None or e.header.log != log or e.header.seq != cut.seq:
            return None
        ends = [h for h in self.chain(e.hash) if self.all[h].header.commit_left == 0]
        return ends[0] if ends else None

    def within(self, e: Held, cut: Cut) -> bool:
        """Whether an entry is the one that a cut names, or before it (R18)."""
        log = e.header.log
        held = self.logs.get(log, [])
        if any(x.hash == bytes(cut.hash) and x.header.seq == cut.seq for x in held):
            return e.hash in self.chain(self.named(log, cut) or b"")
        fork = self.fork_point(log)
        known = any(x.header.seq == cut.seq for x in held)
        unknown = not known and (fork is None or cut.seq <= fork)
        return unknown and e.header.seq <= cut.seq

    def fork_point(self, log: LogId) -> int | None:
        """The last commit end before the first place with two entries, None without a fork (R7)."""
        if log not in self._forks:
            self._forks[log] = self._fork_point(log)
        return self._forks[log]

    def _fork_point(self, log: LogId) -> int | None:
        places: dict[int, list[Header]] = {}
        for e in self.logs.get(log, []):
            places.setdefault(e.header.seq, []).append(e.header)
        forked = [seq for seq, there in places.items() if len(there) > 1]
        if not forked:
            return None
        common = [places[seq][0] for seq in range(1, min(forked))]
        return max((h.seq for h in common if h.commit_left == 0), default=0)

    def openings_of(self, e: Held) -> list[bytes]:
        """The opening of an entry's own branch; all of its log while its chain is not here."""
        if e.opening is None:
            first = [self.all[self.chain(e.hash)[-1]]]
        else:
            first = [x for x in self.logs.get(e.header.log, ()) if x.header.seq == 1]
        return [x.payload for x in first if x.payload is not None] or [e.opening or b""]

    def place(self, e: Held) -> Place:
        """R5, R7, R16, R18, R19: where an entry stands."""
        if e.hash not in self._places:
            places = [self._place(e, opening) for opening in self.openings_of(e)]
            self._places[e.hash] = next((p for p in places if p.inside), places[0])
        return self._places[e.hash]

    def seen(self, opening: bytes) -> frozenset[bytes] | None:
        """The statements that an opening had seen, None when not all of them are here."""
        heads = decode_open(opening).heads
        return self.rights.past(heads) if self.rights.all.keys() >= set(heads) else None

    def _place(self, e: Held, opening: bytes) -> Place:
        log, seen = e.header.log, self.seen(opening)
        settles = self.rights.settles(log.device, log.incarnation)
        fork = self.fork_point(log)
        beyond = fork is not None and e.header.seq > fork

        def settled(cuts: list[Cut]) -> bool:
            named = [self.named(log, cut) for cut in cuts]
            return not beyond or any(h and self.all[h].header.seq > (fork or 0) for h in named)

        def ways(right: str) -> list[list[Cut]]:
            if seen is None:
                return []
            return [
                [*self.rights.cuts(way, log.device, log.incarnation, right, seen), *settles]
                for way in self.rights.ways(log.device, right, seen)
            ]

        writing = ways("write")
        inside = [cuts for cuts in writing if all(self.within(e, cut) for cut in cuts)]
        if any(settled(cuts) for cuts in inside):
            reviews = any(all(self.within(e, cut) for cut in cuts) for cuts in ways("review"))
            return Place(None, inside=True, reviews=reviews)
        if not all(settled(cuts) for cuts in writing or [settles]):
            return Place("frozen", inside=bool(inside), reviews=False)
        return Place("past_cut" if writing else "not_accepted", inside=False, reviews=False)

    @cached_property
    def times(self) -> dict[bytes, int]:
        """R14: the record time of every entry; deps are entries of the same record."""
        out: dict[bytes, int] = {}
        todo = dict(self.all)
        while todo:
            for h, e in list(todo.items()):
                deps = [bytes(d) for d in e.header.deps if bytes(d) in self.all]
                deps = [d for d in deps if self.all[d].header.record == e.header.record]
                deps = [d for d in deps if not self.all[d].apart]
                before = [*deps, *self.chain(bytes(e.header.prev))[:1]]
                if any(b in todo for b in before):
                    continue
                is_open = e.header.payload_kind == PayloadKind.OPEN and e.payload
                heads = decode_open(e.payload).heads if is_open and e.payload else ()
                said = [self.rights.times.get(s, 0) for s in heads]
                out[h] = max([e.header.wall_ms, *said, *(out[b] for b in before)])
                del todo[h]
        return out
