"""Tokens, refusals and wishes for erasure: what ``node.db`` keeps of agents' surfaces."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass
from typing import Any, Final

from keys.errors import NotFoundError, RefusedError
from keys.ids import AgentId, RecordId

REFUSALS_MAX: Final = 10_000
TOKENS_PER_AGENT_MAX: Final = 256
WISHES_PER_AGENT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Quota:
    """What a token may use."""

    calls_per_minute: int = 6_000
    bytes_per_minute: int = 64 * 1024 * 1024
    records_per_hour: int = 20_000


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token of one agent; times in microseconds UTC."""

    id: bytes
    secret_hash: bytes
    agent: AgentId
    session: str
    channel: str | None
    profile: str
    created_us: int
    expires_us: int | None
    revoked_us: int | None
    quota: Quota

    def in_force(self, now_us: int) -> bool:
        """Whether it opens anything now."""
        return self.revoked_us is None and (self.expires_us is None or self.expires_us > now_us)


_COLUMNS: Final = (
    "id, secret_hash, agent, session, channel, profile, created_us, expires_us, revoked_us,"
    " calls_per_minute, bytes_per_minute, records_per_hour"
)


class Tokens:
    """The tokens of this node."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add(self, token: Token) -> None:
        """Enter a new token; raises ``RefusedError`` when its agent has too many."""
        held = self._db.execute("SELECT count(*) FROM token WHERE agent = ?", (token.agent,))
        if held.fetchone()[0] >= TOKENS_PER_AGENT_MAX:
            raise RefusedError(
                f"an agent has at most {TOKENS_PER_AGENT_MAX} tokens", hint="roost token revoke"
            )
        *values, quota = astuple(token)  # the quota comes as a tuple too
        self._db.execute(
            f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (*values, *quota),
        )

    def find(self, number: bytes) -> Token | None:
        """A token by its id."""
        row = self._db.execute(f"SELECT {_COLUMNS} FROM token WHERE id = ?", (number,)).fetchone()  # noqa: S608
        return _token(row) if row else None

    def all(self) -> list[Token]:
        """Every token, oldest first."""
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM token ORDER BY created_us, id")  # noqa: S608
        return [_token(row) for row in rows]

    def revoke(self, number: bytes, now_us: int) -> None:
        """Let a token open nothing any more; raises ``NotFoundError``."""
        done = self._db.execute(
            "UPDATE token SET revoked_us = coalesce(revoked_us, ?) WHERE id = ?", (now_us, number)
        )
        if not done.rowcount:
            raise NotFoundError("there is no such token here", hint="roost token list")

    def delete_of(self, agent: AgentId) -> None:
        """Delete every token of an agent that is no longer here, and what it wished for."""
        self._db.execute("DELETE FROM token WHERE agent = ?", (agent,))
        self._db.execute("DELETE FROM erasure_wish WHERE agent = ?", (agent,))


def _token(row: tuple[Any, ...]) -> Token:
    number, secret_hash, agent, *rest, calls, size, records = row
    quota = Quota(calls, size, records)
    return Token(number, secret_hash, AgentId(agent), *rest, quota=quota)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused call."""

    at_us: int
    code: str
    verb: str
    principal: str
    agent: bytes | None
    token: bytes | None


class Refusals:
    """The newest ``REFUSALS_MAX`` refused calls."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add(self, refusal: Refusal) -> None:
        """Enter one; the oldest beyond the bound go."""
        done = self._db.execute(
            "INSERT INTO refusal (at_us, code, verb, principal, agent, token)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            astuple(refusal),
        )
        self._db.execute(
            "DELETE FROM refusal WHERE id <= ?", ((done.lastrowid or 0) - REFUSALS_MAX,)
        )

    def newest(self, limit: int, agent: AgentId | None) -> list[Refusal]:
        """The newest first; of one agent, or of all."""
        rows = self._db.execute(
            "SELECT at_us, code, verb, principal, agent, token FROM refusal"
            " WHERE ?1 IS NULL OR agent = ?1 ORDER BY id DESC LIMIT ?2",
            (agent, limit),
        )
        return [Refusal(*row) for row in rows]


class Wishes:
    """Erasures that agents asked for and that a person decides."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add(self, agent: AgentId, record: RecordId, now_us: int, token: bytes | None) -> None:
        """Enter one, once; raises ``RefusedError`` when too many wait."""
        waiting = self._db.execute("SELECT count(*) FROM erasure_wish WHERE agent = ?", (agent,))
        if waiting.fetchone()[0] >= WISHES_PER_AGENT_MAX:
            raise RefusedError("too many erasures wait for a person", hint="roost review list")
        self._db.execute(
            "INSERT INTO erasure_wish VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (agent, record, now_us, token),
        )

    def of(self, agent: AgentId) -> list[tuple[RecordId, int, bytes | None]]:
        """(record, when, token) of each, oldest first."""
        rows = self._db.execute(
            "SELECT record, at_us, token FROM erasure_wish WHERE agent = ? ORDER BY at_us, record",
            (agent,),
        )
        return [(RecordId(r[0]), int(r[1]), r[2]) for r in rows]

    def remove(self, agent: AgentId, record: RecordId) -> None:
        """It was decided."""
        self._db.execute("DELETE FROM erasure_wish WHERE agent = ? AND record = ?", (agent, record))
