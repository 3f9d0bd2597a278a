"""What records do to one another: returning values, erased sources, duplicates (R27, R31).

A function of the set: it looks only at rows, fingerprints, links and effective tombstones.
The order: erased; then withheld for an erasure, that is named by a tombstone ahead of its chain,
derived from something erased, or of a value that a tombstone refuses; then the record's own state;
then, among the live, what is made from something that waits for a person (it waits too), a value
that another record refuses, and duplicates.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import keys.codec as codec
from memory.rows import LIVE_STATES
from memory.tables import select_in
from memory.words import WordIndex


@dataclass(frozen=True, slots=True)
class Standing:
    """How a record stands among the others."""

    state: str
    duplicate: bytes | None


class Standings:
    """Decides and writes ``state``, ``live`` and ``duplicate``, in the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db, self._words = connection, WordIndex(connection)

    def settle(self, folded: set[bytes], macs: set[bytes]) -> set[bytes]:
        """Decide for records, all of the same values or of ``macs``, and all derived from them.

        Returns the records that read withheld or returning.
        """
        plain = set() if macs else self._stand_alone(folded)
        affected = folded - plain
        for mac in macs | self._macs_of(affected):
            affected.update(self._holders(mac))
        derived = self._derived(affected) - affected
        for mac in self._macs_of(derived):
            derived.update(self._holders(mac))
        affected |= derived
        held: set[bytes] = set()
        updates = []
        for record in affected:
            found = self._db.execute(
                "SELECT n, kind, own, state, duplicate FROM record WHERE record = ?", (record,)
            ).fetchone()
            if found is None:
                continue
            n, kind, own, state, duplicate = found
            now = self._decide(n, record, kind, own)
            if now.state in ("withheld", "returning"):
                held.add(record)
            if (now.state, now.duplicate) != (state, duplicate):
                live = int(now.state in LIVE_STATES and now.duplicate is None)
                updates.append((now.state, live, now.duplicate, n))
                self._words.move(n, now.state)
        if updates:
            self._db.executemany(
                "UPDATE record SET state = ?, live = ?, duplicate = ? WHERE n = ?", updates
            )
        return held

    def _stand_alone(self, records: Collection[bytes]) -> set[bytes]:
        """Those of the records just folded that others can neither change nor be changed by.

        One stands as its own state says, nobody shares its value, no tombstone lists it, and it has
        no sources; then the row is right as it was written.
        """
        rows = select_in(
            self._db,
            "SELECT record FROM record AS r WHERE state = own AND duplicate IS NULL"
            " AND own IN ('new', 'current')"
            " AND kind NOT IN ('property', 'relation', 'section')"
            " AND NOT EXISTS (SELECT 1 FROM link WHERE link.n = r.n AND what = 'source')"
            " AND NOT EXISTS (SELECT 1 FROM link WHERE target = r.record AND what = 'source')"
            " AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.record = r.record)"
            " AND NOT EXISTS (SELECT 1 FROM print AS p WHERE p.n = r.n AND (EXISTS"
            " (SELECT 1 FROM print AS q WHERE q.mac = p.mac AND q.n <> r.n) OR EXISTS"
            " (SELECT 1 FROM tombstone_print AS t WHERE t.mac = p.mac)))"
            " AND record IN",
            records,
        )
        return {r[0] for r in rows}

    def _holders(self, mac: bytes) -> list[bytes]:
        return [
            r[0]
            for r in self._db.execute(
                "SELECT record.record FROM print JOIN record USING (n) WHERE mac = ?", (mac,)
            )
        ]

    def _macs_of(self, records: Iterable[bytes]) -> set[bytes]:
        out: set[bytes] = set()
        for record in records:
            out.update(
                r[0]
                for r in self._db.execute(
                    "SELECT mac FROM print JOIN record USING (n) WHERE record = ?", (record,)
                )
            )
        return out

    def _decide(self, n: int, record: bytes, kind: str, own: str) -> Standing:
        if own == "erased":
            return Standing("erased", None)
        if self._ahead(record) or self.source_erased(record):
            return Standing("withheld", None)
        macs = [r[0] for r in self._db.execute("SELECT mac FROM print WHERE n = ?", (n,))]
        if any(self.print_erased(mac) for mac in macs):
            return Standing("returning", None)
        if own not in LIVE_STATES:
            return Standing(own, None)
        if self._without_owner(n):
            return Standing("withheld", None)
        if self.source_waits(n, record):
            return Standing("proposed", None)
        if any(self._refused(mac, n) for mac in macs):
            return Standing("returning", None)
        first = min((self._first_live(mac, kind) for mac in macs), default=record)
        return Standing(own, None if first >= record else first)

    def _ahead(self, record: bytes) -> bool:
        return self._one(
            "SELECT 1 FROM tombstone WHERE record = ? AND effective = 1 AND chained = 0", record
        )

    def _without_owner(self, n: int) -> bool:
        """Whether a part belongs to a record that is here and not live, as its own state says."""
        found = self._db.execute(
            "SELECT 1 FROM link JOIN record ON record.record = link.target WHERE link.n = ?"
            " AND link.what = 'owner' AND record.own NOT IN ('new', 'current')",
            (n,),
        )
        return found.fetchone() is not None

    def held(self) -> set[bytes]:
        """The records that read withheld or returning."""
        rows = self._db.execute(
            "SELECT record FROM record WHERE state IN ('withheld', 'returning')"
        )
        return {r[0] for r in rows}

    def source_erased(self, record: bytes) -> bool:
        """Whether something that a record was derived from, at any distance, is erased (R31)."""
        seen: set[bytes] = set()
        stack = self._sources(record)
        while stack:
            source = stack.pop()
            if source in seen:
                continue
            seen.add(source)
            if self._one("SELECT 1 FROM tombstone WHERE record = ? AND effective = 1", source):
                return True
            stack += self._sources(source)
        return False

    def source_waits(self, n: int, record: bytes) -> bool:
        """Whether a record is made from one that waits for a person, and nobody approved it itself.

        Trust never rises through derivation, at whatever distance.
        """
        seen: set[bytes] = set()
        stack = self._sources(record)
        while stack:
            source = stack.pop()
            if source in seen:
                continue
            seen.add(source)
            if self._one("SELECT 1 FROM record WHERE record = ? AND own = 'proposed'", source):
                found = self._db.execute("SELECT detail FROM record WHERE n = ?", (n,)).fetchone()
                # One that is live although it is gated was approved.
                return not codec.unpack(found[0])["gated"]
            stack += self._sources(source)
        return False

    def _sources(self, record: bytes) -> list[bytes]:
        return [
            r[0]
            for r in self._db.execute(
                "SELECT target FROM link JOIN record USING (n)"
                " WHERE record = ? AND what = 'source'",
                (record,),
            )
        ]

    def _derived(self, records: set[bytes]) -> set[bytes]:
        """Everything derived from ``records``, at any distance."""
        seen: set[bytes] = set()
        stack = list(records)
        while stack:
            found = self._db.execute(
                "SELECT record.record FROM link JOIN record USING (n)"
                " WHERE target = ? AND what = 'source'",
                (stack.pop(),),
            )
            for (record,) in found:
                if record not in seen:
                    seen.add(record)
                    stack.append(record)
        return seen

    def _refused(self, mac: bytes, n: int) -> bool:
        """R27: some other record refuses the value."""
        found = self._db.execute(
            "SELECT 1 FROM print WHERE mac = ? AND refuses = 1 AND n <> ?", (mac, n)
        )
        return found.fetchone() is not None

    def print_erased(self, mac: bytes) -> bool:
        """Whether an effective tombstone that nobody lifted lists a fingerprint."""
        return self._one("SELECT 1 FROM tombstone_print WHERE mac = ?", mac)

    def _first_live(self, mac: bytes, kind: str) -> bytes:
        """The smallest id among the live records of one value and kind."""
        found = self._db.execute(
            "SELECT record, n FROM print JOIN record USING (n) WHERE mac = ? AND kind = ?"
            " AND own IN ('new', 'current') ORDER BY record",
            (mac, kind),
        ).fetchall()
        if len(found) == 1:
            return bytes(found[0][0])
        return next(bytes(record) for record, n in found if self._stands(record, n))

    def _stands(self, record: bytes, n: int) -> bool:
        """Whether nothing that a record is made from or a part of keeps it from its readers."""
        return not (
            self._ahead(record)
            or self.source_erased(record)
            or self._without_owner(n)
            or self.source_waits(n, record)
        )

    def _one(self, sql: str, value: bytes) -> bool:
        return self._db.execute(sql, (value,)).fetchone() is not None
