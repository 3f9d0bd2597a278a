"""The verdict on every entry of one log: forks, admission and cuts (R5, R7, R16, R18, R19)."""

from __future__ import annotations

from crdt.entry import Header
from crdt.fold import Reason, Verdict
from keys.authority import LogVerdict
from keys.ids import EntryHash
from keys.statements import Cut
from memory.logs import LogRow, Logs

_UNBOUNDED = 2**63 - 1


class LogJudge:
    """Judges the entries of one log; made anew when statements or the log's branches change."""

    def __init__(self, logs: Logs, row: LogRow, verdict: LogVerdict) -> None:
        self._logs, self._row, self._verdict = logs, row, verdict
        self._branch = logs.branch_entries(row) if row.fork_seq is not None else {}
        self._trunk = row.fork_seq if row.fork_seq is not None else _UNBOUNDED
        ends = {cut for path in verdict.paths for cut in path} | set(verdict.settles)
        self._ancestors = {cut: self._path(cut.hash) for cut in ends if cut.hash in self._branch}
        self._settled = bool(self._ancestors)
        self._trunk_end = {cut: self._limit(cut) for cut in ends}
        self._paths = [tuple(path) + verdict.settles for path in verdict.paths]

    def judge(self, header: Header) -> Verdict:
        """The verdict on one entry of this log."""
        inside = self.inside(header.seq, header.hash)
        if header.seq > self._trunk and not self._settled:
            return Verdict(Reason.FROZEN, False, withholds=inside)
        if not self._verdict.admitted:
            return Verdict(Reason.NOT_ACCEPTED, False)
        return Verdict(None if inside else Reason.PAST_CUT, self._verdict.reviews)

    def inside(self, seq: int, entry: EntryHash) -> bool:
        """Whether an entry is inside all cuts of some path that gave ``write`` (R18)."""
        return any(all(self._allows(cut, seq, entry) for cut in path) for path in self._paths)

    @property
    def admitted(self) -> bool:
        """Whether the log counts at all."""
        return self._verdict.admitted

    @property
    def reviews(self) -> bool:
        """Whether ``current`` marks of this log count."""
        return self._verdict.reviews

    def signature(self) -> bytes:
        """A form that differs whenever a verdict on some entry held may differ."""
        ends = sorted((c.seq, c.hash.hex(), end) for c, end in self._trunk_end.items())
        paths = sorted(sorted((c.seq, c.hash.hex()) for c in path) for path in self._paths)
        branch = sorted(h.hex() for found in self._ancestors.values() for h in found)
        return repr(
            (paths, ends, self._verdict.reviews, self._trunk, self._settled, branch)
        ).encode()

    def _allows(self, cut: Cut, seq: int, entry: EntryHash) -> bool:
        if seq <= self._trunk:
            return seq <= self._trunk_end[cut]
        return entry in self._ancestors.get(cut, ())

    def _limit(self, cut: Cut) -> int:
        """How far the entries before any fork are ancestors of the cut's entry."""
        if cut.seq == 0:
            return 0
        if cut in self._ancestors:
            return self._trunk
        held = self._logs.hash_at(self._row.id, cut.seq)
        if cut.hash in held:
            return cut.seq
        if held or (self._row.fork_seq is not None and cut.seq > self._trunk):
            # The cut names a branch that is not here: what it shares with ours is not known yet.
            return 0
        return cut.seq

    def _path(self, entry: EntryHash) -> set[EntryHash]:
        found: set[EntryHash] = set()
        while entry in self._branch:
            found.add(entry)
            entry = self._branch[entry][1]
        return found
