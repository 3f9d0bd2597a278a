"""The read-model tables: reading what a fold needs, writing what it gives. SQL and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import keys.codec as codec
from crdt.payload import decode_tombstone
from memory.rows import LIVE_STATES, Row, VersionRow
from memory.shapes import names_of, owners_in
from memory.words import WordIndex, place_of

_COLUMNS: Final = (
    "n, record, kind, state, own, live, text, category, provenance, source, speaker, session,"
    " layer, weight, title, valid_from, valid_to, expires, created_ms, changed_ms, device, via,"
    " detail, base_hash"
)
_INSERT: Final = (
    f"INSERT OR REPLACE INTO record ({_COLUMNS})"  # noqa: S608 - a constant list of columns
    f" VALUES ({', '.join('?' * 24)})"
)


class EntryRow(NamedTuple):
    """An entry as a fold reads it; ``reason`` is why it did not materialise when last folded."""

    hash: bytes
    header: bytes
    payload: bytes | None
    time_ms: int
    reason: str | None


class Old(NamedTuple):
    """What the tables held of a record before."""

    n: int | None
    own: str
    text: str
    counts: bool  # as a successor: it is there, and no proposal


VALUES_PER_SELECT: Final = 512
_ANY_ID: Final = 2**63 - 1
NEVER_SEEN: Final = Old(None, "", "", counts=False)


def select_in(
    connection: sqlite3.Connection, select: str, values: Collection[bytes], *arguments: object
) -> Iterator[Any]:
    """The rows of ``select``, a statement that ends in ``IN``, for any number of ``values``.

    ``arguments`` are those that come before.
    """
    wanted = list(values)
    for i in range(0, len(wanted), VALUES_PER_SELECT):
        part = wanted[i : i + VALUES_PER_SELECT]
        yield from connection.execute(
            f"{select} ({', '.join('?' * len(part))})", (*arguments, *part)
        )


class Tables:
    """Statements on the read-model tables, inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self.words = WordIndex(connection)

    # -- for folding -----------------------------------------------------------------------------

    def entries(self, record: bytes) -> list[EntryRow]:
        """A record's entries, tombstones aside."""
        return self.entries_of([record])[record]

    def entries_of(
        self, records: Collection[bytes], before: int = _ANY_ID
    ) -> dict[bytes, list[EntryRow]]:
        """The entries of each of ``records``, tombstones aside; of those ``before`` an id alone."""
        out: dict[bytes, list[EntryRow]] = {record: [] for record in records}
        rows = select_in(
            self._db,
            "SELECT record, hash, header, payload, time_ms, reason FROM entry"
            " WHERE payload_kind NOT IN (0, 2) AND id < ? AND record IN",
            records,
            before,
        )
        for record, *row in rows:
            out[record].append(EntryRow(*row))
        return out

    def old(self, record: bytes) -> Old:
        """What the tables hold of a record now."""
        return self.olds([record]).get(record, NEVER_SEEN)

    def olds(self, records: Collection[bytes]) -> dict[bytes, Old]:
        """What the tables hold now of those of ``records`` that they hold."""
        rows = select_in(
            self._db, "SELECT record, n, own, text, detail FROM record WHERE record IN", records
        )
        return {
            record: Old(n, own, text, counts=not _is_proposal(own, detail))
            for record, n, own, text, detail in rows
        }

    def is_erased(self, record: bytes) -> bool:
        """Whether an effective tombstone with a verified place names the record (R30)."""
        return (
            self._db.execute(
                "SELECT 1 FROM tombstone WHERE record = ? AND effective = 1 AND chained = 1",
                (record,),
            ).fetchone()
            is not None
        )

    def erased_among(self, records: Collection[bytes]) -> set[bytes]:
        """Those of ``records`` that ``is_erased``."""
        rows = select_in(
            self._db,
            "SELECT record FROM tombstone WHERE effective = 1 AND chained = 1 AND record IN",
            records,
        )
        return {r[0] for r in rows}

    def any_withheld(self) -> bool:
        """Whether any tombstone is effective."""
        return (
            self._db.execute("SELECT 1 FROM tombstone WHERE effective = 1 LIMIT 1").fetchone()
            is not None
        )

    def is_withheld(self, record: bytes) -> bool:
        """Whether an effective tombstone names the record, its place verified or not."""
        return (
            self._db.execute(
                "SELECT 1 FROM tombstone WHERE record = ? AND effective = 1", (record,)
            ).fetchone()
            is not None
        )

    def tombstones_of(self, record: bytes) -> list[tuple[bytes, int, bytes, int, str]]:
        """(hash, record time, device, via, reason) of a record's effective tombstones."""
        found = self._db.execute(
            "SELECT hash, time_ms, device, header, reason FROM tombstone"
            " WHERE record = ? AND effective = 1 AND chained = 1 ORDER BY hash",
            (record,),
        )
        return [
            (h, t, device, codec.decode_small(header)[12], reason)
            for h, t, device, header, reason in found
        ]

    def linked(self, target: bytes, what: str) -> list[bytes]:
        """The records with a link of one kind to ``target``."""
        found = self._db.execute(
            "SELECT record.record FROM link JOIN record USING (n) WHERE target = ? AND what = ?",
            (target, what),
        )
        return [r[0] for r in found]

    def linked_to(self, targets: Collection[bytes], whats: Collection[str]) -> set[bytes]:
        """The records with a link of one of the kinds ``whats`` to any of ``targets``."""
        rows = select_in(
            self._db,
            "SELECT record.record, what FROM link JOIN record USING (n) WHERE target IN",
            targets,
        )
        return {record for record, what in rows if what in whats}

    def targets(self, record: bytes, what: str) -> list[bytes]:
        """What ``record`` links to."""
        found = self._db.execute(
            "SELECT target FROM link JOIN record USING (n) WHERE record = ? AND what = ?",
            (record, what),
        )
        return [r[0] for r in found]

    def macs(self, record: bytes) -> list[bytes]:
        """The fingerprints of a record, or those that its effective tombstones list."""
        found = self._db.execute(
            "SELECT mac FROM print JOIN record USING (n) WHERE record = ?", (record,)
        )
        return sorted({bytes(r[0]) for r in found} | self.listed(record))

    def listed(self, record: bytes) -> set[bytes]:
        """The fingerprints that a record's effective tombstones list, lifted or not."""
        stones = self._db.execute(
            "SELECT payload FROM tombstone WHERE record = ? AND effective = 1 AND chained = 1",
            (record,),
        )
        return {p.mac for (payload,) in stones for p in decode_tombstone(payload).prints}

    def author(self, record: bytes) -> bytes:
        """The device that created a record."""
        found = self._db.execute("SELECT device FROM record WHERE record = ?", (record,)).fetchone()
        return bytes(found[0]) if found else b""

    def drop_payloads(self, record: bytes) -> None:
        """Erase: no payload of the record stays, and the files must be cleaned (R34)."""
        gone = self._db.execute(
            "UPDATE entry SET payload = NULL WHERE record = ? AND payload IS NOT NULL"
            " AND payload_kind NOT IN (0, 2)",
            (record,),
        ).rowcount
        if gone:
            self._db.execute("INSERT OR IGNORE INTO cleaning VALUES (?, 0)", (record,))
        self._db.execute("DELETE FROM reinforced WHERE record = ?", (record,))

    def set_reasons(
        self,
        entries: Sequence[EntryRow],
        reasons: Mapping[bytes, str],
    ) -> None:
        """Write down why entries do not materialise, where that changed."""
        for entry, header, _, _, before in entries:
            reason = reasons.get(entry)
            if reason != before:
                seq, record = codec.decode_small(header)[4], codec.decode_small(header)[6]
                self._db.execute(
                    "UPDATE entry SET reason = ? WHERE record = ? AND seq = ? AND hash = ?",
                    (None if reason is None else str(reason), record, seq, entry),
                )

    def unlike_their_hash(self, after: int, limit: int) -> tuple[int, int | None]:
        """How many of the next ``limit`` records past ``after`` are not those of their hash.

        And where to go on; None at the end.
        """
        rows = self._db.execute(
            "SELECT n, base_hash, own, detail, kind, text, category, provenance, source,"
            " speaker, session, layer, weight, title, valid_from, valid_to, expires, created_ms,"
            " changed_ms, device, via FROM record WHERE n > ? ORDER BY n LIMIT ?",
            (after, limit),
        ).fetchall()
        unlike = 0
        for n, base, own, detail, *values in rows:
            tags = [r[0] for r in self._db.execute("SELECT tag FROM tag WHERE n = ?", (n,))]
            versions = self._db.execute(
                "SELECT entry, time_ms, state, device, via, reason, content FROM version"
                " WHERE n = ? ORDER BY version",
                (n,),
            )
            listed = [list(r) for r in versions]
            unlike += _base_hash(own, tuple(values), sorted(tags), listed, detail) != base
        return unlike, rows[-1][0] if rows else None

    # -- writing ---------------------------------------------------------------------------------

    def write(
        self,
        folded: Iterable[bytes],
        rows: Mapping[bytes, Row],
        old: Mapping[bytes, Old],
        prints: Mapping[bytes, tuple[list[bytes], bool]],
    ) -> None:
        """Make the tables hold exactly ``rows`` for the records of ``folded``."""
        top: int = self._db.execute("SELECT coalesce(max(n), 0) FROM record").fetchone()[0]
        fresh: list[tuple[int, Row, bool]] = []
        for record in folded:
            row, before = rows.get(record), old[record]
            indexed = before.n is not None and self._remove(before.n, row)
            if row is None:
                continue
            number = before.n
            if number is None:
                top += 1
                number = top
            fresh.append((number, row, indexed))
        self._insert(fresh, prints)

    def _remove(self, number: int, row: Row | None) -> bool:
        """Take a record's rows away; the versions go with the gate open (see the schema).

        Returns whether its words stay in the index because they stay the same.
        """
        place = self.words.place(number)
        same = row is not None and place == _place(row)
        if not same:
            self.words.take(number, place)
        for table in ("tag", "print", "link", "named", "turn"):
            self._db.execute(f"DELETE FROM {table} WHERE n = ?", (number,))  # noqa: S608 - constants
        self._db.execute("UPDATE version_gate SET open = 1")
        self._db.execute("DELETE FROM version WHERE n = ?", (number,))
        self._db.execute("UPDATE version_gate SET open = 0")
        if row is None:
            self._db.execute("DELETE FROM record WHERE n = ?", (number,))
        return same

    def _insert(
        self,
        fresh: Sequence[tuple[int, Row, bool]],
        prints: Mapping[bytes, tuple[list[bytes], bool]],
    ) -> None:
        records, versions, tags, macs, links = [], [], [], [], []
        named: list[tuple[str, str, int]] = []
        for n, row, _ in fresh:
            detail = codec.pack(row.detail)
            records.append(_record_values(n, row, detail))
            versions += [
                (n, i, v.entry, v.time_ms, v.state, v.device, v.via, v.reason, v.content)
                for i, v in enumerate(row.versions, 1)
            ]
            tags += [(tag, n) for tag in row.tags]
            found, refuses = prints.get(row.record, ([], False))
            macs += [(mac, n, int(refuses)) for mac in found]
            links += [(s, "next", n) for s in row.successors]
            links += [(s, "lifted", n) for s in row.lifted]
            links += [(s, "source", n) for s in row.sources]
            if row.origin is not None:
                links.append((row.origin, "origin", n))
            links += [(owner, "owner", n) for owner in owners_in(row.kind, row.body)]
            found_by = names_of(row.kind, row.text, row.title, row.body, row.fields)
            named += [(what, value, n) for what, value in found_by]
        many = self._db.executemany
        many(_INSERT, records)
        many("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", versions)
        self.words.put((n, _place(row)) for n, row, indexed in fresh if not indexed)
        self.words.place_turns([(n, row) for n, row, _ in fresh])
        if tags:
            many("INSERT INTO tag VALUES (?, ?)", tags)
        if macs:
            many("INSERT OR IGNORE INTO print VALUES (?, ?, ?)", macs)
        if links:
            many("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", links)
        if named:
            many("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", named)


def _place(row: Row) -> tuple[str, str]:
    return place_of(row.own, row.text, row.title, row.speaker)


def _is_proposal(own: str, detail: bytes) -> bool:
    return own == "proposed" or (
        own == "deprecated" and bool(codec.decode_small(detail)["proposal"])
    )


def _record_values(n: int, row: Row, detail: bytes) -> tuple[object, ...]:
    values = (
        row.kind,
        row.text,
        row.category,
        row.provenance,
        row.source,
        row.speaker,
        row.session,
        row.layer,
        row.weight,
        row.title,
        row.valid_from,
        row.valid_to,
        row.expires,
        row.created_ms,
        row.changed_ms,
        row.device,
        row.via,
    )
    versions = [_version(v) for v in row.versions]
    base = _base_hash(row.own, values, row.tags, versions, detail)
    return (
        n,
        row.record,
        row.kind,
        row.own,
        row.own,
        int(row.own in LIVE_STATES),
        *values[1:],
        detail,
        base,
    )


def _base_hash(
    own: str,
    values: tuple[object, ...],
    tags: list[str],
    versions: list[list[object]],
    detail: bytes,
) -> bytes:
    """What the digest covers of a record, state and duplicate aside (R14)."""
    covered = [own, *values, tags, versions]
    return blake2b(codec.pack(covered) + detail, digest_size=16).digest()


def _version(v: VersionRow) -> list[object]:
    return [v.entry, v.time_ms, v.state, v.device, v.via, v.reason, v.content]
