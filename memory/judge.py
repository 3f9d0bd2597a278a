"""The verdict on every entry of one log: forks, admission and cuts (R5, R7, R16, R18, R19).

1. A cut ends a log at the commit end at or before the entry that it names (R3). While that entry is
   not here, and nothing else is at its place, what is here is taken to lie before it.
2. An entry is inside iff some path that gave ``write`` has it inside all cuts. Past a fork that
   path must have a cut, or a settling, at an entry of a branch, else the entry is frozen (R7).
3. Its ``current`` marks count iff some path that gave ``review`` has it inside all cuts (R11).
4. A log with several openings is judged branch by branch, each by its own opening.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from crdt.entry import Header
from crdt.facts import Reason, Verdict
from crdt.log import Tip
from keys.authority import LogVerdict
from keys.ids import EntryHash
from keys.statements import Cut
from memory.logs import ZERO, LogRow, Logs

_UNBOUNDED = 2**63 - 1
Path = tuple[Cut, ...]


class Judge(Protocol):
    """What the fold asks about the entries of one log."""

    def judge(self, header: Header) -> Verdict:
        """The verdict on one entry of this log."""

    def inside(self, seq: int, entry: EntryHash) -> bool:
        """Whether an entry is inside all cuts of some path that gave ``write`` (R18)."""

    def inside_ahead(self, seq: int) -> bool:
        """The same of an entry whose chain is not here (R30)."""

    def signature(self) -> bytes:
        """A form that differs whenever a verdict on some entry held may differ."""


class LogJudge:
    """Judges the entries of one log; made anew when statements or the log's branches change."""

    def __init__(self, logs: Logs, row: LogRow, verdict: LogVerdict) -> None:
        self._logs, self._row, self._verdict = logs, row, verdict
        self._branch = logs.branch_entries(row) if row.fork_seq is not None else {}
        self._trunk = row.fork_seq if row.fork_seq is not None else _UNBOUNDED
        self._paths: list[Path] = [path + verdict.settles for path in verdict.paths]
        self._reviews: list[Path] = [path + verdict.settles for path in verdict.reviews]
        ends = {cut for path in (*self._paths, *self._reviews, verdict.settles) for cut in path}
        self._held: set[Cut] = set()  # cuts whose entry is here
        self._ends = {cut: self._end(cut) for cut in ends}
        self._ancestors = {
            cut: self._path(end.hash) for cut, end in self._ends.items() if end.seq > self._trunk
        }
        # Most logs are whole and end at no cut: one verdict on all their entries.
        same = row.fork_seq is None and () in self._paths and set(self._reviews) <= {()}
        self._same = Verdict(None, bool(self._reviews)) if same else None

    def judge(self, header: Header) -> Verdict:
        """The verdict on one entry of this log."""
        if self._same is not None:
            return self._same
        inside = [path for path in self._paths if self._has(path, header.seq, header.hash)]
        beyond = header.seq > self._trunk
        if any(not beyond or self._settles(path) for path in inside):
            reviews = any(self._has(path, header.seq, header.hash) for path in self._reviews)
            return Verdict(None, reviews)
        if beyond and not all(map(self._settles, self._paths or [self._verdict.settles])):
            return Verdict(Reason.FROZEN, False, withholds=bool(inside))
        admitted = self._verdict.admitted
        return Verdict(Reason.PAST_CUT if admitted else Reason.NOT_ACCEPTED, False)

    def inside(self, seq: int, entry: EntryHash) -> bool:
        """Whether an entry is inside all cuts of some path that gave ``write`` (R18)."""
        return any(self._has(path, seq, entry) for path in self._paths)

    def inside_ahead(self, seq: int) -> bool:
        """The same of an entry whose chain is not here (R30).

        It is before no entry that is held: then it would be held itself.
        """
        return any(
            all(cut not in self._held and seq <= self._ends[cut].seq for cut in path)
            for path in self._paths
        )

    def signature(self) -> bytes:
        """A form that differs whenever a verdict on some entry held may differ."""
        ends = sorted((c.seq, c.hash.hex(), e.seq, e.hash.hex()) for c, e in self._ends.items())
        paths = [
            sorted(sorted((c.seq, c.hash.hex()) for c in path) for path in some)
            for some in (self._paths, self._reviews)
        ]
        branch = sorted(h.hex() for found in self._ancestors.values() for h in found)
        return repr((paths, ends, self._trunk, branch)).encode()

    def _has(self, path: Path, seq: int, entry: EntryHash) -> bool:
        if seq <= self._trunk:
            return all(seq <= self._ends[cut].seq for cut in path)
        return all(entry in self._ancestors.get(cut, ()) for cut in path)

    def _settles(self, path: Path) -> bool:
        return any(cut in self._ancestors for cut in path)

    def _end(self, cut: Cut) -> Tip:
        """Where a cut lies among what is held (R3)."""
        if cut.seq == 0:
            return ZERO
        held = self._logs.hash_at(self._row.id, cut.seq)
        if cut.hash in held:
            self._held.add(cut)
            return self._logs.commit_end(self._row.id, Tip(cut.seq, cut.hash))
        if held or (self._row.fork_seq is not None and cut.seq > self._trunk):
            # The cut names a branch that is not here: what it shares with ours is not known yet.
            return ZERO
        return Tip(cut.seq, cut.hash)

    def _path(self, entry: EntryHash) -> set[EntryHash]:
        found: set[EntryHash] = set()
        while entry in self._branch:
            found.add(entry)
            entry = self._branch[entry][1]
        return found


class OpeningsJudge:
    """Judges a log that forks at its very beginning: each branch by its own opening."""

    def __init__(
        self,
        judges: Mapping[EntryHash, LogJudge],
        branch: Mapping[EntryHash, tuple[int, EntryHash]],
    ) -> None:
        self._judges, self._branch = judges, branch

    def judge(self, header: Header) -> Verdict:
        """The verdict on one entry of this log."""
        return self._of(header.hash).judge(header)

    def inside(self, seq: int, entry: EntryHash) -> bool:
        """Whether an entry is inside by its own opening."""
        return self._of(entry).inside(seq, entry)

    def inside_ahead(self, seq: int) -> bool:
        """Whether an entry whose chain is not here is inside by some opening."""
        return any(judge.inside_ahead(seq) for judge in self._judges.values())

    def signature(self) -> bytes:
        """A form that differs whenever a verdict on some entry held may differ."""
        return b"".join(o + judge.signature() for o, judge in sorted(self._judges.items()))

    def _of(self, entry: EntryHash) -> LogJudge:
        while entry not in self._judges:
            entry = self._branch[entry][1]
        return self._judges[entry]
