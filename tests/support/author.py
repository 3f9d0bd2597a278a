"""Signed statements and logs, made the way a node makes them, for tests that need real ones."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from crdt.chain import RawEntry, VerifiedRun, verify_run
from crdt.entry import (
    NO_PREV,
    NO_RECORD,
    LogId,
    PayloadKind,
    Via,
    author_bound_id,
    make_header,
    tombstone_id,
)
from crdt.log import Tip
from crdt.payload import encode_open, encode_ops, encode_tombstone, put
from keys.ids import AgentId, EntryHash, Incarnation, RecordId
from keys.limits import HASH_BYTES, INCARNATION_BYTES, SALT_BYTES
from keys.signing import ENTRY_DOMAIN, DeviceKey, OwnerKey
from keys.statements import Statement, agent_of, device_proof, sign

WALL_MS = 1_700_000_000_000


def seeded(name: str, size: int = 32) -> bytes:
    """Bytes that are the same for the same name."""
    return blake2b(name.encode(), digest_size=size).digest()


def device_key(name: str) -> DeviceKey:
    """The device key of a name."""
    return DeviceKey(seeded("device " + name))


def owner_key(name: str) -> OwnerKey:
    """The owner key of a name."""
    return OwnerKey(seeded("owner " + name))


def founding(owner: OwnerKey, name: str = "notes") -> Statement:
    """The founding statement of an agent."""
    body = {
        "owner": owner.public,
        "name": name,
        "nonce": seeded("nonce " + name, 16),
        "recovery": b"",
        "key": seeded("key " + name),
        "wall_ms": WALL_MS,
    }
    return sign(owner, "found", body, agent=b"", after=[])


def certify(owner: OwnerKey, device: DeviceKey, after: Sequence[bytes] = ()) -> Statement:
    """A certificate: ``device`` is one of the owner's."""
    body = {
        "owner": owner.public,
        "device": device.public,
        "name": "device",
        "proof": device_proof(device, owner.public),
        "wall_ms": WALL_MS,
    }
    return sign(owner, "certify", body, agent=b"", after=list(after))


def grant(
    owner: OwnerKey, agent: AgentId, device: DeviceKey, rights: list[str], after: Sequence[bytes]
) -> Statement:
    """A grant of ``rights`` to a device."""
    body = {
        "subject_kind": "device",
        "subject": device.public,
        "rights": sorted(rights),
        "recovery": b"",
        "sealed": [],
        "until_ms": 0,
        "wall_ms": WALL_MS,
    }
    return sign(owner, "grant", body, agent=agent, after=list(after))


def revoke(
    owner: OwnerKey, agent: AgentId, device: DeviceKey, rights: list[str], after: Sequence[bytes]
) -> Statement:
    """A revocation that cuts every log of the device at 0."""
    body = {
        "subject_kind": "device",
        "subject": device.public,
        "rights": sorted(rights),
        "cuts": [],
        "keep": [],
        "keeps": [],
        "replaces": [],
        "key": seeded("another key"),
        "wall_ms": WALL_MS,
    }
    return sign(owner, "revoke", body, agent=agent, after=list(after))


class Author:
    """Writes one log; ``clone`` gives a second writer of it, as a copied machine would be."""

    def __init__(
        self, agent: AgentId, key: DeviceKey, heads: Sequence[bytes], incarnation: str = "first"
    ) -> None:
        self.agent = agent
        self.key = key
        self.log = LogId(key.device, Incarnation(seeded(incarnation, INCARNATION_BYTES)))
        self.heads = list(heads)
        self.raw: list[RawEntry] = []
        self.tip = Tip(0, NO_PREV)
        self.records: list[RecordId] = []

    def clone(self) -> Author:
        """Another writer of the same log, from here on."""
        twin = Author(self.agent, self.key, self.heads)
        twin.log, twin.raw, twin.tip = self.log, list(self.raw), self.tip
        twin.records = list(self.records)
        return twin

    def open(self) -> VerifiedRun:
        """The first entry."""
        return self._commit([(PayloadKind.OPEN, NO_RECORD, encode_open(self.heads))])

    def write(self, *texts: str) -> VerifiedRun:
        """One commit that creates one record for each text."""
        items = []
        for i, text in enumerate(texts):
            record = author_bound_id(self.agent, self.log, self.tip.seq + 1 + i, WALL_MS)
            salt = seeded(f"salt {text}", SALT_BYTES)
            payload = encode_ops(salt, [put("body.text", text)], bytes(HASH_BYTES))
            items.append((PayloadKind.OPS, record, payload))
            self.records.append(record)
        return self._commit(items)

    def forget(self, record: RecordId) -> VerifiedRun:
        """One commit that erases a record."""
        payload = encode_tombstone(record, "person", [])
        return self._commit([(PayloadKind.TOMBSTONE, tombstone_id(self.agent, record), payload)])

    def run(self, first: int, last: int) -> list[RawEntry]:
        """The entries from one seq to another, both included."""
        return self.raw[first - 1 : last]

    def _commit(self, items: Sequence[tuple[int, RecordId, bytes]]) -> VerifiedRun:
        entries = []
        for i, (kind, record, payload) in enumerate(items):
            left = len(items) - 1 - i
            header = make_header(
                self.agent,
                self.log,
                self.tip.seq + 1,
                self.tip.hash,
                record=record,
                payload_kind=kind,
                payload=payload,
                deps=[],
                wall_ms=WALL_MS,
                via=Via.PERSON,
                commit_left=left,
            )
            signed = left == 0 or kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
            signature = self.key.sign(ENTRY_DOMAIN, header.hash) if signed else b""
            entries.append(RawEntry(header.data, payload, signature))
            self.tip = Tip(header.seq, EntryHash(header.hash))
        self.raw += entries
        return verify_run(self.agent, entries)


class Family:
    """An owner, the agent that owner founded, and the statements that let its devices write."""

    def __init__(self, *devices: str) -> None:
        self.owner = owner_key("alice")
        found = founding(self.owner)
        self.agent = agent_of(found)
        self.devices = {name: device_key(name) for name in devices}
        self.statements = [found]
        for key in self.devices.values():
            self.statements.append(certify(self.owner, key, self.heads))

    @property
    def heads(self) -> list[bytes]:
        """The newest statement, which every other is before."""
        return [bytes(self.statements[-1].id)]

    def author(self, device: str, incarnation: str = "first") -> Author:
        """A new log of one of the devices."""
        return Author(self.agent, self.devices[device], self.heads, incarnation)
