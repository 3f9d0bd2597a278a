"""Migrations: numbered SQL files, each applied with its record in one transaction.

A file of a newer schema is never written: ``StoreError`` says which version can.
"""

from __future__ import annotations

import sqlite3
from importlib import resources
from typing import Final

from keys.errors import StoreError


def _load(prefix: str) -> list[tuple[int, str]]:
    files = sorted(
        (
            f
            for f in resources.files("memory").joinpath("sql").iterdir()
            if f.name.endswith(f"_{prefix}.sql")
        ),
        key=lambda f: f.name,
    )
    return [(int(f.name.partition("_")[0]), f.read_text(encoding="utf-8")) for f in files]


# Read when the module is imported: reading a packaged file inside the event loop would block it.
AGENT_MIGRATIONS: Final = _load("agent")
NODE_MIGRATIONS: Final = _load("node")


def migrate(connection: sqlite3.Connection, migrations: list[tuple[int, str]]) -> None:
    """Bring a database to the newest schema; raises ``StoreError`` for one newer than ours."""
    at: int = connection.execute("PRAGMA user_version").fetchone()[0]
    newest = migrations[-1][0]
    if at > newest:
        raise StoreError(
            f"this file has schema {at}, this version of roost knows {newest}",
            hint="upgrade roost on this machine",
        )
    for number, script in migrations:
        if number <= at:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number:d}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _statements(script: str) -> list[str]:
    """Split a script at complete statements (triggers hold semicolons of their own)."""
    out: list[str] = []
    part = ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            out.append(part)
            part = ""
    return out
