"""Streams: frames of 4 bytes of length and a canonical array ``[kind, …]``. See PROTOCOL.md.

1. The length is compared with its bound before a byte of the body is kept.
2. ``parse`` accepts the canonical encoding of exactly the fields of a kind; it raises
   ``BadEncoding`` and nothing else. A kind that this version does not know is ``Unknown``.
3. Nothing here is verified: an entry in a frame is what somebody sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from crdt.chain import RawEntry
from crdt.entry import LogId
from crdt.log import ServedEntry, Tip, Vector, Want
from crdt.vector import rows_of, vector_of
from keys import codec
from keys.errors import BadEncoding
from keys.ids import AgentId, EntryHash
from keys.limits import (
    AHEAD_TOMBSTONES_MAX,
    ENTRY_BYTES_MAX,
    ERROR_CODE_BYTES_MAX,
    FRAME_BYTES_MAX,
    HASH_BYTES,
    HEADER_BYTES_MAX,
    RUN_ENTRIES_MAX,
    SEQ_MAX,
    SIGNATURE_BYTES,
)
from sync.fields import blob, items, number, row, text, truth
from sync.messages import ERROR_CODE, log_of, row_of_want, want_of

LENGTH_BYTES: Final = 4
KIND_CHARS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Totals:
    """What is to come: entries in runs, and tombstones ahead of them."""

    entries: int
    tombstones: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """A tombstone ahead of its chain, and the opening of its log (R30)."""

    tombstone: RawEntry
    opening: RawEntry


@dataclass(frozen=True, slots=True)
class Run:
    """Entries of one log in order, up to one whose signature travels (R4)."""

    entries: tuple[ServedEntry, ...]


@dataclass(frozen=True, slots=True)
class ServerVector:
    """What the server holds, read after the last run."""

    vector: Vector


@dataclass(frozen=True, slots=True)
class End:
    """The stream is whole; ``more`` tells that the limit ended it."""

    more: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """The stream ends here without being whole."""

    code: str


@dataclass(frozen=True, slots=True)
class Announce:
    """A log of an agent now ends with ``tip`` (R8)."""

    agent: AgentId
    log: LogId
    tip: Tip


@dataclass(frozen=True, slots=True)
class StatementsChanged:
    """An agent's statements now have this digest."""

    agent: AgentId
    digest: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing has happened, and the sender is there."""


@dataclass(frozen=True, slots=True)
class PayloadFrame:
    """A payload that was asked for."""

    want: Want
    payload: bytes


@dataclass(frozen=True, slots=True)
class Unknown:
    """A frame of a kind that this version does not know; it is passed over."""

    kind: str


Frame: TypeAlias = (
    Totals
    | Ahead
    | Run
    | ServerVector
    | End
    | Failure
    | Announce
    | StatementsChanged
    | Beat
    | PayloadFrame
    | Unknown
)


def pack(frame: Frame) -> bytes:
    """The frame with its length in front.

    Raises ``BadEncoding`` when it is over ``FRAME_BYTES_MAX``.
    """
    body = codec.encode(_values(frame))
    if len(body) > FRAME_BYTES_MAX:
        raise BadEncoding(f"a frame has at most {FRAME_BYTES_MAX} bytes")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def parse(body: bytes) -> Frame:
    """The frame in ``body`` (without its length); raises ``BadEncoding``."""
    value = codec.decode_small(body)
    if type(value) is not list or not value or type(value[0]) is not str:
        raise BadEncoding("a frame is a list that starts with its kind")
    kind, *values = value
    if not 0 < len(kind) <= KIND_CHARS_MAX:
        raise BadEncoding("a frame's kind is a short word")
    reader = READERS.get(kind)
    return Unknown(kind) if reader is None else reader(values)


class FrameReader:
    """Cuts a stream of bytes, however it is chunked, into the bodies of frames.

    It keeps at most one frame and the last chunk.
    """

    __slots__ = ("_buffer", "_size_max")

    def __init__(self, size_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._size_max = size_max

    def feed(self, chunk: bytes) -> None:
        """Add bytes. Take what is whole with ``next_body`` before adding more."""
        self._buffer += chunk

    def next_body(self) -> bytes | None:
        """The next whole body, None until more bytes come.

        Raises ``BadEncoding`` as soon as a length is known that is 0 or over the bound; nothing
        can be read after that.
        """
        if len(self._buffer) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
        if not 1 <= length <= self._size_max:
            raise BadEncoding(f"a frame of {length} bytes where 1 to {self._size_max} are allowed")
        end = LENGTH_BYTES + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[LENGTH_BYTES:end])
        del self._buffer[:end]
        return body

    @property
    def between_frames(self) -> bool:
        """Whether no part of a frame is waiting for the rest."""
        return not self._buffer


def _values(frame: Frame) -> list[Any]:
    match frame:
        case Totals() | Ahead() | Run() | ServerVector() | End() | Failure():
            return _pull_values(frame)
        case Announce(agent, log, tip):
            return ["announce", agent, log.device, log.incarnation, tip.seq, tip.hash]
        case StatementsChanged(agent, digest):
            return ["statements", agent, digest]
        case Beat():
            return ["beat"]
        case PayloadFrame(want, payload):
            return ["payload", *row_of_want(want), payload]
        case Unknown(kind):
            return [kind]
        case _:
            assert_never(frame)


def _pull_values(frame: Totals | Ahead | Run | ServerVector | End | Failure) -> list[Any]:
    match frame:
        case Totals(entries, tombstones):
            return ["totals", entries, tombstones]
        case Ahead(tombstone, opening):
            return ["ahead", _single(tombstone), _single(opening)]
        case Run(entries):
            return [
                "run",
                [[e.raw.header, e.raw.payload, e.raw.signature, e.tombstone] for e in entries],
            ]
        case ServerVector(vector):
            return ["vector", rows_of(vector)]
        case End(more):
            return ["end", more]
        case Failure(code):
            return ["error", code]
        case _:
            assert_never(frame)


def _single(entry: RawEntry) -> list[bytes | None]:
    return [entry.header, entry.payload, entry.signature]


def _totals(values: list[Any]) -> Frame:
    entries, tombstones = row(values, 2)
    return Totals(number(entries, 0, SEQ_MAX), number(tombstones, 0, AHEAD_TOMBSTONES_MAX))


def _ahead(values: list[Any]) -> Frame:
    tombstone, opening = row(values, 2)
    return Ahead(_raw_single(tombstone), _raw_single(opening))


def _raw_single(value: object) -> RawEntry:
    header, payload, signature = row(value, 3)
    return RawEntry(
        blob(header, 1, HEADER_BYTES_MAX),
        blob(payload, 1, ENTRY_BYTES_MAX),
        blob(signature, SIGNATURE_BYTES),
    )


def _run(values: list[Any]) -> Frame:
    (rows,) = row(values, 1)
    entries = tuple(_served(r) for r in items(rows, RUN_ENTRIES_MAX))
    if not entries:
        raise BadEncoding("a run has at least one entry")
    return Run(entries)


def _served(value: object) -> ServedEntry:
    header, payload, signature, tombstone = row(value, 4)
    blob(header, 1, HEADER_BYTES_MAX)
    if payload is not None:
        blob(payload, 1, ENTRY_BYTES_MAX)
        blob(tombstone, 0)
    if type(signature) is not bytes or len(signature) not in (0, SIGNATURE_BYTES):
        raise BadEncoding("a signature has 64 bytes or is not there")
    if type(tombstone) is not bytes or len(tombstone) not in (0, HASH_BYTES):
        raise BadEncoding("a tombstone is named by its hash or not at all")
    return ServedEntry(RawEntry(header, payload, signature), tombstone)


def _vector(values: list[Any]) -> Frame:
    (rows,) = row(values, 1)
    return ServerVector(vector_of(rows))


def _end(values: list[Any]) -> Frame:
    (more,) = row(values, 1)
    return End(truth(more))


def _failure(values: list[Any]) -> Frame:
    (code,) = row(values, 1)
    if ERROR_CODE.fullmatch(text(code, ERROR_CODE_BYTES_MAX)) is None:
        raise BadEncoding("an error is told by a code")
    return Failure(code)


def _announce(values: list[Any]) -> Frame:
    agent, device, incarnation, seq, entry = row(values, 5)
    tip = Tip(number(seq, 1, SEQ_MAX), EntryHash(entry))
    return Announce(AgentId(agent), log_of(device, incarnation), tip)


def _statements(values: list[Any]) -> Frame:
    agent, digest = row(values, 2)
    return StatementsChanged(AgentId(agent), blob(digest, HASH_BYTES))


def _beat(values: list[Any]) -> Frame:
    row(values, 0)
    return Beat()


def _payload(values: list[Any]) -> Frame:
    *want, payload = row(values, 5)
    return PayloadFrame(want_of(want), blob(payload, 1, ENTRY_BYTES_MAX))


READERS: Final[dict[str, Callable[[list[Any]], Frame]]] = {
    "totals": _totals,
    "ahead": _ahead,
    "run": _run,
    "vector": _vector,
    "end": _end,
    "error": _failure,
    "announce": _announce,
    "statements": _statements,
    "beat": _beat,
    "payload": _payload,
}
