"""Announcements: a write shows up on peers without anybody polling (R8).

1. What is announced is what changed, whoever wrote it: news learned by a pull is passed on (S-E6).
2. Who has what is announced does nothing; an old announcement never moves anything back (X-40).
3. One slow watcher costs a bounded number of frames: of one log only the newest waits, and a
   watcher that is too far behind is cut off and starts again with a hello.
4. Whether a watcher may read an agent is asked when the frame is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from crdt.log import Vector
from keys.ids import AgentId
from keys.limits import UNKNOWN_FRAMES_MAX, WATCH_FRAME_BYTES_MAX, WATCH_OUTBOX_MAX
from sync.errors import BadStream
from sync.frames import Announce, Beat, FrameReader, StatementsChanged, Unknown, pack, parse
from sync.plan import holds, lacking

News: TypeAlias = Announce | StatementsChanged


def news(agent: AgentId, before: Vector, after: Vector) -> list[News]:
    """What to announce when an agent's vector has gone from ``before`` to ``after``."""
    return [Announce(agent, gap.log, gap.tip) for gap in lacking(before, after)]


def is_news(announced: News, vector: Vector, statements_digest: bytes) -> bool:
    """Whether a node that holds this has anything to pull."""
    match announced:
        case Announce(_, log, tip):
            return not holds(vector, log, tip)
        case StatementsChanged(_, digest):
            return digest != statements_digest


class Outbox:
    """Frames that wait for one watcher."""

    def __init__(self, frames_max: int = WATCH_OUTBOX_MAX) -> None:
        self._overrun = False
        self._frames_max = frames_max
        self._waiting: dict[tuple[bytes, ...], News] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def overrun(self) -> bool:
        """Whether a frame was lost: the watcher is then to be cut off."""
        return self._overrun

    def put(self, frame: News) -> None:
        """Queue a frame in place of an older one about the same log or set of statements."""
        key = _key(frame)
        self._waiting.pop(key, None)
        if len(self._waiting) >= self._frames_max:
            self._overrun = True
            return
        self._waiting[key] = frame

    def take(self, may_read: Callable[[AgentId], bool]) -> bytes:
        """All that waits and may be read, as bytes to send; empty when there is none."""
        waiting, self._waiting = self._waiting, {}
        return b"".join(pack(f) for f in waiting.values() if may_read(f.agent))


def beat() -> bytes:
    """What a watcher is sent after ``WATCH_BEAT_S`` without news."""
    return pack(Beat())


class Watcher:
    """Reads what a watch brings."""

    def __init__(self) -> None:
        self._reader = FrameReader(WATCH_FRAME_BYTES_MAX)
        self._unknown = 0

    def feed(self, chunk: bytes) -> list[News]:
        """The announcements in these bytes.

        Raises ``BadInput`` when they are none; the watch is then to be closed.
        """
        found: list[News] = []
        self._reader.feed(chunk)
        while (body := self._reader.next_body()) is not None:
            match parse(body):
                case Announce() | StatementsChanged() as frame:
                    found.append(frame)
                case Beat():
                    self._unknown = 0
                case Unknown() if self._unknown < UNKNOWN_FRAMES_MAX:
                    self._unknown += 1
                case frame:
                    raise BadStream(f"{type(frame).__name__} is no announcement")
        return found


class Turns:
    """Which agents are due for a pull from one peer; of one agent one pull runs at a time."""

    def __init__(self) -> None:
        self._due: dict[AgentId, None] = {}
        self._running: dict[AgentId, bool] = {}

    def want(self, agent: AgentId) -> None:
        """There is something to pull. While a pull of the agent runs, another follows it."""
        if agent in self._running:
            self._running[agent] = True
        else:
            self._due[agent] = None

    def begin(self) -> AgentId | None:
        """The agent to pull now, longest due first; None when none is."""
        agent = next(iter(self._due), None)
        if agent is not None:
            del self._due[agent]
            self._running[agent] = False
        return agent

    def done(self, agent: AgentId) -> None:
        """The pull of ``agent`` is over, however it went."""
        if self._running.pop(agent, False):
            self._due[agent] = None


def _key(frame: News) -> tuple[bytes, ...]:
    match frame:
        case Announce(agent, log, _):
            return (agent, log.device, log.incarnation)
        case StatementsChanged(agent, _):
            return (agent,)
