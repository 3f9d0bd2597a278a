"""The floor: a bare loop over the work that no receiver can avoid, without any structure.

Per entry: canonical header and payload, their hashes, the Automerge change made again and compared,
the value's fingerprint and its words; then the rows that reading needs, in the tables of the real
schema: log, record, version, tag, fingerprint and word index. Per run one signature and one durable
commit. It judges nothing, folds nothing and compares no records with others: what a real receiver
adds to this is its price.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import keys.codec as codec
from crdt.document import RecordDocument
from crdt.entry import Header, PayloadKind, actor_id, decode_header
from crdt.fingerprint import FingerprintKey, normalise
from crdt.log import ServedRun
from crdt.payload import decode_ops
from keys.ids import hash256
from keys.signing import ENTRY_DOMAIN, verify
from memory import schema
from memory.door import open_connection
from memory.terms import index_terms

_COLUMNS = (
    "n, record, kind, state, own, live, text, category, provenance, layer, weight, created_ms,"
    " changed_ms, device, via, detail, base_hash"
)
_INSERTS = {
    "entry": "INSERT INTO entry VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL)",
    "record": f"INSERT INTO record ({_COLUMNS}) VALUES ({', '.join('?' * 17)})",
    "version": "INSERT INTO version VALUES (?, 1, ?, ?, 'new', ?, ?, '', ?)",
    "tag": "INSERT INTO tag VALUES (?, ?)",
    "print": "INSERT INTO print VALUES (?, ?, 0)",
    "words": "INSERT INTO words (rowid, terms) VALUES (?, ?)",
}
_LOG = (
    "INSERT INTO log (id, device, incarnation, heads, tip_seq, tip_hash)"
    " VALUES (1, ?, ?, x'', 0, x'')"
)
Rows = dict[str, list[tuple[Any, ...]]]


def floor_seconds(folder: Path, agent: bytes, key: FingerprintKey, runs: list[ServedRun]) -> float:
    """Seconds for the bare loop over ``runs``, which are of one log."""
    db = open_connection(folder / "floor.db")
    schema.migrate(db, schema.AGENT_MIGRATIONS)
    header = decode_header(runs[0].entries[0].raw.header)
    db.execute(_LOG, (header.device, header.incarnation))
    start = time.perf_counter()
    for run in runs:
        _one_run(db, agent, key, run)
    seconds = time.perf_counter() - start
    db.close()
    return seconds


def _one_run(db: sqlite3.Connection, agent: bytes, key: FingerprintKey, run: ServedRun) -> None:
    rows: Rows = {table: [] for table in _INSERTS}
    last = None
    for served in run.entries:
        raw = served.raw
        header = decode_header(raw.header)
        last = (header, raw.signature)
        assert raw.payload is not None
        assert hash256(raw.payload) == header.payload_hash
        rows["entry"].append(
            (
                header.seq,
                header.seq,
                header.hash,
                raw.header,
                raw.payload,
                raw.signature,
                header.record,
                header.payload_kind,
                len(raw.header) + len(raw.payload),
                header.wall_ms,
            )
        )
        if header.payload_kind == PayloadKind.OPS:
            _one_entry(rows, agent, key, header, raw.payload)
    assert last is not None
    verify(last[0].device, ENTRY_DOMAIN, last[0].hash, last[1])
    db.execute("BEGIN IMMEDIATE")
    for table, sql in _INSERTS.items():
        db.executemany(sql, rows[table])
    db.execute("COMMIT")


def _one_entry(rows: Rows, agent: bytes, key: FingerprintKey, header: Header, data: bytes) -> None:
    payload = decode_ops(data)
    actor = actor_id(agent, header.log, header.seq, payload.salt)
    assert RecordDocument().apply(frozenset(), actor, payload.ops) == payload.change_hash
    values, n, ms = {op.key: op.value for op in payload.ops}, header.seq, header.wall_ms
    text, kind = str(values["body.text"]), values["kind"]
    fields = (values["body.category"], values["body.provenance"], values["field.layer"])
    content = codec.pack([values["field.layer"], values["field.weight"]])
    base = hash256(content + text.encode())[:16]
    head = (n, header.record, kind, "new", "new", 1, text, *fields, values["field.weight"])
    rows["record"].append((*head, ms, ms, header.device, header.via, content, base))
    rows["version"].append((n, header.hash, ms, header.device, header.via, content))
    rows["tag"] += [(name[4:], n) for name in values if name.startswith("tag.")]
    rows["print"].append((key.fingerprint(normalise(text)).mac, n))
    rows["words"].append((n, index_terms(text)))
