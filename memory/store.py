"""One agent's store: the log and its fold move together, in one transaction (crdt.log.LogStore).

1. Every change of the log, of the statements or of payloads refolds what it touches before it
   commits; the read model always equals the fold.
2. Without the fingerprint keys that the statements commit to, nothing is folded (R25) but what
   tombstones take away.
3. Erased bytes leave the files in ``clean``, after the commit (R34).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b

import keys.codec as codec
from crdt.chain import RawEntry, VerifiedRun
from crdt.entry import PayloadKind
from crdt.fingerprint import NORMALISATION, FingerprintKey
from crdt.log import AheadTombstone, Appended, ServedRun, Stretch, Vector, Want
from crdt.payload import ENGINE
from crdt.vector import statements_digest, vector_digest
from keys.authority import Authority
from keys.errors import BadInput, StoreError
from keys.ids import AgentId, DeviceId
from keys.limits import STATEMENTS_PER_AGENT_MAX
from keys.statements import Statement, agent_of, parse_stored
from memory import erasing, foldkeys, schema, stamps
from memory.erasing import Tombstones, keep_out
from memory.folding import Folder
from memory.gating import gated_otherwise
from memory.logs import Logs, NewEntry
from memory.standing import Standings
from memory.transaction import transaction
from memory.wants import Wants

REBUILD_CHUNK = 512


class AgentStore:
    """Everything about one agent, over one connection. Not thread-safe: one door, one thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        agent: AgentId,
        keys: Iterable[FingerprintKey] = (),
        own_device: DeviceId | None = None,
    ) -> None:
        schema.migrate(connection, schema.AGENT_MIGRATIONS)
        self.connection, self._agent = connection, agent
        self.own_device = own_device
        self.keys = sorted(keys, key=lambda key: key.id)
        self.logs = Logs(connection, agent)
        self.tombstones = Tombstones(connection, agent)
        self.standings = Standings(connection)
        self._wants = Wants(connection, self.logs)
        self.withheld_hook: Callable[[set[bytes]], list[NewEntry]] | None = None
        self._leftovers = True  # a process may have been killed here in the middle of a transaction
        self.authority = self._load_authority()
        self.folder = self._make_folder()
        if not self.waiting_for_key and not foldkeys.are_noted(connection, self.folder.keys):
            with transaction(connection):
                self._refold_everything()

    @property
    def agent(self) -> AgentId:
        """The agent whose store this is."""
        return self._agent

    @property
    def waiting_for_key(self) -> bool:
        """Whether a fingerprint key that the statements commit to is not here (R25)."""
        held = {key.commitment for key in self.keys}
        wanted = self.authority.key_commitments()
        return not wanted or any(c not in held for c in wanted)

    def set_keys(self, keys: Iterable[FingerprintKey]) -> None:
        """Take fingerprint keys; folds everything anew when that changes something."""
        now = sorted(set(keys), key=lambda key: key.id)
        if now == self.keys:
            return
        with self.changing():
            self.keys = now
            self.folder = self._make_folder()
            self._refold_everything()
            self._answer(self.standings.held())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A transaction; what fails leaves no row, and nothing remembered of one either."""
        kept = self.authority, self.keys, self.folder
        try:
            with transaction(self.connection):
                yield
        except BaseException:
            self.authority, self.keys, self.folder = kept
            self.folder.forget_judges()
            self._leftovers = True
            raise

    def _load_authority(self) -> Authority:
        return Authority(self._agent, self.statements())

    def authority_with(self, statement: Statement) -> Authority:
        """What the statements would give with one more; nothing is stored."""
        return Authority(self._agent, [*self.statements(), statement])

    def _make_folder(self) -> Folder:
        return Folder(self.connection, self._agent, self.logs, self.authority, self.keys)

    # -- vectors and statements ------------------------------------------------------------------

    def vector(self) -> Vector:
        """The tips of every log held."""
        return self.logs.vector()

    def vector_digest(self) -> bytes:
        """BLAKE2b-256 of the canonical vector (R8)."""
        return vector_digest(self.logs.vector())

    def statement_ids(self) -> list[bytes]:
        """All statement ids held, sorted."""
        return [r[0] for r in self.connection.execute("SELECT id FROM statement ORDER BY id")]

    def statements(self) -> list[Statement]:
        """All statements held."""
        rows = self.connection.execute("SELECT data, signature FROM statement ORDER BY id")
        return [parse_stored(data, signature) for data, signature in rows]

    def statements_digest(self) -> bytes:
        """BLAKE2b-256 of the sorted statement ids (R8)."""
        return statements_digest(self.statement_ids())

    def statements_missing(self, have: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
        """(data, signature) of statements not in ``have``, each after its past."""
        rows = self.connection.execute("SELECT id, data, signature FROM statement").fetchall()
        place = {bytes(s): i for i, s in enumerate(self.authority.order_ids())}
        rows.sort(key=lambda r: place.get(r[0], len(place)))
        return [(d, s) for i, d, s in rows if i not in have]

    def add_statements(self, statements: Sequence[Statement], now_us: int = 0) -> int:
        """Store verified statements and refold what they change; the number of new ones."""
        held = set(self.statement_ids())
        new = [s for s in statements if s.id not in held and self._belongs(s)]
        if len(held) + len(new) > STATEMENTS_PER_AGENT_MAX:
            raise BadInput(f"an agent has at most {STATEMENTS_PER_AGENT_MAX} statements")
        if not new:
            return 0
        with self.changing():
            self.connection.executemany(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?, ?)",
                [(s.id, s.data, s.signature, now_us) for s in new],
            )
            self._statements_changed()
        return len(new)

    def _belongs(self, s: Statement) -> bool:
        founds = s.kind == "found"
        return agent_of(s) == self._agent if founds else s.agent in (b"", self._agent)

    def _statements_changed(self) -> None:
        before = self.authority
        self.authority = self._load_authority()
        self.folder = self._make_folder()
        acts = self.authority.acts_unlike(before)
        raised = self._raise_openings(self.authority.known - before.known)
        if self.waiting_for_key:
            return
        if before.key_commitments() != self.authority.key_commitments():
            self._refold_everything()
        else:
            self._fold(acts | raised, set(), evaluate=True)
            self._fold_many(gated_otherwise(self.connection, before, self.authority))
        self._answer(self.standings.held())

    def _raise_openings(self, new: frozenset[bytes]) -> set[bytes]:
        """R14: an opening is never earlier than the statements it cites."""
        touched: set[bytes] = set()
        for row in self.logs.rows():
            for opening, heads in self.logs.openings(row).items():
                if not new.isdisjoint(heads):
                    time_ms = max(self.authority.times.get(h, 0) for h in heads)
                    touched |= self.logs.raise_time(row.id, opening, time_ms)
        return touched

    # -- appending -------------------------------------------------------------------------------

    def append_runs(self, runs: Sequence[VerifiedRun], now_us: int) -> Appended:
        """Append verified runs and fold them, in one transaction; raises ``BadChain``."""
        with self.changing():
            new = [
                entry
                for run in runs
                for entry in self.logs.append(
                    keep_out(run, self.folder.tables), now_us, self.authority.times
                )
            ]
            self.after_append(new)
            stamps.note(self.connection, runs, now_us)
        return Appended(len(new), sum(len(run.entries) for run in runs) - len(new))

    def after_append(self, new: Sequence[NewEntry]) -> None:
        """Fold what new entries touch; inside the transaction that appended them."""
        self.folder.forget_judges()
        named: set[bytes] = set()
        for item in new:
            header = item.entry.header
            if header.payload_kind == PayloadKind.TOMBSTONE:
                opening = self.tombstones.opening_of(self.folder, header)
                named.add(self.tombstones.add(item.entry, item.time_ms, opening, chained=True))
        records = {
            bytes(i.entry.header.record)
            for i in new
            if i.entry.header.payload_kind not in (PayloadKind.OPEN, PayloadKind.TOMBSTONE)
        }
        named.update(self.tombstones.ahead_of(i.entry.header.log for i in new))
        named |= set(
            self.tombstones.named_by(
                i.entry.header.record
                for i in new
                if i.entry.header.payload_kind == PayloadKind.TOMBSTONE
            )
        )
        self._fold(records, named, new=new)

    def add_ahead(self, tombstones: Sequence[AheadTombstone]) -> int:
        """Withhold what tombstones name before their chain is here (R30)."""
        with self.changing():
            fresh: set[bytes] = set()
            for ahead in tombstones:
                header = ahead.tombstone.header
                if ahead.opening.header.log != header.log or self.tombstones.has(header.hash):
                    continue
                opening = codec.encode(
                    [
                        ahead.opening.header.data,
                        ahead.opening.payload,
                        ahead.opening.signature,
                    ]
                )
                fresh.add(
                    self.tombstones.add(ahead.tombstone, header.wall_ms, opening, chained=False)
                )
            if fresh:
                self._fold(set(), fresh)
        return len(fresh)

    # -- folding ---------------------------------------------------------------------------------

    def _fold(
        self,
        records: set[bytes],
        tombstones: set[bytes],
        *,
        new: Sequence[NewEntry] = (),
        evaluate: bool = False,
    ) -> None:
        if self.waiting_for_key:
            self.tombstones.take_away(self.folder, self.standings, tombstones)
            return
        changed, moved = self._changed_logs()
        macs: set[bytes] = set()
        if evaluate or moved:
            touched, macs = self.tombstones.evaluate(self.folder)
            records = records | touched
        if tombstones:
            touched, more = self.tombstones.evaluate(self.folder, tombstones)
            records, macs = records | touched, macs | more
        folded, before = self.folder.refold(records | changed, new)
        self._answer(self.standings.settle(folded, macs | before))

    def _answer(self, held: set[bytes]) -> None:
        """Let this device write the tombstones of records that it answers for (R31)."""
        held = held | self.tombstones.orphaned(self.authority)
        if held and self.withheld_hook and (own := self.withheld_hook(held)):
            self.after_append(own)

    def _changed_logs(self) -> tuple[set[bytes], bool]:
        """Records of logs about whose entries the verdict may have changed."""
        changed: set[bytes] = set()
        moved = False
        for row in self.logs.rows():
            signature = self.folder.judge_of(row.log).signature()
            held = self.connection.execute(
                "SELECT verdict FROM log WHERE id = ?", (row.id,)
            ).fetchone()[0]
            if signature == held:
                continue
            moved = True
            self.connection.execute("UPDATE log SET verdict = ? WHERE id = ?", (signature, row.id))
            changed.update(self.folder.records_of(row))
        return changed, moved

    def _refold_everything(self) -> None:
        """The read model from nothing: what ``rebuild`` does."""
        self.connection.execute("UPDATE version_gate SET open = 1")
        self.folder.tables.words.forget_all()
        emptied = ("version", "tag", "print", "link", "named", "turn", "record", "tombstone_print")
        for table in emptied:
            self.connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
        self.connection.execute("UPDATE version_gate SET open = 0")
        self.connection.execute("UPDATE log SET verdict = x''")
        self.folder.forget_judges()
        foldkeys.note(self.connection, () if self.waiting_for_key else self.folder.keys)
        if self.waiting_for_key:
            return
        self._changed_logs()
        self.tombstones.evaluate(self.folder)
        self._fold_many(self.folder.records())

    def _fold_many(self, records: Sequence[bytes]) -> None:
        for i in range(0, len(records), REBUILD_CHUNK):
            folded, before = self.folder.refold(records[i : i + REBUILD_CHUNK])
            self.standings.settle(folded, before)

    def rebuild(self) -> tuple[bytes, bytes]:
        """Recreate the read model from the log; digests before and after. Needs all keys (R25)."""
        if self.waiting_for_key:
            raise StoreError("a fingerprint key has not arrived yet", hint="roost sync --once")
        before = self.digest()
        with self.changing():
            self._refold_everything()
        return before, self.digest()

    def digest(self) -> bytes:
        """BLAKE2b-256 of the replicated read model (R14)."""
        h = blake2b(digest_size=32)
        for record, base, state, duplicate in self.connection.execute(
            "SELECT record, base_hash, state, duplicate FROM record ORDER BY record"
        ):
            h.update(record + base + state.encode() + b"\0" + (duplicate or b""))
        return h.digest()

    def digest_text(self) -> str:
        """The digest as people compare it, prefixed by engine and normalisation (R8)."""
        if self.waiting_for_key:
            return "waiting-for-key"
        return f"{ENGINE}.{NORMALISATION}:{self.digest().hex()}"

    # -- serving ---------------------------------------------------------------------------------

    def plan(self, have: Vector) -> list[Stretch]:
        """What ``have`` lacks, in the order to send it."""
        return self.logs.plan(have)

    def missing_entries(self, have: Vector) -> int:
        """How many entries ``plan(have)`` covers."""
        return sum(s.until.seq - s.after.seq for s in self.plan(have))

    def read_run(self, stretch: Stretch, bytes_target: int) -> tuple[ServedRun, Stretch | None]:
        """The next run of a stretch and what remains of it."""
        return self.logs.read_run(stretch, bytes_target)

    def tombstones_beyond(self, have: Vector, limit: int) -> list[tuple[RawEntry, RawEntry]]:
        """(tombstone, opening of its log) of tombstone entries that ``have`` lacks."""
        seqs = {
            (bytes(log.device), bytes(log.incarnation)): max((t.seq for t in tips), default=0)
            for log, tips in have.items()
        }
        found = self.tombstones.beyond(self.folder, seqs, limit)
        return [
            (RawEntry(header, payload, signature), RawEntry(*codec.decode_small(opening)))
            for header, payload, signature, opening in found
        ]

    # -- payloads --------------------------------------------------------------------------------

    def wants(self, limit: int) -> list[Want]:
        """Payloads to ask other nodes for (R32)."""
        return self._wants.wants(limit)

    def payloads(self, wanted: Sequence[Want]) -> list[tuple[Want, bytes]]:
        """Those of the wanted payloads that are here."""
        return self._wants.payloads(wanted)

    def add_payloads(self, found: Sequence[tuple[Want, bytes]], now_us: int) -> int:
        """Store payloads that match their headers and are not covered by a tombstone (R32)."""
        with self.changing():
            taken = self._wants.take(found, self.folder.tables)
            records = {bytes(record) for record in taken}
            if records and not self.waiting_for_key:
                self._fold(records, set())
        return len(taken)

    # -- erasing ---------------------------------------------------------------------------------

    def is_clean(self) -> bool:
        """Whether no bytes wait to leave the files: erased, or of a change that did not happen."""
        return not self._leftovers and not erasing.waits(self.connection)

    def clean(self) -> bool:
        """Get such bytes out of the files; False when a reader is in the way (R34)."""
        if not self.is_clean() and erasing.clean(self.connection):
            self._leftovers = False
        return self.is_clean()
