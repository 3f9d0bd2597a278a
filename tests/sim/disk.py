"""A device's files, and the many ways to lose a process that writes them."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memory.door import open_connection
from node.home import Home
from node.identity import identity_of
from node.marker import Marker

DATABASE = "agent.db"
WAL_HEADER = 32
TICK_S = 0.012  # births of files are told in ticks of the system's clock


class Killed(BaseException):
    """The process is gone, here and now."""


class Fuse:
    """Counts down the places where a process can be killed inside one hop."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self.left: int | None = None
        self.torn = False  # at the next commit, in the middle of writing it
        self.blown = False
        self.on_kill: Callable[[int | None], None] = lambda _size: None

    def burn(self) -> None:
        """One place; raises ``Killed`` at the chosen one and ever after."""
        if self.blown:
            raise Killed
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.blow(None)

    def blow(self, size: int | None) -> None:
        """Kill; of the write-ahead log ``size`` bytes are left, all without a number."""
        self.on_kill(size)
        self.blown = True
        raise Killed

    def tear(self, before: bytes, wal: Path) -> None:
        """A commit has just been written: perhaps it was cut short."""
        after = wal.read_bytes() if wal.exists() else b""
        if len(after) > len(before) > WAL_HEADER and after[:WAL_HEADER] == before[:WAL_HEADER]:
            self.blow(self._random.randrange(len(before), len(after)))


class FusedConnection:
    """A connection on which every statement may be the last."""

    def __init__(self, connection: sqlite3.Connection, fuse: Fuse, path: Path) -> None:
        self._connection, self._fuse = connection, fuse
        self._wal = path.with_name(path.name + "-wal")

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to undo; a dead process undoes nothing."""
        return not self._fuse.blown and self._connection.in_transaction

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """As the connection's."""
        self._fuse.burn()
        if sql != "COMMIT" or not self._fuse.torn:
            return self._connection.execute(sql, *values)
        before = self._wal.read_bytes() if self._wal.exists() else b""
        cursor = self._connection.execute(sql, *values)
        self._fuse.tear(before, self._wal)
        return cursor

    def executemany(self, sql: str, rows: Iterable[Any]) -> sqlite3.Cursor:
        """As the connection's."""
        self._fuse.burn()
        return self._connection.executemany(sql, rows)

    def close(self) -> None:
        """As the connection's, whoever is dead."""
        self._connection.close()


class FusedMarker(Marker):
    """A marker whose every writing may be the last."""

    fuse: Fuse

    def _write(self) -> None:
        self.fuse.burn()
        super()._write()
        self.fuse.burn()


class Disk:
    """One home directory: a database, the marker, fingerprint keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = Home(path)

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    @property
    def values(self) -> Path:
        """The file of fingerprint keys."""
        return self.path / "values"

    def files(self) -> list[Path]:
        """Everything that is kept."""
        return sorted(p for p in self.path.rglob("*") if p.is_file())

    def database_files(self) -> dict[str, bytes]:
        """The database as it lies there, without what a restart makes anew."""
        names = (DATABASE, DATABASE + "-wal")
        return {n: (self.path / n).read_bytes() for n in names if (self.path / n).exists()}

    def put_back(self, files: dict[str, bytes]) -> None:
        """Make the database lie there as it did."""
        for name in (DATABASE, DATABASE + "-wal", DATABASE + "-shm"):
            (self.path / name).unlink(missing_ok=True)
        for name, data in files.items():
            (self.path / name).write_bytes(data)

    def copy_to(self, target: Path) -> Disk:
        """A copy of the home, file by file."""
        time.sleep(TICK_S)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.path, target, ignore=shutil.ignore_patterns("*-shm"))
        time.sleep(TICK_S)
        return Disk(target)

    def bless(self) -> None:
        """Make a copy pass for the original, as that of a whole virtual machine does."""
        path = self.home.marker_path
        said = json.loads(path.read_bytes())
        said["home"] = asdict(identity_of(self.path))
        said["file"] = asdict(identity_of(path))
        with path.open("r+b") as file:
            file.truncate()
            file.write(json.dumps(said).encode())

    def entries(self) -> set[bytes]:
        """The hashes of all entries that a start would find; nothing may have it open."""
        connection = open_connection(self.database)
        try:
            return {h for (h,) in connection.execute("SELECT hash FROM entry")}
        finally:
            connection.close()
