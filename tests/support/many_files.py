"""Reads many databases through the door, and says how much memory that took at most, in MiB.

``python many_files.py FOLDER COUNT MIB_OF_EACH``: a program, since the peak is a process's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memory.door import open_connection
from tests.support.big_home import peak_mib


def main() -> None:
    folder, count, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    before = peak_mib(os.getpid())
    kept = []
    for number in range(count):
        connection = open_connection(folder / f"{number}.db")
        connection.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b BLOB)")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO t (b) VALUES (randomblob(3000))", [()] * (size * 1024 // 4)
        )
        connection.execute("COMMIT")
        assert connection.execute("SELECT sum(length(b)) FROM t").fetchone()[0]
        kept.append(connection)
    sys.stdout.write(f"{peak_mib(os.getpid()) - before}\n")


if __name__ == "__main__":
    main()
