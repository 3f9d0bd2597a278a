"""Hostile inputs that get past the signatures: payloads, statements, streams of a real author."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import msgpack

from crdt.document import RecordDocument
from crdt.entry import actor_id, decode_header
from crdt.facts import Reason, RecordFold, Stored, Verdict
from crdt.fold import fold_record
from crdt.payload import decode_ops, delete, encode_ops, put
from keys.authority import Authority
from keys.errors import BadEncoding, BadInput
from keys.ids import hash256
from keys.signing import STATEMENT_DOMAIN
from keys.statements import parse, parse_stored
from sync.pull import Broken, PullClient, Whole
from tests.fuzz import samples
from tests.fuzz.decoders import MESSAGE_FREE
from tests.fuzz.judge import Decoder, check
from tests.fuzz.mutate import LARGE, Maker, packed, spoiled, variant
from tests.vectors.cast import AGENT, CERTIFICATES, FOUND, LOG, OWNER, PHONE, Writer, header_of

FREE: Final = Verdict(None, reviews=True)
REFUSED: Final = frozenset({Reason.MALFORMED, Reason.MISMATCH, Reason.NEEDS_UPGRADE})
GENUINE_OPS: Final = (
    [put("field.layer", "month"), put("mark.0000000000000001", "deprecated no longer")],
    [delete("tag.vectors"), put("field.weight", 2.5), put("tag.x", bytes(8))],
    [put("field.a", None), put("field.b", True), put("field.c", -7), put("field.d", "\U0001f41d")],
    [put("next." + "0" * 32, "because")],
)


def all_deep() -> list[Decoder]:
    """Decoders of what carries a valid signature, or of whole streams."""
    return [
        Decoder("payload in a fold", Payloads().make, Payloads().read, (), MESSAGE_FREE),
        Decoder("statement in force", _statements(), _in_force, (BadInput,), MESSAGE_FREE),
        Decoder("pull stream", pull_streams(samples.streams()), _pulled, (), MESSAGE_FREE),
    ]


class Payloads:
    """A record of two entries of one device, and between them an edit of another that is hostile.

    What is refused leaves the record as it is without it, and every entry has one reason or none.
    """

    def __init__(self) -> None:
        w = Writer()
        w.open()
        self.record = w.next_id()
        raw = [w.create("one")]
        self.created = w.prev
        self.change = w.changes[w.prev]
        self.creation = decode_ops(raw[0].payload or b"").ops
        self.creation_actor = actor_id(AGENT, w.log, 2, decode_ops(raw[0].payload or b"").salt)
        raw.append(w.change(self.record, [self.created], [put("field.layer", "week")]))
        self.stored = [Stored(header_of(r), r.payload, 0) for r in raw]
        self.expected = self.folded(self.stored)
        self.packed = packed([self.rehashed(bytes(16), list(ops)) for ops in GENUINE_OPS])

    def rehashed(self, salt: bytes, ops: Sequence[object]) -> bytes:
        """The payload of operations with the hash of the change that they make there."""
        document = RecordDocument()
        document.apply(frozenset(), self.creation_actor, self.creation)
        actor = actor_id(AGENT, self.phone().log, 2, salt)
        ordered = sorted(ops, key=lambda op: op.key.encode())  # type: ignore[attr-defined]
        made = document.apply(frozenset([self.change]), actor, ordered)  # type: ignore[arg-type]
        return encode_ops(salt, ordered, made or bytes(32))  # type: ignore[arg-type]

    @staticmethod
    def phone() -> Writer:
        """The other device's log after its opening."""
        w = Writer(PHONE, "fuzz")
        w.open()
        return w

    def make(self, rng: random.Random) -> bytes:
        """A payload; half of those that are well-formed carry the right hash of their change."""
        data = self.packed(rng)
        if rng.random() < 0.5:
            try:
                found = decode_ops(data)
            except BadEncoding:
                return data
            return self.rehashed(found.salt, list(found.ops))
        return data

    def read(self, data: bytes) -> RecordFold:
        """The fold of all three; ``data`` is in the middle."""
        if not data:
            return self.expected
        raw = self.phone().entry(data, record=self.record, deps=[self.created], signed=False)
        hostile = Stored(decode_header(raw.header), data, 0)
        folded = self.folded([self.stored[0], hostile, self.stored[1]])
        reason = folded.reasons.get(hostile.header.hash)
        check(folded.reasons.keys() <= {hostile.header.hash}, "a good entry was refused")
        if reason is not None:
            check(reason in REFUSED, f"refused as {reason}")
            check(folded.values == self.expected.values, "what was refused changed the document")
            check(folded.facts == self.expected.facts, "what was refused left a fact")
            check(folded.heads == self.expected.heads, "what was refused is a head")
        return folded

    def folded(self, entries: Sequence[Stored]) -> RecordFold:
        """The fold where nothing stands against any entry."""
        return fold_record(AGENT, self.record, entries, lambda _: FREE)


def _statements() -> Maker:
    own = [data for data in samples.statements() if OWNER.public in data and len(data) < 8_192]
    return packed(own)


def _in_force(data: bytes) -> object:
    """A statement under the owner's true signature, beside those that make it the owner's."""
    parse_stored(data, bytes(64))
    statement = parse(data, OWNER.sign(STATEMENT_DOMAIN, hash256(data)))
    authority = Authority(AGENT, [FOUND, *CERTIFICATES, statement])
    return authority.log_verdict(LOG.device, LOG.incarnation, (bytes(FOUND.id),))


def pull_streams(valid: Sequence[bytes]) -> Maker:
    """Answers to a pull, with a frame or the order of frames made wrong."""
    streams = [_bodies(stream) for stream in valid]

    def make(rng: random.Random) -> bytes:
        bodies, others = list(rng.choice(streams)), rng.choice(streams)
        at = rng.randrange(len(bodies))
        bodies[at] = variant(rng, msgpack.unpackb(bodies[at]), msgpack.unpackb(rng.choice(others)))
        if rng.random() < 0.5:
            at = rng.randrange(len(bodies))
            match rng.choice((0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3)):
                case 0:
                    del bodies[at]
                case 1:
                    bodies.insert(at, rng.choice(others))
                case 2:
                    bodies[at], bodies[at - 1] = bodies[at - 1], bodies[at]
                case _:
                    bodies[at] = rng.choice(LARGE)
        data = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
        return spoiled(rng, data, data) if rng.random() < 0.1 else data

    return make


def _bodies(stream: bytes) -> list[bytes]:
    bodies = []
    while stream:
        length = int.from_bytes(stream[:4], "big")
        bodies.append(stream[4 : 4 + length])
        stream = stream[4 + length :]
    return bodies


def _pulled(data: bytes) -> object:
    """A stream in chunks; it is whole, or it is broken, and says so once."""
    client = PullClient(samples.AGENT, {})
    effects = [e for chunk in _chunks(data) for e in client.feed(chunk)] + client.closed()
    ends = [e for e in effects if isinstance(e, Whole | Broken)]
    check(len(ends) == 1, "a stream ends once")
    check(effects[-1] is ends[0], "and last")
    check(client.over, "and is over then")
    return effects


def _chunks(data: bytes) -> Iterator[bytes]:
    size = 1 + len(data) * 7 % 700
    for start in range(0, len(data), size):
        yield data[start : start + size]
