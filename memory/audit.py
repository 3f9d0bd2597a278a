"""Proving the log, and reading it: the signed log is the audit log."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from crdt.chain import verify_run
from crdt.entry import PayloadKind, Via, decode_header
from crdt.log import Stretch
from keys.errors import BadInput
from keys.ids import DeviceId, RecordId, StatementId
from keys.limits import RUN_BYTES_TARGET
from keys.statements import parse
from memory.logs import ZERO
from memory.store import AgentStore

ROWS_PER_STEP = 500


@dataclass(slots=True)
class Audit:
    """What a verification found."""

    logs: int = 0
    entries: int = 0
    erased: int = 0
    damage: list[str] = field(default_factory=list)
    drift: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All that is wrong: ``damage`` of the log, and ``drift`` of the read model from it."""
        return self.damage + self.drift


def verify_log(store: AgentStore) -> Audit:
    """Verify every statement, hash, chain, commit and held signature of one agent, from the bytes.

    Also that the read model is the log's (S-G6).
    """
    audit = Audit()
    for _ in verify_steps(store, audit):
        pass
    return audit


def verify_steps(store: AgentStore, audit: Audit) -> Iterator[None]:
    """The same in steps of one run each, so that other work can be done in between.

    Entries that arrive meanwhile may or may not be looked at.
    """
    _verify_statements(store, audit)
    for row in store.logs.rows():
        audit.logs += 1
        for tip in store.logs.tips(row):
            rest: Stretch | None = Stretch(row.log, ZERO, tip)
            try:
                while rest is not None:
                    run, rest = store.read_run(rest, RUN_BYTES_TARGET)
                    verify_run(store.agent, [e.raw for e in run.entries])
                    yield
            except (BadInput, AssertionError) as exc:
                audit.damage.append(f"log {row.log}: {exc}")
    yield
    audit.entries = store.connection.execute("SELECT count(*) FROM entry").fetchone()[0]
    audit.erased = store.connection.execute(
        "SELECT count(*) FROM entry WHERE payload IS NULL AND EXISTS (SELECT 1 FROM tombstone AS t"
        " WHERE t.record = entry.record AND t.effective = 1)"
    ).fetchone()[0]
    yield from _drift_steps(store, audit)


def _verify_statements(store: AgentStore, audit: Audit) -> None:
    for statement, data, signature in store.connection.execute(
        "SELECT id, data, signature FROM statement"
    ):
        try:
            found = parse(data, signature)
        except BadInput as exc:
            audit.damage.append(f"statement {StatementId(statement).short()}: {exc}")
        else:
            if found.id != statement:
                audit.damage.append(f"statement {StatementId(statement).short()}: another's id")


def _drift_steps(store: AgentStore, audit: Audit) -> Iterator[None]:
    """Where the read model is not what the log gives: a cheap look, without folding anything.

    Every row is hashed again and compared with the hash it was written with; records and entries,
    words, tags and versions are counted against one another.
    """
    for what, sql in _DRIFT.items():
        if what is _MISSING and store.waiting_for_key:
            continue  # what came meanwhile is folded when the key is here (R25)
        number = store.connection.execute(sql).fetchone()[0]
        if number:
            audit.drift.append(f"{number} {what}")
        yield
    changed = 0
    after: int | None = 0
    while after is not None:
        found, after = store.folder.tables.unlike_their_hash(after, ROWS_PER_STEP)
        changed += found
        yield
    if changed:
        audit.drift.append(f"{changed} records are not as they were folded")


_MISSING: Final = "records of the log are missing"
_DRIFT: Final = {
    "erased entries still have their payload": (
        "SELECT count(*) FROM entry WHERE payload IS NOT NULL AND payload_kind NOT IN (0, 2)"
        " AND EXISTS (SELECT 1 FROM tombstone AS t WHERE t.record = entry.record"
        " AND t.effective = 1 AND t.chained = 1)"
    ),
    "records have no entry in the log": (
        "SELECT count(*) FROM record WHERE own <> 'erased' AND NOT EXISTS"
        " (SELECT 1 FROM entry WHERE entry.record = record.record)"
    ),
    _MISSING: (
        "SELECT count(DISTINCT record) FROM entry WHERE reason IS NULL"
        " AND payload_kind NOT IN (0, 2) AND NOT EXISTS"
        " (SELECT 1 FROM record WHERE record.record = entry.record)"
    ),
    "records are shown, or not, against their state": (
        "SELECT count(*) FROM record WHERE live <> (state IN ('new', 'current')"
        " AND duplicate IS NULL)"
    ),
    "records are called what their own facts do not say": (
        "SELECT count(*) FROM record AS r WHERE state <> own"
        " AND state NOT IN ('withheld', 'returning') AND NOT (state = 'proposed'"
        " AND own IN ('new', 'current') AND EXISTS"  # made from something that waits
        " (SELECT 1 FROM link WHERE link.n = r.n AND what = 'source'))"
    ),
    "records more or less in the word index": (
        "SELECT abs((SELECT count(*) FROM record WHERE text <> '' AND state IN ('new', 'current'))"
        " - (SELECT count(*) FROM words_docsize)) + abs((SELECT count(*) FROM record"
        " WHERE text <> '' AND state NOT IN ('new', 'current'))"
        " - (SELECT count(*) FROM withheld_words_docsize))"
    ),
}


def log_lines(
    store: AgentStore, *, record: RecordId | None, device: DeviceId | None, limit: int
) -> list[dict[str, Any]]:
    """Entries of the log, newest arrival first: who wrote, when, about which record; never what."""
    rows = store.connection.execute(
        "SELECT header, payload IS NULL, reason, time_ms FROM entry JOIN log ON log.id = entry.log"
        " WHERE (?1 IS NULL OR record = ?1) AND (?2 IS NULL OR device = ?2)"
        " ORDER BY entry.id DESC LIMIT ?3",
        (record, device, limit),
    )
    out = []
    for data, gone, reason, time_ms in rows:
        header = decode_header(data)
        known = header.payload_kind in PayloadKind.__members__.values()
        out.append(
            {
                "entry": str(header.hash),
                "device": str(header.device),
                "log": str(header.log),
                "seq": header.seq,
                "record": str(header.record),
                "kind": PayloadKind(header.payload_kind).name.lower() if known else "unknown",
                "via": Via(header.via).name.lower(),
                "time_ms": time_ms,
                "payload": "gone" if gone else "here",
                "reason": reason,
            }
        )
    return out


def count_records(store: AgentStore) -> int:
    """Records held that are not erased."""
    return int(
        store.connection.execute("SELECT count(*) FROM record WHERE own <> 'erased'").fetchone()[0]
    )


def count_wants(store: AgentStore) -> int:
    """How many payloads are nowhere here."""
    found = store.connection.execute(
        "SELECT count(*) FROM entry WHERE payload IS NULL AND NOT EXISTS (SELECT 1"
        " FROM tombstone AS t WHERE t.record = entry.record AND t.effective = 1)"
    )
    return int(found.fetchone()[0])


def note_unclean(store: AgentStore, *, unclean: bool) -> None:
    """Keep in mind that the file was not closed as it should, so that it is to be looked through.

    Where there is no room for that, the next start finds the same signs.
    """
    with contextlib.suppress(sqlite3.OperationalError):
        if unclean:
            store.connection.execute("INSERT OR REPLACE INTO meta VALUES ('unclean', x'01')")
        else:
            store.connection.execute("DELETE FROM meta WHERE key = 'unclean'")


def is_unclean(store: AgentStore) -> bool:
    """Whether the file is still to be looked through."""
    found = store.connection.execute("SELECT 1 FROM meta WHERE key = 'unclean'")
    return found.fetchone() is not None


def file_steps(store: AgentStore, audit: Audit) -> Iterator[None]:
    """SQLite's own check of the file, in steps of one table; what is wrong is ``damage``."""
    tables = store.connection.execute(
        "SELECT 'sqlite_schema' UNION ALL"
        " SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    ).fetchall()
    for (table,) in tables:
        found = store.connection.execute("SELECT * FROM pragma_quick_check(?)", (table,)).fetchone()
        if found[0] != "ok":
            audit.damage.append(f"{table}: {found[0]}")
        yield
