"""Pulling: a stream from a peer becomes verified runs, page by page. See PROTOCOL.md.

1. Nothing leaves this machine unverified: runs and tombstones come out of ``crdt.chain`` only.
2. A run that does not verify, does not follow what is here or is of a log that may not be written
   is reported; its log is passed over for the rest of the stream, and other logs flow.
3. Every run that came whole is handed out, wherever the stream is cut: at most one travels again.
4. Nothing is kept beyond one frame and one page (``PAGE_BYTES``); what has a gap before it is not
   kept at all.
5. A stream is whole only with its ``end``, and two nodes are in sync only if their vectors are
   equal.

Phases: ``totals`` -> ``ahead`` -> ``runs`` -> ``end`` -> ``over``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from crdt.chain import VerifiedRun, verify_run, verify_single
from crdt.entry import VERSION, Header, LogId, PayloadKind, decode_header
from crdt.log import AheadTombstone, Vector
from crdt.payload import decode_open
from keys import codec
from keys.authority import Authority
from keys.errors import BadEncoding, BadInput
from keys.ids import AgentId
from keys.limits import (
    HEADER_BYTES_MAX,
    LOGS_PER_AGENT_MAX,
    PAGE_BYTES,
    PAGE_ENTRIES,
    PULL_ENTRIES_MAX,
    RUN_ENTRIES_MAX,
    UNKNOWN_FRAMES_MAX,
)
from sync.errors import BadStream
from sync.frames import (
    Ahead,
    End,
    Failure,
    Frame,
    FrameReader,
    Run,
    ServerVector,
    Totals,
    Unknown,
    parse,
)
from sync.messages import PullRequest
from sync.reasons import Missing

AHEAD_PAGE = 256
CUT = "cut"

Admits = Callable[[LogId, tuple[bytes, ...]], "Missing | None"]
"""Given a new log and the heads its opening cites: why it may not be here, None if it may."""


def admission(authority: Authority) -> Admits:
    """The ``Admits`` that follows from an agent's statements (R16, X-60)."""

    def why_not(log: LogId, heads: tuple[bytes, ...]) -> Missing | None:
        if authority.past_of(heads) is None:
            return Missing.WAITING
        admitted = authority.log_verdict(log.device, log.incarnation, heads).admitted
        return None if admitted else Missing.NOT_GRANTED

    return why_not


def anybody(_log: LogId, _heads: tuple[bytes, ...]) -> Missing | None:
    """The ``Admits`` that lets every log in."""
    return None


@dataclass(frozen=True, slots=True)
class Expect:
    """What the server said is to come."""

    entries: int
    tombstones: int


@dataclass(frozen=True, slots=True)
class Withhold:
    """Tombstones ahead of their chains, for ``LogStore.add_ahead``."""

    tombstones: tuple[AheadTombstone, ...]


@dataclass(frozen=True, slots=True)
class Append:
    """Verified runs for ``LogStore.append_runs``, in the order to append them."""

    runs: tuple[VerifiedRun, ...]
    entries: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """A run or tombstone that was not taken. ``code`` is the error's; no words of anybody.

    ``log`` and ``seq`` are None where not even the header could be read.
    """

    reason: Missing
    log: LogId | None
    seq: int | None
    code: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The stream came to its end; ``vector`` is what the server holds."""

    vector: Vector
    more: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream ended before its end: ``cut``, a code of the server's, or that of our error."""

    code: str


Effect: TypeAlias = Expect | Withhold | Append | Refuse | Whole | Broken


class Phase(StrEnum):
    """What a stream has come to: named after the frames that may come next."""

    TOTALS = "totals"
    AHEAD = "ahead"
    RUNS = "runs"
    END = "end"
    OVER = "over"


@dataclass(slots=True)
class Tally:
    """Counts of one stream: entries that came, and stubs of both kinds among those taken."""

    expected: int = 0
    tombstones: int = 0
    received: int = 0
    passed_over: int = 0
    erased: int = 0
    nowhere: int = 0
    unknown_frames: int = 0


@dataclass(slots=True)
class _Page:
    runs: list[VerifiedRun] = field(default_factory=list)
    entries: int = 0
    size: int = 0


class PullClient:
    """Takes one answer to one ``PullRequest`` apart.

    ``feed`` and ``closed`` give effects in the order to carry them out. They verify signatures and
    hashes: call them off the event loop.
    """

    def __init__(
        self,
        agent: AgentId,
        have: Vector,
        *,
        admits: Admits = anybody,
        skip: Mapping[LogId, Missing] = MappingProxyType({}),
        limit: int = PULL_ENTRIES_MAX,
    ) -> None:
        self.agent = agent
        self.request = PullRequest(have, limit, frozenset(skip))
        self.phase = Phase.TOTALS
        self.tally = Tally()
        self.refused = dict(skip)
        self.server: Vector | None = None
        self.more = False
        self.error: str | None = None
        self._admits = admits
        self._heights = {log: max(tips).seq for log, tips in have.items() if tips}
        self._reader = FrameReader()
        self._page = _Page()
        self._ahead: list[AheadTombstone] = []

    @property
    def over(self) -> bool:
        """Whether the stream has ended, whole or broken."""
        return self.phase is Phase.OVER

    def feed(self, chunk: bytes) -> list[Effect]:
        """Take bytes of the stream; what follows its end is not read. Raises nothing."""
        effects: list[Effect] = []
        if not self.over:
            self._reader.feed(chunk)
        try:
            while not self.over and (body := self._reader.next_body()) is not None:
                effects += self._take(parse(body))
        except BadInput as exc:
            effects += self._break(exc.code)
        return effects

    def closed(self) -> list[Effect]:
        """The peer sends no more: what came whole, and ``Broken`` unless all came."""
        return [] if self.over else self._break(CUT)

    def flush(self) -> list[Effect]:
        """What came whole and was not handed out yet; for a stream that has fallen silent."""
        effects: list[Effect] = []
        if self._ahead:
            effects.append(Withhold(tuple(self._ahead)))
            self._ahead = []
        if self._page.runs:
            effects.append(Append(tuple(self._page.runs), self._page.entries))
            self._page = _Page()
        return effects

    def refuse(self, log: LogId, reason: Missing) -> None:
        """The store did not take a run of ``log``: pass over what follows in it."""
        self.refused.setdefault(log, reason)

    # -- frames ----------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> list[Effect]:
        """PROTOCOL 5: which frame may come in which phase."""
        match frame, self.phase:
            case Unknown(), _:
                return self._pass_over()
            case Failure(code), _:
                return self._break(code)
            case Totals(), Phase.TOTALS:
                return self._begin(frame)
            case Ahead(), Phase.AHEAD:
                return self._take_ahead(frame)
            case Run(), Phase.AHEAD | Phase.RUNS:
                flushed = self.flush() if self.phase is Phase.AHEAD else []
                self.phase = Phase.RUNS
                return flushed + self._take_run(frame)
            case ServerVector(vector), Phase.AHEAD | Phase.RUNS:
                self.phase, self.server = Phase.END, vector
                return self.flush()
            case End(more), Phase.END:
                return self._finish(more)
            case _:
                raise BadStream(f"{type(frame).__name__} is not what follows in {self.phase}")

    def _begin(self, totals: Totals) -> list[Effect]:
        self.phase = Phase.AHEAD
        self.tally.expected, self.tally.tombstones = totals.entries, totals.tombstones
        return [Expect(totals.entries, totals.tombstones)]

    def _pass_over(self) -> list[Effect]:
        self.tally.unknown_frames += 1
        if self.tally.unknown_frames > UNKNOWN_FRAMES_MAX:
            raise BadStream(f"more than {UNKNOWN_FRAMES_MAX} frames of unknown kinds")
        return []

    def _finish(self, more: bool) -> list[Effect]:
        assert self.server is not None, "the phase END follows the server's vector"
        self.phase, self.more = Phase.OVER, more
        return [Whole(self.server, more)]

    def _break(self, code: str) -> list[Effect]:
        self.phase, self.error = Phase.OVER, code
        return [*self.flush(), Broken(code)]

    # -- tombstones ------------------------------------------------------------------------------

    def _take_ahead(self, frame: Ahead) -> list[Effect]:
        self.tally.tombstones -= 1
        if self.tally.tombstones < 0:
            raise BadStream("more tombstones than were announced")
        try:
            found = self._verify_ahead(frame)
        except BadInput as exc:
            return [Refuse(_reason_of(frame.tombstone.header), None, None, exc.code)]
        log = found.tombstone.header.log
        reason = self._why_not(log, found.opening.payload)
        if reason is not None:
            return [Refuse(reason, log, found.tombstone.header.seq, reason.value)]
        self._ahead.append(found)
        return self.flush() if len(self._ahead) >= AHEAD_PAGE else []

    def _verify_ahead(self, frame: Ahead) -> AheadTombstone:
        tombstone = verify_single(self.agent, frame.tombstone)
        opening = verify_single(self.agent, frame.opening)
        if (
            tombstone.header.payload_kind != PayloadKind.TOMBSTONE
            or opening.header.payload_kind != PayloadKind.OPEN
            or tombstone.header.log != opening.header.log
        ):
            raise BadStream("a tombstone ahead of its chain comes with its log's opening")
        return AheadTombstone(tombstone, opening)

    # -- runs ------------------------------------------------------------------------------------

    def _take_run(self, frame: Run) -> list[Effect]:
        self.tally.received += len(frame.entries)
        most = min(self.tally.expected, self.request.limit + RUN_ENTRIES_MAX)
        if self.tally.received > most:
            raise BadStream("more entries than were announced or asked for")
        first = frame.entries[0].raw.header
        try:
            header = decode_header(first)
        except BadEncoding as exc:
            return [Refuse(_reason_of(first), None, None, exc.code)]
        if header.log in self.refused:
            self.tally.passed_over += len(frame.entries)
            return []
        reason = self._misplaced(header)
        if reason is not None:
            return self._refuse(header, reason, reason.value)
        try:
            run = verify_run(self.agent, [entry.raw for entry in frame.entries])
        except BadInput as exc:
            newer = any(_is_newer(entry.raw.header) for entry in frame.entries)
            reason = Missing.NEEDS_UPGRADE if newer else Missing.QUARANTINED
            return self._refuse(header, reason, exc.code)
        new = run.log not in self._heights
        reason = self._why_not(run.log, run.entries[0].payload) if new else None
        if reason is not None:
            return self._refuse(header, reason, reason.value)
        return self._accept(run, frame)

    def _misplaced(self, header: Header) -> Missing | None:
        """X-36: a run past a gap is not kept; the next pull asks for what is before it."""
        if header.log not in self._heights and len(self._heights) >= LOGS_PER_AGENT_MAX:
            return Missing.TOO_LARGE
        return Missing.WAITING if header.seq - 1 > self._heights.get(header.log, 0) else None

    def _why_not(self, log: LogId, opening: bytes | None) -> Missing | None:
        """X-60: entries of a device without the right to write are not even stored."""
        assert opening is not None, "an opening never travels without its payload"
        return self._admits(log, decode_open(opening).heads)

    def _refuse(self, header: Header, reason: Missing, code: str) -> list[Effect]:
        self.refused[header.log] = reason
        return [Refuse(reason, header.log, header.seq, code)]

    def _accept(self, run: VerifiedRun, frame: Run) -> list[Effect]:
        last = run.entries[-1].header.seq
        self._heights[run.log] = max(last, self._heights.get(run.log, 0))
        page = self._page
        page.runs.append(run)
        page.entries += len(run.entries)
        for entry, served in zip(run.entries, frame.entries, strict=True):
            page.size += len(entry.header.data) + len(entry.payload or b"")
            if entry.payload is None:
                self.tally.erased += bool(served.tombstone)
                self.tally.nowhere += not served.tombstone
        full = page.size >= PAGE_BYTES or page.entries >= PAGE_ENTRIES
        return self.flush() if full else []


def _reason_of(header: bytes) -> Missing:
    return Missing.NEEDS_UPGRADE if _is_newer(header) else Missing.QUARANTINED


def _is_newer(header: bytes) -> bool:
    """Whether bytes have the form of a header of a later version."""
    try:
        value = codec.decode(header, HEADER_BYTES_MAX)
    except BadEncoding:
        return False
    version = value[0] if type(value) is list and value else None
    return type(version) is int and version > VERSION
