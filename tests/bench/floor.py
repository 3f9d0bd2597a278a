"""The floor: a bare loop over the work that no receiver can avoid, without any structure.

Per entry: canonical header and payload, their hashes, the Automerge change made again and compared,
its values read, the value's fingerprint, one row each in log, record, version, tag, fingerprint and
word index; per run one signature and one durable commit. What a real receiver adds is its price.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from crdt.document import RecordDocument
from crdt.entry import PayloadKind, actor_id, decode_header
from crdt.fingerprint import FingerprintKey, normalise
from crdt.log import ServedRun
from crdt.payload import decode_ops
from keys.ids import hash256
from keys.signing import ENTRY_DOMAIN, verify
from memory.door import open_connection

_TABLES = """
CREATE TABLE entry (seq INTEGER PRIMARY KEY, hash BLOB, header BLOB, payload BLOB, record BLOB);
CREATE INDEX entry_record ON entry (record);
CREATE TABLE record (n INTEGER PRIMARY KEY, record BLOB UNIQUE, text TEXT, layer TEXT, weight REAL);
CREATE TABLE version (n INTEGER, entry BLOB, content TEXT, PRIMARY KEY (n, entry)) WITHOUT ROWID;
CREATE TABLE tag (tag TEXT, n INTEGER, PRIMARY KEY (tag, n)) WITHOUT ROWID;
CREATE TABLE print (mac BLOB, n INTEGER, PRIMARY KEY (mac, n)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (terms, content = '', tokenize = 'porter unicode61');
"""


def floor_seconds(folder: Path, agent: bytes, key: FingerprintKey, runs: list[ServedRun]) -> float:
    """Seconds for the bare loop over ``runs``."""
    db = open_connection(folder / "floor.db")
    db.executescript(_TABLES)
    start = time.perf_counter()
    for run in runs:
        _one_run(db, agent, key, run)
    seconds = time.perf_counter() - start
    db.close()
    return seconds


def _one_run(db: sqlite3.Connection, agent: bytes, key: FingerprintKey, run: ServedRun) -> None:
    entries, records, versions, tags, prints, words = [], [], [], [], [], []
    last = None
    for served in run.entries:
        raw = served.raw
        header = decode_header(raw.header)
        last = (header, raw.signature)
        assert raw.payload is not None
        assert hash256(raw.payload) == header.payload_hash
        entries.append((header.seq, header.hash, raw.header, raw.payload, header.record))
        if header.payload_kind != PayloadKind.OPS:
            continue
        payload = decode_ops(raw.payload)
        document = RecordDocument()
        actor = actor_id(agent, header.log, header.seq, payload.salt)
        assert document.apply(frozenset(), actor, payload.ops) == payload.change_hash
        values, n = document.values(), header.seq
        text = str(values["body.text"])
        records.append((n, header.record, text, values["field.layer"], values["field.weight"]))
        versions.append((n, header.hash, str(values["field.layer"])))
        tags += [(name[4:], n) for name in values if name.startswith("tag.")]
        prints.append((key.fingerprint(normalise(text)).mac, n))
        words.append((n, text))
    assert last is not None
    verify(last[0].device, ENTRY_DOMAIN, last[0].hash, last[1])
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", entries)
    db.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?)", records)
    db.executemany("INSERT INTO version VALUES (?, ?, ?)", versions)
    db.executemany("INSERT INTO tag VALUES (?, ?)", tags)
    db.executemany("INSERT INTO print VALUES (?, ?)", prints)
    db.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", words)
    db.execute("COMMIT")
