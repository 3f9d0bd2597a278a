"""Runs: the only place where bytes from a peer become trusted entries (R3, R4).

A run is a stretch of one log: entries in order, ending at a commit end whose signature travels.
``verify_run`` raises ``BadInput`` or returns a ``VerifiedRun``; stores accept nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crdt.entry import NO_PREV, NO_RECORD, Header, LogId, PayloadKind, decode_header, tombstone_id
from crdt.payload import decode_open, decode_tombstone
from keys.errors import BadChain, BadEncoding
from keys.ids import AgentId, EntryHash, hash256
from keys.limits import COMMIT_BYTES_MAX, COMMIT_ENTRIES_MAX, RUN_BYTES_MAX, RUN_ENTRIES_MAX
from keys.signing import ENTRY_DOMAIN, verify


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry as it travels: header bytes, payload bytes or None, signature or empty."""

    header: bytes
    payload: bytes | None
    signature: bytes


@dataclass(frozen=True, slots=True)
class VerifiedEntry:
    """An entry whose place in its log a signature vouches for.

    ``payload`` is None where it was not sent (erased, or nowhere); where it is present it has the
    length and hash that the header names.
    """

    header: Header
    payload: bytes | None
    signature: bytes


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """A verified stretch of one log that follows ``prev`` at ``first_seq - 1``."""

    log: LogId
    first_seq: int
    prev: EntryHash
    entries: tuple[VerifiedEntry, ...]


def verify_run(agent: AgentId, raw: Sequence[RawEntry]) -> VerifiedRun:
    """Verify a run of ``agent``; raises ``BadEncoding``, ``BadChain`` or ``BadSignature``.

    Checked: bounds, canonical headers, one log, rising seq, the hash chain, whole commits, payload
    hashes, the form of openings and tombstones, and the signature at the end. Signatures inside the
    run are kept only when they were verified too: those of openings and tombstones (R4).
    """
    if not 1 <= len(raw) <= RUN_ENTRIES_MAX:
        raise BadChain(f"a run has 1 to {RUN_ENTRIES_MAX} entries")
    if sum(len(e.header) + len(e.payload or b"") for e in raw) > RUN_BYTES_MAX:
        raise BadChain(f"a run has at most {RUN_BYTES_MAX} bytes")
    headers = [decode_header(e.header) for e in raw]
    first = headers[0]
    if first.agent != agent:
        raise BadChain("an entry of another agent", entry=str(first.hash))
    if (first.seq == 1) != (first.prev == NO_PREV):
        raise BadChain("the first entry of a log, and no other, has an empty prev")
    _check_sequence(headers)
    _check_commits(headers, raw)
    last = len(raw) - 1
    entries = tuple(
        _entry(header, given, ends=i == last)
        for i, (header, given) in enumerate(zip(headers, raw, strict=True))
    )
    return VerifiedRun(first.log, first.seq, first.prev, entries)


def verify_single(agent: AgentId, raw: RawEntry) -> VerifiedEntry:
    """Verify one singly signed entry (an opening or a tombstone) ahead of its chain (R30)."""
    header = decode_header(raw.header)
    if header.agent != agent or header.payload_kind not in (
        PayloadKind.OPEN,
        PayloadKind.TOMBSTONE,
    ):
        raise BadChain("only openings and tombstones travel ahead of their chain")
    if raw.payload is None:
        raise BadChain("an opening or a tombstone travels with its payload")
    return _entry(header, raw, ends=True)


def _check_sequence(headers: list[Header]) -> None:
    for before, header in pairwise(headers):
        if header.seq != before.seq + 1 or header.prev != before.hash:
            raise BadChain("an entry does not follow the one before it", entry=str(header.hash))
        if (header.device, header.incarnation, header.agent) != (
            before.device,
            before.incarnation,
            before.agent,
        ):
            raise BadChain("a run is of one log", entry=str(header.hash))


def _check_commits(headers: list[Header], raw: Sequence[RawEntry]) -> None:
    """R3: ``commit_left`` counts down by one to 0, and the run ends with a commit.

    Runs start at commit ends too, so every commit of a log is whole or absent in a store.
    """
    length, size = 0, 0
    for i, (header, given) in enumerate(zip(headers, raw, strict=True)):
        length += 1
        size += len(given.header) + header.payload_len
        follows = headers[i + 1].commit_left if i + 1 < len(headers) else None
        if header.commit_left and follows != header.commit_left - 1:
            raise BadChain("a commit does not count down to its end", entry=str(header.hash))
        if length > COMMIT_ENTRIES_MAX or size > COMMIT_BYTES_MAX:
            raise BadChain("a commit over its bounds", entry=str(header.hash))
        if header.commit_left == 0:
            length, size = 0, 0


def _entry(header: Header, given: RawEntry, *, ends: bool) -> VerifiedEntry:
    payload = given.payload
    if payload is not None and (
        len(payload) != header.payload_len or hash256(payload) != header.payload_hash
    ):
        raise BadChain("a payload is not the one its header names", entry=str(header.hash))
    _check_kind(header, payload)
    singly = header.payload_kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
    if not ends and not singly:
        return VerifiedEntry(header, payload, b"")
    verify(header.device, ENTRY_DOMAIN, header.hash, given.signature)
    return VerifiedEntry(header, payload, given.signature)


def _check_kind(header: Header, payload: bytes | None) -> None:
    """The form of openings (first, alone, never without payload) and of tombstones."""
    if (header.payload_kind == PayloadKind.OPEN) != (header.seq == 1):
        raise BadChain("the first entry of a log, and no other, opens it", entry=str(header.hash))
    if header.payload_kind == PayloadKind.OPEN:
        if payload is None or header.record != NO_RECORD or header.deps or header.commit_left:
            raise BadChain("a malformed opening", entry=str(header.hash))
        decode_open(payload)
    elif header.payload_kind == PayloadKind.TOMBSTONE:
        if payload is None or header.deps:
            raise BadChain("a malformed tombstone", entry=str(header.hash))
        named = decode_tombstone(payload).record
        if header.record != tombstone_id(header.agent, named):
            raise BadEncoding("a tombstone's id does not fit the record it names")
