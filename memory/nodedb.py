"""The database of this node: its settings, agents, pairing codes, and (``memory.peers``) peers.

Methods are synchronous, run on the connection's own thread, and change all or nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

from keys.errors import NotFoundError, StoreError
from keys.ids import AgentId
from keys.limits import PAIR_CODES_PER_WINDOW, PAIR_WINDOW_S
from memory.door import AioDoor, Door, make_file, open_connection
from memory.faults import opened
from memory.jobs import Jobs
from memory.ownerdb import OwnerStatements
from memory.peers import Peers
from memory.schema import NODE_MIGRATIONS, migrate
from memory.tokens import Refusals, Tokens, Wishes
from memory.transaction import transaction

T = TypeVar("T")
SETTING_BYTES_MAX: Final = 4_096
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent of this node; ``left_us`` None while it is here."""

    agent: AgentId
    name: str | None
    accepted: bool
    added_us: int
    left_us: int | None


class NodeDb:
    """The tables of ``node.db``; ``peers`` has its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self.peers = Peers(connection)
        self.owner_statements = OwnerStatements(connection)
        self.tokens = Tokens(connection)
        self.refusals = Refusals(connection)
        self.wishes = Wishes(connection)
        self.jobs = Jobs(connection)

    def check(self) -> None:
        """Read everything, and verify what is signed; raises what a damaged row raises."""
        self.agents()
        self.peers.all()
        self.owner_statements.verify()
        self.tokens.all()
        for _, value in self._db.execute("SELECT key, value FROM setting"):
            str(value).encode()

    # -- agents ----------------------------------------------------------------------------------

    def agents(self) -> list[KnownAgent]:
        """Every agent this node knows of, those it left included, oldest first."""
        found = self._db.execute(
            "SELECT agent, name, accepted, added_us, left_us FROM agent ORDER BY added_us, agent"
        )
        return [KnownAgent(AgentId(r[0]), r[1], bool(r[2]), r[3], r[4]) for r in found]

    def set_agent(self, agent: AgentId, *, accepted: bool, now_us: int) -> None:
        """Enter an agent or change whether it is accepted; accepting one that was left returns."""
        self._db.execute(
            "INSERT INTO agent (agent, accepted, added_us) VALUES (?, ?, ?)"
            " ON CONFLICT (agent) DO UPDATE SET accepted = excluded.accepted,"
            " left_us = CASE WHEN excluded.accepted THEN NULL ELSE left_us END",
            (agent, accepted, now_us),
        )

    def name_agent(self, agent: AgentId, name: str | None) -> None:
        """The local name of an agent; raises ``NotFoundError``."""
        self._update_agent(agent, "name = ?", name)

    def leave_agent(self, agent: AgentId, now_us: int) -> None:
        """Keep the agent and its tokens no longer; raises ``NotFoundError``."""
        with transaction(self._db):
            self._update_agent(agent, "accepted = 0, left_us = ?", now_us)
            self.tokens.delete_of(agent)

    # -- settings and pairing codes --------------------------------------------------------------

    def setting(self, key: str) -> str | None:
        """A setting of this node, None where it was never set."""
        row = self._db.execute("SELECT value FROM setting WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_settings(self, **values: str | None) -> None:
        """Set several at once; None removes one. A value has at most ``SETTING_BYTES_MAX``."""
        with transaction(self._db):
            for key, value in values.items():
                if value is None:
                    self._db.execute("DELETE FROM setting WHERE key = ?", (key,))
                    continue
                assert len(value.encode()) <= SETTING_BYTES_MAX
                self._db.execute(
                    "INSERT INTO setting (key, value) VALUES (?, ?)"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (key, value),
                )

    def count_code(self, now_us: int) -> int:
        """Enter a pairing code about to be shown: 0, or the seconds until one may be shown.

        Times that lie ahead (the clock was set back) count as now.
        """
        window_us = PAIR_WINDOW_S * _SECOND_US
        with transaction(self._db):
            self._db.execute(
                "UPDATE pairing_code SET shown_us = ? WHERE shown_us > ?", (now_us, now_us)
            )
            self._db.execute("DELETE FROM pairing_code WHERE shown_us <= ?", (now_us - window_us,))
            shown = self._db.execute(
                "SELECT shown_us FROM pairing_code ORDER BY shown_us DESC LIMIT ?",
                (PAIR_CODES_PER_WINDOW,),
            ).fetchall()
            if len(shown) == PAIR_CODES_PER_WINDOW:
                opens_us = int(shown[-1][0]) + window_us
                return max(1, -(-(opens_us - now_us) // _SECOND_US))
            self._db.execute("INSERT INTO pairing_code (shown_us) VALUES (?)", (now_us,))
        return 0

    def _update_agent(self, agent: AgentId, change: str, *values: object) -> None:
        done = self._db.execute(f"UPDATE agent SET {change} WHERE agent = ?", (*values, agent))  # noqa: S608
        if not done.rowcount:
            raise NotFoundError(f"there is no agent {agent.short()} here", hint="roost agent list")


class NodeDbDoor:
    """The one way to ``node.db``: work runs in one hop on the connection's thread."""

    def __init__(self, door: Door, database: NodeDb) -> None:
        self._door = door
        self._database = database

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open ``node.db``, bring it to the newest schema and look whether it is whole.

        Raises ``DamageError``, or another ``StoreError``.
        """
        try:
            await asyncio.to_thread(make_file, path)
        except OSError as exc:
            raise _cannot_open(path, exc) from exc
        door, connection = await AioDoor.open(path)
        try:
            await door.run(lambda: _prepare(connection, path))
        except BaseException:
            await door.close()
            raise
        return cls(door, NodeDb(connection))

    async def run(self, work: Callable[[NodeDb], T]) -> T:
        """What ``work`` returns or raises; it gets the database and must not keep it."""
        return await self._door.run(lambda: work(self._database))

    async def close(self) -> None:
        """Close the database after the work before it."""
        await self._door.close()


@contextlib.contextmanager
def open_node_db(path: Path) -> Iterator[NodeDb]:
    """``node.db`` for a moment in this thread, made if missing; raises ``StoreError``."""
    try:
        make_file(path)
    except OSError as exc:
        raise _cannot_open(path, exc) from exc
    connection = open_connection(path)
    try:
        _prepare(connection, path)
        yield NodeDb(connection)
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate, then read every row: this file is small, and SQLite's own check passes over much."""

    def look() -> None:
        migrate(connection, NODE_MIGRATIONS)
        NodeDb(connection).check()
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise ValueError("quick_check")

    opened(path, look)


def _cannot_open(path: Path, exc: Exception) -> StoreError:
    return StoreError(
        f"cannot open {path.name}: {exc}",
        hint="check the disk and the file's permissions, or restore it from a backup",
    )
