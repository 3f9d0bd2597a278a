"""An in-memory network: requests and streamed answers, with a seeded hand on the wire.

An answer travels in chunks cut anywhere. It may be cut at any byte, never come, be made twice (the
request came twice), be that to an earlier request or have a bit flipped (TLS would notice; a peer
that lies would not tell); a request may not arrive. Answers of several
sessions overtake each other. What a device may not have is noticed where it leaves its server.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from keys.ids import DeviceId
from sync.messages import Refusal
from tests.sim.schedule import MILLISECOND_US, Pause, Schedule, Signal

CHUNK_MAX = 4096
WHOLE = 2**40
SLOWEST_US = 200 * MILLISECOND_US
FATES = ("whole", "cut", "request lost", "answer lost", "twice", "stale", "flipped")


class WireError(Exception):
    """No answer, or one that broke off."""


class RefusedByPeerError(Exception):
    """The peer answered with a refusal."""


class Server:
    """What the network knows of a device."""

    name: str
    up: bool

    @property
    def device(self) -> DeviceId:
        """Who it is."""
        raise NotImplementedError

    def answer(self, peer: DeviceId, path: str, body: bytes) -> AsyncIterator[bytes | Refusal]:
        """The pieces of an answer; a refusal is the only piece."""
        raise NotImplementedError


@dataclass(eq=False)
class Stream:
    """An answer on its way."""

    client: Server
    server: Server
    chunks: list[bytes] = field(default_factory=list)
    refusal: Refusal | None = None
    over: bool = False
    cut: bool = False
    signal: Signal = field(default_factory=Signal)

    async def next(self) -> bytes | None:
        """The next chunk, None after the last; raises for one that broke off or was refused."""
        while not self.chunks and not self.over:
            await self.signal
        if self.chunks:
            return self.chunks.pop(0)
        if self.cut:
            raise WireError
        if self.refusal is not None:
            raise RefusedByPeerError
        return None

    async def whole(self) -> bytes:
        """The whole answer."""
        data = bytearray()
        while (chunk := await self.next()) is not None:
            data += chunk
        return bytes(data)


class Network:
    """Carries requests and answers between devices."""

    def __init__(self, schedule: Schedule, source: random.Random, counts: Counter[str]) -> None:
        self._schedule, self._random, self._counts = schedule, source, counts
        self.fault_rate = 0.0
        self.parted: set[frozenset[str]] = set()
        self.watch: Callable[[Server, Server, str, bytes | Refusal], None] = lambda *_: None
        self._streams: list[Stream] = []
        self._kept: dict[tuple[str, str, str], list[bytes]] = {}

    def request(self, client: Server, server: Server, path: str, body: bytes) -> Stream:
        """Send a request; its answer comes through the stream."""
        stream = Stream(client, server)
        self._streams.append(stream)
        fate = "whole"
        if self._random.random() < self.fault_rate:
            fate = self._random.choice(FATES[1:])
        if not server.up or self._are_parted(client, server):
            fate = "request lost"
        elif fate != "whole":
            self._counts[f"net: {fate}"] += 1
        if fate == "request lost":
            self._schedule.spawn(client, "lost", self._lose(stream))
        else:
            name = f"answer {path} to {client.name}"
            self._schedule.spawn(server, name, self._carry(stream, path, body, fate))
        return stream

    def hang_up(self, device: Server) -> None:
        """Cut every answer from or to a device."""
        self._end_where(lambda s: device in (s.client, s.server))

    def part(self, one: Server, other: Server) -> None:
        """Let nothing pass between two devices."""
        self.parted.add(frozenset((one.name, other.name)))
        self._end_where(lambda s: {s.client, s.server} == {one, other})

    def heal(self) -> None:
        """Let everything pass, unharmed."""
        self.parted.clear()
        self.fault_rate = 0.0

    def _are_parted(self, one: Server, other: Server) -> bool:
        return frozenset((one.name, other.name)) in self.parted

    def _end_where(self, concerns: Callable[[Stream], bool]) -> None:
        for stream in [s for s in self._streams if concerns(s)]:
            self._end(stream, cut=True)

    def _end(self, stream: Stream, *, cut: bool) -> None:
        if not stream.over:
            stream.over, stream.cut = True, cut
            self._streams.remove(stream)
            self._schedule.set(stream.signal)

    async def _lose(self, stream: Stream) -> None:
        await Pause(self._random.randrange(SLOWEST_US))
        self._end(stream, cut=True)

    async def _carry(self, stream: Stream, path: str, body: bytes, fate: str) -> None:
        place = (stream.client.name, stream.server.name, path)
        await Pause(self._random.randrange(SLOWEST_US))
        if fate == "twice":
            async for piece in self._pieces(stream, path, body):
                del piece
        if fate == "stale" and place in self._kept:
            for earlier in self._kept[place]:
                await self._deliver(stream, earlier)
            self._end(stream, cut=False)
            return
        left = self._random.randrange(2 * CHUNK_MAX) if fate == "cut" else WHOLE
        sent: list[bytes] = []
        async for piece in self._pieces(stream, path, body):
            if isinstance(piece, Refusal):
                stream.refusal = piece
                break
            sent.append(piece)
            if fate != "answer lost":
                await self._deliver(stream, self._harmed(piece[:left], fate))
            left = max(0, left - len(piece))
            if not left or stream.over:
                break
        else:
            self._kept[place] = sent
        self._end(stream, cut=not left or fate == "answer lost")

    async def _pieces(
        self, stream: Stream, path: str, body: bytes
    ) -> AsyncIterator[bytes | Refusal]:
        async for piece in stream.server.answer(stream.client.device, path, body):
            self.watch(stream.server, stream.client, path, piece)
            yield piece

    def _harmed(self, piece: bytes, fate: str) -> bytes:
        if fate != "flipped" or not piece or self._random.random() < 0.5:
            return piece
        at = self._random.randrange(len(piece))
        return piece[:at] + bytes([piece[at] ^ 1 << self._random.randrange(8)]) + piece[at + 1 :]

    async def _deliver(self, stream: Stream, piece: bytes) -> None:
        at = 0
        while at < len(piece):
            size = self._random.randint(1, CHUNK_MAX)
            await Pause(self._random.randrange(SLOWEST_US // 10))
            if stream.over:
                return
            if any(s is not stream and s.client is stream.client for s in self._streams):
                self._counts["net: chunks among others"] += 1
            stream.chunks.append(piece[at : at + size])
            self._schedule.set(stream.signal)
            at += size
