"""Who acts in the vectors, with fixed keys, and a log that can also be written wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from crdt.chain import RawEntry
from crdt.document import RecordDocument
from crdt.entry import (
    NO_PREV,
    NO_RECORD,
    Header,
    LogId,
    PayloadKind,
    Via,
    actor_id,
    author_bound_id,
    decode_header,
    tombstone_id,
)
from crdt.fingerprint import FingerprintKey
from crdt.payload import Op, encode_open, encode_ops, encode_tombstone, put
from keys import codec
from keys.ids import EntryHash, Incarnation, RecordId, hash256
from keys.limits import DEPS_MAX, INCARNATION_BYTES, SALT_BYTES
from keys.recovery import format_code, recovery_hash, recovery_key
from keys.signing import ENTRY_DOMAIN, DeviceKey
from keys.statements import agent_of, sign
from tests.support.author import WALL_MS, certify, device_key, owner_key, seeded

OWNER: Final = owner_key("vectors")
OTHER: Final = owner_key("vectors, another owner")
LAPTOP: Final = device_key("vectors, laptop")
PHONE: Final = device_key("vectors, phone")
PAPER: Final = format_code(seeded("vectors, recovery code", 16))
RECOVERY: Final = recovery_key(PAPER)
VALUES: Final = FingerprintKey(seeded("vectors, fingerprint key"))
FOUND: Final = sign(
    OWNER,
    "found",
    {
        "owner": OWNER.public,
        "name": "vectors",
        "nonce": seeded("vectors, nonce", 16),
        "recovery": recovery_hash(RECOVERY.public),
        "key": VALUES.commitment,
        "wall_ms": WALL_MS,
    },
    agent=b"",
    after=[],
)
AGENT: Final = agent_of(FOUND)
CERTIFICATES: Final = [certify(OWNER, LAPTOP), certify(OWNER, PHONE)]
HEADS: Final = sorted([bytes(FOUND.id), *(bytes(s.id) for s in CERTIFICATES)])
MANY_HASHES: Final = sorted(seeded(f"vectors, hash {n}") for n in range(DEPS_MAX + 1))
# The identity of the curve: under it one signature verifies any message where nobody refuses it.
SMALL_ORDER_KEY: Final = b"\x01" + bytes(31)
SMALL_ORDER_SIGNATURE: Final = SMALL_ORDER_KEY + bytes(32)


def incarnation(name: str) -> Incarnation:
    """A fixed incarnation."""
    return Incarnation(seeded(f"vectors, incarnation {name}", INCARNATION_BYTES))


def salt(name: str) -> bytes:
    """A fixed salt."""
    return seeded(f"vectors, salt {name}", SALT_BYTES)


LOG: Final = LogId(LAPTOP.device, incarnation("first"))


class Writer:
    """Writes entries of one log; any header field can be given another value before signing."""

    def __init__(self, key: DeviceKey = LAPTOP, name: str = "first") -> None:
        self.key = key
        self.log = LogId(key.device, incarnation(name))
        self.name = name
        self.seq, self.prev = 0, NO_PREV
        self.made: list[EntryHash] = []
        self.changes: dict[EntryHash, bytes] = {}
        self.documents: dict[RecordId, RecordDocument] = {}

    def entry(
        self,
        payload: bytes,
        *,
        kind: int = PayloadKind.OPS,
        record: bytes = NO_RECORD,
        deps: Sequence[bytes] = (),
        left: int = 0,
        send: bytes | None = b"payload",
        domain: bytes = ENTRY_DOMAIN,
        signed: bool | None = None,
        **other: Any,
    ) -> RawEntry:
        """The next entry; ``send`` None or other bytes is what travels instead of the payload."""
        fields: dict[str, Any] = {
            "version": 1,
            "agent": bytes(AGENT),
            "device": bytes(self.key.device),
            "incarnation": bytes(self.log.incarnation),
            "seq": self.seq + 1,
            "prev": bytes(self.prev),
            "record": bytes(record),
            "payload_kind": int(kind),
            "payload_hash": hash256(payload),
            "payload_len": len(payload),
            "deps": [bytes(d) for d in sorted(deps)],
            "wall_ms": WALL_MS + self.seq,
            "via": int(Via.AGENT),
            "commit_left": left,
        }
        assert other.keys() <= fields.keys()
        header = codec.pack(list((fields | other).values()))
        found = hash256(header)
        if signed is None:
            signed = left == 0 or kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        signature = self.key.sign(domain, found) if signed else b""
        self.seq, self.prev = fields["seq"], EntryHash(found)
        self.made.append(self.prev)
        return RawEntry(header, payload if send == b"payload" else send, signature)

    def open(self, **other: Any) -> RawEntry:
        """The opening."""
        return self.entry(encode_open(HEADS), kind=PayloadKind.OPEN, via=int(Via.LOCAL), **other)

    def next_id(self) -> RecordId:
        """The id of the record that the next entry creates."""
        return author_bound_id(AGENT, self.log, self.seq + 1, WALL_MS + self.seq)

    def create(self, text: str, *, record: RecordId | None = None, **other: Any) -> RawEntry:
        """A new observation."""
        record = record or self.next_id()
        return self.change(record, [], observation(text), **other)

    def change(
        self, record: RecordId, deps: Sequence[EntryHash], ops: Sequence[Op], **other: Any
    ) -> RawEntry:
        """Operations on a record, with the hash of the change that they make."""
        document = self.documents.setdefault(record, RecordDocument())
        salted = salt(f"{self.name} {self.seq + 1}")
        actor = actor_id(AGENT, self.log, self.seq + 1, salted)
        made = document.apply(frozenset(self.changes[d] for d in deps), actor, _sorted(ops))
        assert made is not None
        payload = encode_ops(salted, list(ops), made)
        raw = self.entry(payload, record=record, deps=deps, **other)
        self.changes[self.prev] = made
        return raw

    def tombstone(self, erased: RecordId, **other: Any) -> RawEntry:
        """The erasure of a record."""
        payload = encode_tombstone(erased, "person", [])
        given: dict[str, Any] = {
            "kind": PayloadKind.TOMBSTONE,
            "record": tombstone_id(AGENT, erased),
        }
        return self.entry(payload, **given | other)


def observation(text: str) -> list[Op]:
    """What creates an observation."""
    return [
        put("kind", "observation"),
        put("body.text", text),
        put("body.category", "fact"),
        put("body.provenance", "user"),
        put("field.layer", "day"),
        put("field.weight", 1.0),
        put("tag.vectors", seeded("vectors, tag", 8)),
    ]


def _sorted(ops: Sequence[Op]) -> list[Op]:
    return sorted(ops, key=lambda op: op.key.encode())


def header_of(raw: RawEntry) -> Header:
    """The header of an entry that is well-formed."""
    return decode_header(raw.header)
