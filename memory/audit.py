"""Proving the log, and reading it: the signed log is the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crdt.chain import verify_run
from crdt.entry import PayloadKind, Via, decode_header
from crdt.log import Stretch
from keys.errors import BadInput
from keys.ids import DeviceId, EntryHash, RecordId, StatementId
from keys.limits import RUN_BYTES_TARGET
from keys.statements import parse
from memory.logs import ZERO
from memory.store import AgentStore

SET_ASIDE_MAX = 10_000


@dataclass(slots=True)
class Audit:
    """What a verification found."""

    logs: int = 0
    entries: int = 0
    erased: int = 0
    problems: list[str] = field(default_factory=list)


def verify_log(store: AgentStore) -> Audit:
    """Verify every statement, hash, chain, commit and held signature of one agent, from the bytes.

    Also that what is missing a payload is erased by a tombstone, or is asked for.
    """
    audit = Audit()
    _verify_statements(store, audit)
    for row in store.logs.rows():
        audit.logs += 1
        for tip in store.logs.tips(row):
            rest: Stretch | None = Stretch(row.log, ZERO, tip)
            try:
                while rest is not None:
                    run, rest = store.read_run(rest, RUN_BYTES_TARGET)
                    verify_run(store.agent, [e.raw for e in run.entries])
            except (BadInput, AssertionError) as exc:
                audit.problems.append(f"log {row.log}: {exc}")
    audit.entries = store.connection.execute("SELECT count(*) FROM entry").fetchone()[0]
    audit.erased = store.connection.execute(
        "SELECT count(*) FROM entry WHERE payload IS NULL AND EXISTS (SELECT 1 FROM tombstone AS t"
        " WHERE t.record = entry.record AND t.effective = 1)"
    ).fetchone()[0]
    _verify_model(store, audit)
    return audit


def _verify_statements(store: AgentStore, audit: Audit) -> None:
    for statement, data, signature in store.connection.execute(
        "SELECT id, data, signature FROM statement"
    ):
        try:
            found = parse(data, signature)
        except BadInput as exc:
            audit.problems.append(f"statement {StatementId(statement).short()}: {exc}")
        else:
            if found.id != statement:
                audit.problems.append(f"statement {StatementId(statement).short()}: another's id")


def _verify_model(store: AgentStore, audit: Audit) -> None:
    """Nothing erased still has a payload, and every record shown has entries."""
    kept = store.connection.execute(
        "SELECT count(*) FROM entry WHERE payload IS NOT NULL AND payload_kind NOT IN (0, 2)"
        " AND EXISTS (SELECT 1 FROM tombstone AS t WHERE t.record = entry.record"
        " AND t.effective = 1 AND t.chained = 1)"
    ).fetchone()[0]
    if kept:
        audit.problems.append(f"{kept} erased entries still have their payload")
    orphans = store.connection.execute(
        "SELECT count(*) FROM record WHERE own <> 'erased' AND NOT EXISTS"
        " (SELECT 1 FROM entry WHERE entry.record = record.record)"
    ).fetchone()[0]
    if orphans:
        audit.problems.append(f"{orphans} records have no entry in the log")


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


def set_aside(store: AgentStore) -> list[dict[str, Any]]:
    """Entries that are held and do not count, erased ones aside, each with its reason (R5)."""
    rows = store.connection.execute(
        "SELECT header, reason FROM entry WHERE reason IS NOT NULL AND reason <> 'erased'"
        " ORDER BY entry.id LIMIT ?",
        (SET_ASIDE_MAX,),
    )
    out = []
    for data, reason in rows:
        header = decode_header(data)
        out.append(
            {
                "entry": str(EntryHash(header.hash)),
                "record": str(header.record),
                "device": str(header.device),
                "seq": header.seq,
                "reason": reason,
            }
        )
    return out


def count_records(store: AgentStore) -> int:
    """Records held that are not erased."""
    return int(
        store.connection.execute("SELECT count(*) FROM record WHERE own <> 'erased'").fetchone()[0]
    )


def count_set_aside(store: AgentStore) -> int:
    """How many entries are held and do not count, erased ones aside."""
    return int(
        store.connection.execute(
            "SELECT count(*) FROM entry WHERE reason IS NOT NULL AND reason <> 'erased'"
        ).fetchone()[0]
    )


def quick_check(store: AgentStore) -> str:
    """SQLite's own check of the file: ``ok`` or what is wrong."""
    return str(store.connection.execute("PRAGMA quick_check(1)").fetchone()[0])
