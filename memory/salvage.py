"""Reading what can be read of a damaged file, and making a whole one of it (S-G1).

1. The damaged file is opened for reading only; nothing in it changes.
2. A page that cannot be read costs its own rows: rows are asked for by ranges that are halved until
   what is left is the damage.
3. Nothing that was read is believed: statements and runs enter the new file through the checks that
   a peer's would pass. A payload that its header does not name counts as missing and is asked for.
4. The new file takes the old one's place whole, or is begun anew at the next start.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from crdt.chain import RawEntry, VerifiedRun, verify_run
from crdt.entry import NO_PREV, LogId, decode_header
from crdt.fingerprint import FingerprintKey
from keys.durable import sync_directory
from keys.errors import BadInput, StoreError
from keys.ids import AgentId, DeviceId, EntryHash, hash256
from keys.limits import PAGE_ENTRIES, RUN_BYTES_MAX, RUN_BYTES_TARGET, RUN_ENTRIES_MAX
from keys.statements import Statement, parse
from memory.audit import count_wants
from memory.door import make_file, open_connection
from memory.nodedb import NodeDb
from memory.schema import NODE_MIGRATIONS, migrate
from memory.store import AgentStore

NEW_SUFFIX: Final = ".new"
RANGE_ROWS: Final = 512
ROWS_PER_PAGE_MAX: Final = 100


@dataclass(slots=True)
class Salvaged:
    """What came out of a damaged agent file.

    ``entries`` are in the new file; ``apart`` were readable, but a gap before them keeps them out;
    ``payloads`` of entries in the new file are missing.
    """

    statements: int = 0
    entries: int = 0
    apart: int = 0
    payloads: int = 0

    def as_dict(self) -> dict[str, int]:
        """As it is written down."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Link:
    """Where an entry lies in the damaged file, and how it hangs in its log."""

    row: int
    seq: int
    prev: EntryHash
    ends: bool  # a commit ends here, and its signature is held


@dataclass(slots=True)
class _Log:
    links: dict[EntryHash, _Link] = field(default_factory=dict)

    def paths(self) -> Iterator[list[EntryHash]]:
        """From the opening to each tip that can be reached, without what follows a gap."""
        children: dict[EntryHash, list[EntryHash]] = {}
        for entry, link in self.links.items():
            children.setdefault(link.prev, []).append(entry)
        waiting = [[entry] for entry in children.get(NO_PREV, ()) if self.links[entry].seq == 1]
        while waiting:
            path = waiting.pop()
            while following := [
                c for c in children.get(path[-1], ()) if self.links[c].seq == len(path) + 1
            ]:
                waiting += [[*path, other] for other in following[1:]]
                path.append(following[0])
            yield path


def rebuild_agent(
    damaged: Path,
    target: Path,
    agent: AgentId,
    keys: Iterable[FingerprintKey],
    own_device: DeviceId,
    now_us: int,
) -> Salvaged:
    """Make the file ``target`` of what can be read of ``damaged``, which may not exist at all.

    Raises ``StoreError`` when the new file cannot be written; ``target`` is not there then.
    """
    fresh = _begin(target)
    connection = open_connection(fresh)
    try:
        store = AgentStore(connection, agent, keys, own_device)
        done = Salvaged()
        source = _source(damaged)
        if source is not None:
            with contextlib.closing(source):
                done = _copy(source, store, now_us)
    finally:
        connection.close()
    _finish(fresh, target)
    return done


def rebuild_node(damaged: Path, target: Path) -> dict[str, int]:
    """Make a new ``node.db`` of the rows that can be read; how many of each table.

    Raises ``StoreError`` when the new file cannot be written; ``target`` is not there then.
    """
    fresh = _begin(target)
    connection = open_connection(fresh)
    counts: dict[str, int] = {}
    try:
        migrate(connection, NODE_MIGRATIONS)
        source = _source(damaged)
        if source is not None:
            with contextlib.closing(source):
                for table in _tables(connection):
                    counts[table] = _copy_rows(source, connection, table)
    finally:
        connection.close()
    _finish(fresh, target)
    return counts


# -- files ---------------------------------------------------------------------------------------


def _begin(target: Path) -> Path:
    fresh = target.with_name(target.name + NEW_SUFFIX)
    for suffix in ("", "-wal", "-shm"):  # of a rebuild that was killed
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    make_file(fresh)
    return fresh


def _finish(fresh: Path, target: Path) -> None:
    fresh.replace(target)
    sync_directory(target.parent)


def _source(damaged: Path) -> sqlite3.Connection | None:
    """The damaged file, for reading only; None when nothing of it opens."""
    address = damaged.absolute().as_uri()
    for options in ("?mode=ro", "?mode=ro&immutable=1"):
        with contextlib.suppress(sqlite3.Error):
            connection = sqlite3.connect(address + options, uri=True, isolation_level=None)
            try:
                connection.execute("PRAGMA trusted_schema=OFF")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            except sqlite3.Error:
                connection.close()
                raise
            return connection
    return None


# -- an agent's file -----------------------------------------------------------------------------


def _copy(source: sqlite3.Connection, store: AgentStore, now_us: int) -> Salvaged:
    done = Salvaged()
    done.statements = store.add_statements(list(_statements(source, store.agent)), now_us)
    logs = _logs(source, store.agent)
    page: list[VerifiedRun] = []
    for log in logs.values():
        for path in log.paths():
            for run in _runs(source, store.agent, log, path):
                page.append(run)
                if sum(len(r.entries) for r in page) >= PAGE_ENTRIES:
                    done.entries += store.append_runs(page, now_us).new
                    page = []
    if page:
        done.entries += store.append_runs(page, now_us).new
    done.apart = max(0, sum(len(log.links) for log in logs.values()) - done.entries)
    done.payloads = count_wants(store)
    return done


def _statements(source: sqlite3.Connection, agent: AgentId) -> Iterator[Statement]:
    for data, signature in _both_ends(source, "statement", "data, signature", "id"):
        with contextlib.suppress(BadInput, TypeError):
            found = parse(data, signature)
            if found.agent in (b"", agent):
                yield found


def _logs(source: sqlite3.Connection, agent: AgentId) -> dict[LogId, _Log]:
    """Every entry whose header is one of this agent's, by log and hash."""
    logs: dict[LogId, _Log] = {}
    for number, data, signed in _by_ranges(source, "id, header, length(signature)"):
        try:
            header = decode_header(data)
        except (BadInput, TypeError):
            continue
        if header.agent == agent:
            ends = bool(signed) and header.commit_left == 0
            link = _Link(number, header.seq, header.prev, ends)
            logs.setdefault(header.log, _Log()).links.setdefault(header.hash, link)
    return logs


def _runs(
    source: sqlite3.Connection, agent: AgentId, log: _Log, path: list[EntryHash]
) -> Iterator[VerifiedRun]:
    """The runs of a path, as far as they verify."""
    run: list[RawEntry] = []
    rest: list[RawEntry] = []
    for entry in path:
        raw = _raw(source, log.links[entry].row)
        if raw is None:
            break
        rest.append(raw)
        if not log.links[entry].ends:
            continue
        if run and not _fits(run, rest):
            verified = _verified(agent, run)
            if verified is None:
                return
            yield verified
            run = []
        run, rest = run + rest, []
    last = _verified(agent, run) if run else None
    if last is not None:
        yield last


def _fits(run: list[RawEntry], rest: list[RawEntry]) -> bool:
    """Whether two stretches make one run (R4); runs are kept small, as they are served."""
    size = sum(len(e.header) + len(e.payload or b"") for e in (*run, *rest))
    return len(run) + len(rest) <= RUN_ENTRIES_MAX and size <= min(RUN_BYTES_TARGET, RUN_BYTES_MAX)


def _verified(agent: AgentId, run: list[RawEntry]) -> VerifiedRun | None:
    try:
        return verify_run(agent, run)
    except BadInput:
        return None


def _raw(source: sqlite3.Connection, number: int) -> RawEntry | None:
    """One entry; a payload that is not the one its header names is none."""
    try:
        data, payload, signature = source.execute(
            "SELECT header, payload, signature FROM entry WHERE id = ?", (number,)
        ).fetchone()
        header = decode_header(data)
    except (sqlite3.Error, BadInput, TypeError):
        return None
    if payload is not None and (
        not isinstance(payload, bytes) or hash256(payload) != header.payload_hash
    ):
        payload = None
    return RawEntry(data, payload, signature)


# -- rows ----------------------------------------------------------------------------------------


def _by_ranges(source: sqlite3.Connection, columns: str) -> Iterator[tuple[Any, ...]]:
    """The readable rows of ``entry``, in order (rule 2)."""
    for low in range(1, _last_row(source) + 1, RANGE_ROWS):
        waiting = [(low, low + RANGE_ROWS - 1)]
        while waiting:
            first, last = waiting.pop()
            try:
                found = source.execute(
                    f"SELECT {columns} FROM entry WHERE id BETWEEN ? AND ? ORDER BY id",  # noqa: S608
                    (first, last),
                ).fetchall()
            except sqlite3.Error:
                if first < last:
                    middle = (first + last) // 2
                    waiting += [(middle + 1, last), (first, middle)]
                continue
            yield from found


def _last_row(source: sqlite3.Connection) -> int:
    """The largest row number of ``entry``, or where that is damaged a bound of it."""
    try:
        found = source.execute("SELECT max(id) FROM entry").fetchone()[0]
        return int(found or 0)
    except (sqlite3.Error, ValueError, TypeError):
        pass
    try:
        return int(source.execute("PRAGMA page_count").fetchone()[0]) * ROWS_PER_PAGE_MAX
    except sqlite3.Error:
        return 0


def _both_ends(
    source: sqlite3.Connection, table: str, columns: str, key: str
) -> Iterator[tuple[Any, ...]]:
    """The rows of a small table that can be read from its beginning, then from its end."""
    seen: set[tuple[Any, ...]] = set()
    for order in ("ASC", "DESC"):
        try:
            rows = source.execute(f"SELECT {columns} FROM {table} ORDER BY {key} {order}")  # noqa: S608
            for row in rows:
                if row not in seen:
                    seen.add(row)
                    yield row
        except sqlite3.Error:
            continue


# -- node.db -------------------------------------------------------------------------------------


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return [r[0] for r in found if not r[0].startswith("sqlite_")]


def _copy_rows(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> int:
    """Copy the rows of one table that the new file takes; how many."""
    columns = [r[1] for r in target.execute(f"PRAGMA table_info({table})")]
    key = next(r[1] for r in target.execute(f"PRAGMA table_info({table})") if r[5])
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 - from the schema
    rows = list(_both_ends(source, table, ", ".join(columns), key))
    if _take(target, insert, rows):
        return len(rows)
    return sum(_take(target, insert, [row]) for row in rows)


def _take(target: sqlite3.Connection, insert: str, rows: list[tuple[Any, ...]]) -> bool:
    """Insert rows if all of them are sound; False leaves nothing of them."""
    target.execute("SAVEPOINT some")
    try:
        target.executemany(insert, rows)
        NodeDb(target).check()
    except (sqlite3.Error, BadInput, StoreError, ValueError, TypeError, AssertionError):
        target.execute("ROLLBACK TO some")
        return False
    finally:
        target.execute("RELEASE some")
    return True
