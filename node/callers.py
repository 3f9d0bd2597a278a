"""From a credential to a caller, and the quota of each token.

1. A token is ``roost_<id>_<secret>``; ``node.db`` has a hash of the secret, compared in constant
   time. Unknown, wrong, expired and revoked ones get one answer.
2. A token's quota is its own: a looping agent takes nothing from the others. It is counted since
   the node started.
"""

from __future__ import annotations

import base64
import hmac
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from keys.errors import RefusedError, UsageError
from keys.ids import hash256
from keys.signing import random_bytes
from memory.tokens import Token
from node.caller import LOCAL, Caller, Credential, OwnWrites, Principal
from node.core import NodeCore

PREFIX: Final = "roost"
ID_BYTES: Final = 8
SECRET_BYTES: Final = 32
SESSIONS_MAX: Final = 1_024
MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0


class TokenError(RefusedError):
    """No token that is in force."""

    code = "token"


class QuotaError(RefusedError):
    """The token has had its share for now."""

    code = "quota"


def new_token() -> tuple[bytes, bytes, str]:
    """(id, hash of the secret, the token as text) of a new token."""
    number, secret = random_bytes(ID_BYTES), random_bytes(SECRET_BYTES)
    return number, secret_hash(secret), f"{PREFIX}_{_text(number)}_{_text(secret)}"


def secret_hash(secret: bytes) -> bytes:
    """What is stored of a secret of 32 random bytes, which needs no slow hash."""
    return hash256(b"roost token", secret)


def token_text(number: bytes) -> str:
    """A token's id as text; the secret is not in it."""
    return _text(number)


def parse_token_id(text: str) -> bytes:
    """The id of a token; raises ``UsageError``."""
    try:
        return _bytes(text, ID_BYTES)
    except ValueError as exc:
        raise UsageError("not the id of a token", hint="roost token list") from exc


class Callers:
    """Makes callers."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        self._own: OrderedDict[tuple[bytes | None, bytes, str], OwnWrites] = OrderedDict()
        self._spent: dict[bytes, _Spent] = {}

    async def of(self, credential: Credential) -> Caller:
        """Who shows this credential; raises ``TokenError`` or what naming an agent raises."""
        if credential.bearer is not None:
            return await self._token(credential.bearer, credential.run)
        if credential.agent is None:
            return LOCAL
        handle = await self._core.agents.resolve(credential.agent)
        return Caller(
            Principal.LOCAL,
            handle.agent,
            credential.session,
            credential.channel,
            credential.profile,
            own=self._writes(None, handle.agent, credential.run),
        )

    async def _token(self, bearer: str, run: str | None) -> Caller:
        parts = bearer.split("_")
        try:
            if len(parts) != 3 or parts[0] != PREFIX:
                raise ValueError
            number, secret = _bytes(parts[1], ID_BYTES), _bytes(parts[2], SECRET_BYTES)
        except ValueError:
            raise _no_token() from None
        token = await self._core.db.run(lambda db: db.tokens.find(number))
        # Compared whether or not there is one, so that the time taken tells nothing.
        same = hmac.compare_digest(token.secret_hash if token else bytes(32), secret_hash(secret))
        if token is None or not same or not token.in_force(self._core.clock.now_us()):
            raise _no_token()
        self._spent.setdefault(number, _Spent(token)).token = token
        return Caller(
            Principal.AGENT,
            token.agent,
            token.session,
            token.channel,
            token.profile,
            token.id,
            self._writes(number, token.agent, run),
        )

    def _writes(self, token: bytes | None, agent: bytes, run: str | None) -> OwnWrites:
        if run is None:
            return OwnWrites()
        key = (token, agent, run)
        found = self._own.setdefault(key, OwnWrites())
        self._own.move_to_end(key)
        while len(self._own) > SESSIONS_MAX:
            self._own.popitem(last=False)
        return found

    def charge(self, caller: Caller, size: int, records: int) -> None:
        """Count a call of ``size`` bytes that may make ``records``; raises ``QuotaError``."""
        if caller.token is not None:
            self._spent[caller.token].charge(size, records, self._core.clock.monotonic_s())


@dataclass(slots=True)
class _Spent:
    """What a token used in the current minute and hour."""

    token: Token
    minute_s: float = field(default=-MINUTE_S)
    hour_s: float = field(default=-HOUR_S)
    calls: int = 0
    size: int = 0
    records: int = 0

    def charge(self, size: int, records: int, now_s: float) -> None:
        if now_s - self.minute_s >= MINUTE_S:
            self.minute_s, self.calls, self.size = now_s, 0, 0
        if now_s - self.hour_s >= HOUR_S:
            self.hour_s, self.records = now_s, 0
        calls, total, made = self.calls + 1, self.size + size, self.records + records
        quota = self.token.quota
        if calls > quota.calls_per_minute or total > quota.bytes_per_minute:
            raise _over(self.minute_s + MINUTE_S - now_s)
        if made > quota.records_per_hour:
            raise _over(self.hour_s + HOUR_S - now_s)
        self.calls, self.size, self.records = calls, total, made


def _over(wait_s: float) -> QuotaError:
    seconds = max(1, -(-int(wait_s * 1000) // 1000))
    return QuotaError(
        "this token has used its quota", hint=f"try again in {seconds} s", retry_s=seconds
    )


def _no_token() -> TokenError:
    return TokenError("no token that is in force", hint="roost agent token AGENT")


def _text(data: bytes) -> str:
    return base64.b32encode(data).decode("ascii").rstrip("=").lower()


def _bytes(text: str, size: int) -> bytes:
    """Raises ``ValueError`` unless ``text`` is exactly how ``size`` bytes are written."""
    padded = text.upper() + "=" * (-len(text) % 8)
    data = base64.b32decode(padded)
    if len(data) != size or _text(data) != text:
        raise ValueError("not written so")
    return data
