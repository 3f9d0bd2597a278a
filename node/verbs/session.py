"""Verbs about the caller: who it is, its tokens, and what was refused."""

from __future__ import annotations

from typing import Any

from keys.errors import UsageError
from keys.ids import AgentId
from memory.tokens import Quota, Token
from node.callers import new_token, parse_token_id, token_text
from node.core import NodeCore
from node.params import Params
from node.rules import SESSION_KINDS
from node.times import iso

Result = dict[str, Any]
PROFILES = ("default", "full", "graph")
CHANNEL_BYTES_MAX = 128
QUOTA_MAX = 2**40
WAIT_S_MAX = 25.0
RUN_CHARS = 16


async def about(core: NodeCore, params: Params) -> Result:
    """Whom the node takes the caller for."""
    caller = params.caller
    params.optional_text("agent")
    params.done()
    handle = core.agents.get(caller.agent) if caller.agent is not None else None
    return {
        "principal": caller.principal.value,
        "agent": str(caller.agent) if caller.agent is not None else None,
        "name": handle.name if handle is not None else None,
        "session": caller.session,
        "channel": caller.channel,
        "profile": caller.profile,
        "token": token_text(caller.token) if caller.token else None,
        "may": sorted(d.name.lower() for d in SESSION_KINDS.get(caller.session, ())),
    }


async def changes(core: NodeCore, params: Params) -> Result:
    """Wait up to ``wait_s`` seconds until an agent is not as it was at ``since``."""
    handle = await core.agents.resolve(params.text("agent"))
    since, wait_s = params.optional_text("since"), params.real("wait_s", 0.0)
    params.done()
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise UsageError(f"wait_s is from 0 to {WAIT_S_MAX:.0f}")
    run = core.boot_nonce.hex()[:RUN_CHARS]  # a node that was started anew has not counted
    before, _, count = (since or "").partition(".")
    known = core.agents.changes
    now = known.count(handle.agent)
    if before == run and count.isdecimal():
        now = await known.wait(handle.agent, int(count), wait_s)
    at = f"{run}.{now}"
    return {"at": at, "changed": since is not None and since != at}


async def create_token(core: NodeCore, params: Params) -> Result:
    """Make a bearer token of an agent; its secret is in this result and nowhere else."""
    handle = await core.agents.resolve(params.text("agent"))
    session = one_of("session", params.optional_text("session") or "default", tuple(SESSION_KINDS))
    profile = one_of("profile", params.optional_text("profile") or "default", PROFILES)
    channel, expires_us = params.optional_text("channel"), params.time("expires")
    passphrase = params.optional_text("passphrase") or ""
    usual = Quota()
    quota = Quota(
        _quota(params, "calls_per_minute", usual.calls_per_minute),
        _quota(params, "bytes_per_minute", usual.bytes_per_minute),
        _quota(params, "records_per_hour", usual.records_per_hour),
    )
    params.done()
    if channel is not None and not 0 < len(channel.encode()) <= CHANNEL_BYTES_MAX:
        raise UsageError(f"a channel has 1 to {CHANNEL_BYTES_MAX} bytes")
    now_us = core.clock.now_us()
    if expires_us is not None and expires_us <= now_us:
        raise UsageError("the token would be expired already")
    await core.ownership.unlock(passphrase)
    number, secret_hash, text = new_token()
    made = Token(
        number,
        secret_hash,
        handle.agent,
        session,
        channel,
        profile,
        now_us,
        expires_us,
        None,
        quota,
    )
    await core.db.run(lambda db: db.tokens.add(made))
    return _row(made, handle.name, now_us) | {"token": text}


async def list_tokens(core: NodeCore, params: Params) -> Result:
    """The tokens of one agent, or of all; no secrets."""
    wanted = params.optional_text("agent")
    params.done()
    handle = await core.agents.resolve(wanted) if wanted is not None else None
    names = {h.agent: h.name for h in await core.agents.open_all()}
    now_us = core.clock.now_us()
    return {
        "tokens": [
            _row(token, names.get(token.agent), now_us)
            for token in await core.db.run(lambda db: db.tokens.all())
            if handle is None or token.agent == handle.agent
        ]
    }


async def revoke_token(core: NodeCore, params: Params) -> Result:
    """Let a token open nothing any more."""
    number = parse_token_id(params.text("id"))
    params.done()
    now_us = core.clock.now_us()
    await core.db.run(lambda db: db.tokens.revoke(number, now_us))
    return {"id": token_text(number), "revoked": True}


async def refused(core: NodeCore, params: Params) -> Result:
    """The newest refused calls: who was refused what, and when."""
    wanted, limit = params.optional_text("agent"), params.number("limit", 50)
    params.done()
    if not 1 <= limit <= 10_000:
        raise UsageError("a limit is from 1 to 10000")
    agent = (await core.agents.resolve(wanted)).agent if wanted is not None else None
    found = await core.db.run(lambda db: db.refusals.newest(limit, agent))
    return {
        "refused": [
            {
                "at": iso(r.at_us),
                "at_us": r.at_us,
                "code": r.code,
                "verb": r.verb,
                "principal": r.principal,
                "agent": str(AgentId(r.agent)) if r.agent else None,
                "token": token_text(r.token) if r.token else None,
            }
            for r in found
        ]
    }


def one_of(what: str, word: str, known: tuple[str, ...]) -> str:
    """``word``; raises ``UsageError`` unless it is one of ``known`` (M-H28)."""
    if word not in known:
        raise UsageError(f"no {what} {word[:32]!r}", hint="one of " + ", ".join(known))
    return word


def _quota(params: Params, name: str, usual: int) -> int:
    value = params.number(name, usual)
    if not 1 <= value <= QUOTA_MAX:
        raise UsageError(f"{name} is from 1 to {QUOTA_MAX}")
    return value


def _row(token: Token, name: str | None, now_us: int) -> Result:
    return {
        "id": token_text(token.id),
        "agent": str(token.agent),
        "name": name,
        "session": token.session,
        "channel": token.channel,
        "profile": token.profile,
        "created_at": iso(token.created_us),
        "expires": iso(token.expires_us),
        "in_force": token.in_force(now_us),
        "calls_per_minute": token.quota.calls_per_minute,
        "bytes_per_minute": token.quota.bytes_per_minute,
        "records_per_hour": token.quota.records_per_hour,
    }
