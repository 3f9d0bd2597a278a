"""A process that writes until it is killed, and says after each commit what it has committed.

Started once: for each line ``path seed`` on standard input it forks a writer of that file and
prints the writer's pid. A writer prints ``ack SEQ HASH RECORD`` once its transaction has ended.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from keys.ids import AgentId, RecordId
from keys.signing import DeviceKey
from keys.statements import Statement, agent_of
from memory.authoring import Author
from memory.door import open_connection
from memory.forgetting import forget, reach_of
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import mark, remember_batch, revise
from tests.support.author import certify, device_key, founding, owner_key, seeded
from tests.support.founding import replace_key

KEY = FingerprintKey(seeded("the key of what is killed"))
DEVICE = "killed"


def statements() -> list[Statement]:
    """The agent's statements: a founding, and the certificate of the device."""
    owner = owner_key("alice")
    found = replace_key(founding(owner), owner, KEY)
    return [found, certify(owner, device_key(DEVICE), [bytes(found.id)])]


def open_author(path: Path) -> Author:
    """The writer of a file; the file is made when it is not there."""
    key: DeviceKey = device_key(DEVICE)
    known = statements()
    agent: AgentId = agent_of(known[0])
    store = AgentStore(open_connection(path), agent, [KEY], key.device)
    store.add_statements(known)
    return Author(store, key)


class Writer:
    """Writes, changes and forgets at random; acknowledges each commit."""

    def __init__(self, path: Path, seed: int) -> None:
        self.author, self.random = open_author(path), random.Random(seed)
        self.now_us = 1_700_000_000_000_000 + seed
        found = self.author.store.connection.execute("SELECT record FROM record WHERE live = 1")
        self.live = [RecordId(r) for (r,) in found]

    def step(self) -> None:
        """One act and its acknowledgement."""
        self.now_us += 1000
        what = self.random.random()
        record = self.live[self.random.randrange(len(self.live))] if self.live else None
        if record is None or what < 0.5:
            self._remember(self.random.randrange(1, 5))
        elif what < 0.65:
            text = f"revised {self.random.random()}"
            new = revise(self.author, record, text, "why", via=Via.LOCAL, now_us=self.now_us)
            self._moved(record, new.record)
        elif what < 0.8:
            mark(self.author, record, "deprecated", "why", via=Via.LOCAL, now_us=self.now_us)
            self._moved(record)
        else:
            reach = reach_of(self.author.store, [record])
            forget(
                self.author,
                reach,
                with_sources=False,
                reason="why",
                via=Via.LOCAL,
                now_us=self.now_us,
            )
            self._moved(record)
            self.author.store.clean()
        self._acknowledge(record or self.live[0])

    def _remember(self, count: int) -> None:
        notes = [Note(f"{self.random.random()} {'x' * 2000}") for _ in range(count)]
        result = remember_batch(self.author, notes, Via.LOCAL, self.now_us)
        self.live += [w.record for w in result.written]

    def _moved(self, record: RecordId, *new: RecordId) -> None:
        self.live = [r for r in self.live if r != record] + list(new)

    def _acknowledge(self, record: RecordId) -> None:
        (log,) = self.author.store.logs.rows()
        line = f"ack {log.tip.seq} {log.tip.hash.hex()} {record.hex()}\n"
        os.write(1, line.encode())


def main() -> None:
    """Fork a writer for each line; it never returns."""
    for line in sys.stdin:
        path, seed = line.rsplit(" ", 1)
        pid = os.fork()
        if not pid:
            writer = Writer(Path(path), int(seed))
            os.write(1, b"ready\n")
            while True:
                writer.step()
        os.write(1, f"pid {pid}\n".encode())
        os.waitpid(pid, 0)
        os.write(1, b"dead\n")


if __name__ == "__main__":
    main()
