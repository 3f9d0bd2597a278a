"""Damage to the files of a home, as a bad disk or a torn write leaves it."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

PAGE_BYTES = 4096


def checkpoint(path: Path) -> None:
    """Put everything into the file itself, as a clean stop does."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def pages_of(path: Path, *tables: str) -> list[int]:
    """The numbers of the pages of some tables, from 1."""
    connection = sqlite3.connect(path)
    marks = ", ".join("?" * len(tables))
    try:
        rows = connection.execute(
            f"SELECT pageno FROM dbstat WHERE name IN ({marks})",
            tables,
        ).fetchall()
    finally:
        connection.close()
    return [r[0] for r in rows]


def overwrite_page(path: Path, number: int, random_of: random.Random) -> None:
    """Replace one page by noise."""
    with path.open("r+b") as file:
        file.seek((number - 1) * PAGE_BYTES)
        file.write(random_of.randbytes(PAGE_BYTES))


def flip_in(path: Path, needle: bytes) -> None:
    """Change one bit inside the first place where some bytes are."""
    data = bytearray(path.read_bytes())
    at = data.index(needle) + len(needle) // 2
    data[at] ^= 1
    path.write_bytes(data)
