"""What a request or reply carries when it is one message. See PROTOCOL.md.

1. Wire types are frozen; ``encode`` and ``decode`` are their only way to and from bytes.
2. ``decode`` compares sizes before anything is read, accepts the canonical encoding only, and
   raises ``BadEncoding`` and nothing else.
3. A ``Hello`` may carry fields that this version does not know; no other message may.
4. No right, no such agent, no such thing as the text given: one reply, ``NOT_FOUND``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

from crdt.entry import LogId
from crdt.log import Vector, Want
from crdt.vector import rows_of, vector_of
from keys import codec
from keys.address import Address
from keys.errors import BadEncoding, UsageError
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation
from keys.limits import (
    ADDRESS_BYTES_MAX,
    ADDRESSES_MAX,
    AGENTS_PER_HELLO_MAX,
    BOOT_NONCE_BYTES,
    ERROR_CODE_BYTES_MAX,
    HASH_BYTES,
    INCARNATION_BYTES,
    KEY_BOX_BYTES_MAX,
    KEY_BOXES_MAX,
    KEY_BYTES,
    LOGS_PER_AGENT_MAX,
    NAME_BYTES_MAX,
    PROOF_STATEMENTS_MAX,
    PULL_ENTRIES_MAX,
    REPLY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    SEQ_MAX,
    SIGNATURE_BYTES,
    STARTS_MAX,
    STATEMENT_BYTES_MAX,
    STATEMENTS_PAGE_MAX,
    STATEMENTS_PER_AGENT_MAX,
    VERSION_MAX,
    WALL_MS_MAX,
    WANT_PAYLOADS_MAX,
)
from sync.errors import IncompatibleError
from sync.fields import blob, fields, items, number, rising, row, text, truth

VERSIONS: Final = (1, 1)  # the lowest and the highest that this node speaks
CONTENT_TYPE: Final = "application/vnd.roost"
HELLO_PATH: Final = "/v1/hello"
WATCH_PATH: Final = "/v1/watch"
STATEMENTS_PATH: Final = "/v1/agents/{agent}/statements"
PULL_PATH: Final = "/v1/agents/{agent}/pull"
RECOVER_PATH: Final = "/v1/recover"
PAYLOADS_PATH: Final = "/v1/agents/{agent}/payloads"

# No words of anybody reach a journal or a terminal by way of an error.
ERROR_CODE: Final = re.compile("[a-z_]+")

Signed = tuple[bytes, bytes]
"""A statement as it travels: its bytes and their signature."""


def path_of(template: str, agent: AgentId) -> str:
    """One of the paths above, for an agent."""
    return template.replace("{agent}", str(agent))


def agent_of_path(segment: str) -> AgentId | None:
    """The agent that a path names; None for whatever is not exactly the text of an id."""
    try:
        agent = AgentId.parse(segment)
    except UsageError:
        return None
    return agent if str(agent) == segment else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that says no: an HTTP status and the whole body."""

    status: int
    body: bytes


def _refusal(status: int, code: str) -> Refusal:
    return Refusal(status, codec.encode({"error": code}))


NOT_FOUND: Final = _refusal(404, "not_found")
BAD_REQUEST: Final = _refusal(400, "bad_request")
REQUEST_TOO_LARGE: Final = _refusal(413, "too_large")
BUSY: Final = _refusal(503, "busy")
REFUSALS: Final = (NOT_FOUND, BAD_REQUEST, REQUEST_TOO_LARGE, BUSY)


def code_of_refusal(body: bytes) -> str:
    """The code in the body of a refusal; raises ``BadEncoding``."""
    (code,) = fields(codec.decode(body, REQUEST_BYTES_MAX), ("error",), may_grow=True)
    if ERROR_CODE.fullmatch(text(code, ERROR_CODE_BYTES_MAX)) is None:
        raise BadEncoding("an error is told by a code")
    return str(code)


@dataclass(frozen=True, slots=True)
class SharedAgent:
    """An agent that the receiver of a hello may read, and the two digests of R8 (64 bytes)."""

    agent: AgentId
    vector_digest: bytes
    statements_digest: bytes


_HELLO: Final = ("addresses", "agents", "boot_nonce", "clock_ms", "device_name", "versions")


@dataclass(frozen=True, slots=True)
class Start:
    """A start of the receiver's own device that the sender heard, and where it was.

    ``proof`` is that device's signature of the nonce: nobody else can make up a start.
    """

    nonce: bytes
    proof: bytes
    address: str


@dataclass(frozen=True, slots=True)
class Hello:
    """What two devices tell each other first; request and reply are the same.

    ``versions`` is (lowest, highest), ``clock_ms`` the sender's clock, ``boot_nonce`` 16 random
    bytes of this start, ``agents`` sorted by id: those that the receiver may read, and no others.
    ``proof`` is the sender's signature of its nonce, ``copies`` the starts of the receiver's device
    that speak among one another (S-A7); both are empty in a hello of an earlier version.
    """

    versions: tuple[int, int]
    device_name: str
    boot_nonce: bytes
    clock_ms: int
    addresses: tuple[Address, ...]
    agents: tuple[SharedAgent, ...]
    proof: bytes = b""
    copies: tuple[Start, ...] = ()

    def encode(self) -> bytes:
        """The canonical bytes."""
        said: dict[str, object] = {
            "addresses": [str(a) for a in self.addresses],
            "agents": [
                [a.agent, a.vector_digest, a.statements_digest]
                for a in sorted(self.agents, key=lambda a: a.agent)
            ],
            "boot_nonce": self.boot_nonce,
            "clock_ms": self.clock_ms,
            "device_name": self.device_name,
            "versions": list(self.versions),
        }
        if self.copies:
            said["copies"] = [[c.nonce, c.proof, c.address] for c in self.copies]
        if self.proof:
            said["proof"] = self.proof
        return codec.encode(said)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The hello in ``data``; raises ``BadEncoding``."""
        value = codec.decode(data, REQUEST_BYTES_MAX)
        addresses, agents, nonce, clock, name, versions = fields(value, _HELLO, may_grow=True)
        low, high = row(versions, 2)
        shared = tuple(_shared(a) for a in items(agents, AGENTS_PER_HELLO_MAX))
        rising([bytes(a.agent) for a in shared])
        return cls(
            (number(low, 1, VERSION_MAX), number(high, low, VERSION_MAX)),
            text(name, NAME_BYTES_MAX),
            blob(nonce, BOOT_NONCE_BYTES),
            number(clock, 0, WALL_MS_MAX),
            tuple(_address(a) for a in items(addresses, ADDRESSES_MAX)),
            shared,
            blob(value["proof"], SIGNATURE_BYTES) if "proof" in value else b"",
            tuple(_start(c) for c in items(value.get("copies", []), STARTS_MAX)),
        )


def _start(value: object) -> Start:
    nonce, proof, address = row(value, 3)
    return Start(
        blob(nonce, BOOT_NONCE_BYTES),
        blob(proof, SIGNATURE_BYTES),
        text(address, ADDRESS_BYTES_MAX),
    )


def _shared(value: object) -> SharedAgent:
    agent, vector, statements = row(value, 3)
    return SharedAgent(AgentId(agent), blob(vector, HASH_BYTES), blob(statements, HASH_BYTES))


def _address(value: object) -> Address:
    given = text(value, ADDRESS_BYTES_MAX)
    try:
        address = Address.parse(given)
    except UsageError as exc:
        raise BadEncoding("an address of a hello is host:port") from exc
    if str(address) != given:
        raise BadEncoding("an address of a hello has one way to be written")
    return address


def agreed_version(theirs: tuple[int, int], mine: tuple[int, int] = VERSIONS) -> int:
    """The highest version that both speak.

    Raises ``IncompatibleError``, which says whose node has to be upgraded.
    """
    low, high = max(mine[0], theirs[0]), min(mine[1], theirs[1])
    if low <= high:
        return high
    whose = "this" if theirs[0] > mine[1] else "the other"
    raise IncompatibleError(
        f"no common protocol version: this node speaks {mine[0]} to {mine[1]}, "
        f"the other {theirs[0]} to {theirs[1]}",
        hint=f"upgrade {whose} node",
        whose=whose,
    )


@dataclass(frozen=True, slots=True)
class StatementsRequest:
    """Asks for statements not in ``have`` (sorted ids); those in ``proof`` give the right to."""

    have: tuple[bytes, ...]
    proof: tuple[Signed, ...] = ()

    def encode(self) -> bytes:
        """The canonical bytes."""
        return codec.encode({"have": sorted(set(self.have)), "proof": _rows(self.proof)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The request in ``data``; raises ``BadEncoding``."""
        value = codec.decode(data, REQUEST_BYTES_MAX)
        have, proof = fields(value, ("have", "proof"))
        ids = [blob(i, HASH_BYTES) for i in items(have, STATEMENTS_PER_AGENT_MAX)]
        return cls(tuple(rising(ids)), _signed(proof, PROOF_STATEMENTS_MAX))


@dataclass(frozen=True, slots=True)
class KeyBox:
    """A fingerprint key, sealed to the device that asks; ``commitment`` is the key's hash (R25)."""

    commitment: bytes
    box: bytes


@dataclass(frozen=True, slots=True)
class StatementsReply:
    """Statements, each after its past; ``more`` tells that asking again brings more."""

    statements: tuple[Signed, ...]
    keys: tuple[KeyBox, ...]
    more: bool

    def encode(self) -> bytes:
        """The canonical bytes."""
        keys = [[k.commitment, k.box] for k in sorted(self.keys, key=lambda k: k.commitment)]
        return codec.encode({"keys": keys, "more": self.more, "statements": _rows(self.statements)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The reply in ``data``; raises ``BadEncoding``."""
        value = codec.decode(data, REPLY_BYTES_MAX)
        keys, more, statements = fields(value, ("keys", "more", "statements"))
        boxes = tuple(_key_box(k) for k in items(keys, KEY_BOXES_MAX))
        rising([k.commitment for k in boxes])
        return cls(_signed(statements, STATEMENTS_PAGE_MAX), boxes, truth(more))


def _key_box(value: object) -> KeyBox:
    commitment, box = row(value, 2)
    return KeyBox(blob(commitment, HASH_BYTES), blob(box, 1, KEY_BOX_BYTES_MAX))


def _rows(signed: Sequence[Signed]) -> list[list[bytes]]:
    return [[data, signature] for data, signature in signed]


def _signed(value: object, length_max: int) -> tuple[Signed, ...]:
    pairs = (row(pair, 2) for pair in items(value, length_max))
    return tuple(
        (blob(data, 1, STATEMENT_BYTES_MAX), blob(signature, SIGNATURE_BYTES))
        for data, signature in pairs
    )


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Asks for what ``have`` lacks, about ``limit`` entries of it (1..PULL_ENTRIES_MAX).

    ``skip`` names logs that are not to be sent now: those that were refused before.
    """

    have: Vector
    limit: int = PULL_ENTRIES_MAX
    skip: frozenset[LogId] = frozenset()

    def encode(self) -> bytes:
        """The canonical bytes."""
        skip = sorted([bytes(log.device), bytes(log.incarnation)] for log in self.skip)
        return codec.encode({"have": rows_of(self.have), "limit": self.limit, "skip": skip})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The request in ``data``; raises ``BadEncoding``."""
        value = codec.decode(data, REQUEST_BYTES_MAX)
        have, limit, skip = fields(value, ("have", "limit", "skip"))
        logs = [log_of(*row(log, 2)) for log in items(skip, LOGS_PER_AGENT_MAX)]
        rising([log.device + log.incarnation for log in logs])
        return cls(vector_of(have), number(limit, 1, PULL_ENTRIES_MAX), frozenset(logs))


@dataclass(frozen=True, slots=True)
class PayloadsRequest:
    """Asks for payloads: sorted by place, distinct, at most ``WANT_PAYLOADS_MAX`` (R32)."""

    want: tuple[Want, ...]

    def encode(self) -> bytes:
        """The canonical bytes."""
        return codec.encode({"want": sorted(row_of_want(w) for w in self.want)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The request in ``data``; raises ``BadEncoding``."""
        (want,) = fields(codec.decode(data, REQUEST_BYTES_MAX), ("want",))
        rows = [row(w, 4) for w in items(want, WANT_PAYLOADS_MAX)]
        wanted = tuple(want_of(values) for values in rows)
        if any(a >= b for a, b in pairwise(rows)):
            raise BadEncoding("wanted payloads are sorted and distinct")
        return cls(wanted)


def log_of(device: object, incarnation: object) -> LogId:
    """A log from two decoded values."""
    return LogId(
        DeviceId(blob(device, KEY_BYTES)), Incarnation(blob(incarnation, INCARNATION_BYTES))
    )


def row_of_want(want: Want) -> list[Any]:
    """A wanted payload as ``[device, incarnation, seq, hash]``."""
    return [bytes(want.log.device), bytes(want.log.incarnation), want.seq, bytes(want.hash)]


def want_of(values: list[Any]) -> Want:
    """A wanted payload from its four decoded values; raises ``BadEncoding``."""
    device, incarnation, seq, entry = values
    if type(entry) is not bytes:
        raise BadEncoding("a hash is bytes")
    return Want(log_of(device, incarnation), number(seq, 1, SEQ_MAX), EntryHash(entry))
