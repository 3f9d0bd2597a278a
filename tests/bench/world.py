"""An agent with one writer and empty readers, for the benches: the real store, real files."""

from __future__ import annotations

from pathlib import Path

from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from keys import statements
from keys.ids import AgentId
from keys.signing import DeviceKey, OwnerKey, random_bytes
from memory.authoring import Author
from memory.door import open_connection
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember_batch

BATCH = 500


class World:
    """A founded agent and the keys of its devices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner, self.key = OwnerKey.generate(), FingerprintKey(random_bytes(32))
        self.devices: list[DeviceKey] = [DeviceKey.generate() for _ in range(3)]
        found = statements.sign(
            self.owner,
            "found",
            {
                "owner": self.owner.public,
                "name": "bench",
                "nonce": random_bytes(16),
                "recovery": b"",
                "key": self.key.commitment,
                "wall_ms": 1,
            },
            agent=b"",
            after=[],
        )
        self.agent: AgentId = statements.agent_of(found)
        self.statements = [found, *(self._certificate(d) for d in self.devices)]

    def _certificate(self, device: DeviceKey) -> statements.Statement:
        body = {
            "owner": self.owner.public,
            "device": device.public,
            "name": "bench",
            "proof": statements.device_proof(device, self.owner.public),
            "wall_ms": 1,
        }
        return statements.sign(self.owner, "certify", body, agent=b"", after=[])

    def open(self, number: int) -> tuple[AgentStore, Author]:
        """The store and the author of one device."""
        key = self.devices[number]
        connection = open_connection(self.folder / f"{number}.db")
        store = AgentStore(connection, self.agent, [self.key], key.device)
        store.add_statements(self.statements)
        return store, Author(store, key)


def note(i: int) -> Note:
    """A small memory of realistic length; every one differs."""
    return Note(
        text=f"On day {i} the visitor asked about shelf {i % 97} and left before noon, note {i}",
        tags=(f"topic{i % 7}",),
    )


def fill(author: Author, count: int, now_us: int) -> None:
    """Write ``count`` records in batches."""
    for i in range(0, count, BATCH):
        notes = [note(j) for j in range(i, min(i + BATCH, count))]
        done = remember_batch(author, notes, Via.LOCAL, now_us + i)
        assert not done.refused
