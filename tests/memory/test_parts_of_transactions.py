"""A transaction inside another one is a part: undone alone, durable with the outer one."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from keys.errors import StoreError
from memory.door import open_connection
from memory.transaction import transaction


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A file with one table."""
    connection = open_connection(tmp_path / "parts.db")
    connection.execute("CREATE TABLE held (n INTEGER)")
    yield connection
    connection.close()


def held(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute("SELECT n FROM held ORDER BY n")]


def put(db: sqlite3.Connection, number: int) -> None:
    db.execute("INSERT INTO held VALUES (?)", (number,))


def put_and_fail(db: sqlite3.Connection, number: int) -> None:
    with transaction(db):
        put(db, number)
        raise KeyError


def put_in_a_part_and_fail(db: sqlite3.Connection, *before_it_fails: str) -> None:
    with transaction(db):
        with transaction(db):
            put(db, 1)
            for sql in before_it_fails:
                db.execute(sql)
        raise KeyError


def test_a_part_that_fails_takes_only_its_own_along(db: sqlite3.Connection) -> None:
    """What is before it and after it stays."""
    with transaction(db):
        put(db, 1)
        with pytest.raises(KeyError):
            put_and_fail(db, 2)
        with transaction(db):
            put(db, 3)
    assert held(db) == [1, 3]


def test_a_part_is_not_durable_by_itself(db: sqlite3.Connection) -> None:
    """When the outer one fails, what its parts did is gone too."""
    with pytest.raises(KeyError):
        put_in_a_part_and_fail(db)
    assert (held(db), db.in_transaction) == ([], False)


def test_a_transaction_that_sqlite_undid_is_not_undone_again(db: sqlite3.Connection) -> None:
    """What is told is that it cannot be written; nothing stays open."""
    with pytest.raises(StoreError):
        put_in_a_part_and_fail(db, "ROLLBACK")
    assert (held(db), db.in_transaction) == ([], False)
