"""Reading a SQLite file that another program wrote, without trusting anything in it (X-97).

Read-only and immutable, so that neither a journal nor the file is touched; no schema code runs, no
extension can be loaded; the file is checked before it is read; values have a bound.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from keys.errors import UsageError
from keys.limits import TEXT_BYTES_MAX

FILE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
ROWS_MAX: Final = 1_000_000
STEPS_MAX: Final = 2_000_000_000  # of SQLite's virtual machine, for all of a file
_STEP: Final = 1_000_000


def foreign_rows(
    path: Path, table: str, columns: Sequence[str]
) -> Iterator[dict[str, str | int | float | bytes | None]]:
    """The rows of a table, with those of ``columns`` it has; the oldest first.

    ``table`` and ``columns`` are ours, never the file's. Raises ``UsageError``.
    """
    if path.stat().st_size > FILE_BYTES_MAX:
        raise UsageError(f"{path.name} is larger than {FILE_BYTES_MAX} bytes")
    # The path is quoted whole: a name with ? or # must not become an option of the address.
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        _distrust(connection)
        yield from _rows(connection, table, columns)
    except sqlite3.Error as exc:
        raise UsageError(f"{path.name} is damaged, or no database of this program") from exc
    finally:
        connection.close()


def _distrust(connection: sqlite3.Connection) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * TEXT_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += _STEP
        return int(steps > STEPS_MAX)

    connection.set_progress_handler(count, _STEP)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found is None or found[0] != "ok":
        raise sqlite3.DatabaseError("the check found damage")


def _rows(
    connection: sqlite3.Connection, table: str, columns: Sequence[str]
) -> Iterator[dict[str, str | int | float | bytes | None]]:
    kind = connection.execute(
        "SELECT type, sql FROM sqlite_schema WHERE name = ?", (table,)
    ).fetchall()
    # A view or a virtual table would run what the file says.
    if len(kind) != 1 or kind[0][0] != "table" or "virtual" in str(kind[0][1])[:40].lower():
        raise UsageError(f"the database has no table {table}")
    held = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    wanted = [column for column in columns if column in held]
    if not wanted:
        raise UsageError(f"the table {table} is another program's")
    rows = connection.execute(
        f"SELECT {', '.join(wanted)} FROM {table} ORDER BY rowid LIMIT ?",  # noqa: S608 - ours
        (ROWS_MAX + 1,),
    )
    for count, row in enumerate(rows, 1):
        if count > ROWS_MAX:
            raise UsageError(f"the table {table} has more than {ROWS_MAX} rows")
        yield dict(zip(wanted, row, strict=True))
