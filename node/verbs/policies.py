"""Verbs of an agent's policy: what waits for a person, and what agents may do alone (R21)."""

from __future__ import annotations

from typing import Any

from keys.policy import DEFAULTS, KNOWN, read_settings
from memory.gating import effect
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params

Result = dict[str, Any]


async def policy_verb(core: NodeCore, params: Params) -> Result:
    """The policy in force; with ``settings`` also what setting them would do."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted = params.texts("settings")
    params.done()
    settings = read_settings(wanted) if wanted else {}
    return await handle.read(lambda store: _policy(store, settings))


def _policy(store: AgentStore, settings: dict[str, str]) -> Result:
    policy = store.authority.policy
    shown: Result = {
        "policy": dict(policy.settings),
        "defaults": dict(DEFAULTS),
        "words": {key: list(words) for key, words in KNOWN.items()},
    }
    if settings:
        released, withheld = effect(store.connection, policy.but(settings))
        shown |= {"released": released, "withheld": withheld}
    return shown


async def set_policy(core: NodeCore, params: Params) -> Result:
    """Sign other words for some settings; they hold for old records too, on every node."""
    handle = await core.agents.resolve(params.text("agent"))
    settings = read_settings(params.texts("settings"))
    passphrase = params.optional_text("passphrase") or ""
    params.done()
    key = await core.ownership.unlock(passphrase)
    before = await handle.read(lambda store: _policy(store, settings))
    made = await core.ownership.act(handle, key, "policy", {"settings": settings})
    after = await handle.read(lambda store: store.authority.policy)
    return {
        "statement": str(made.id),
        "policy": dict(after.settings),
        "released": before["released"],
        "withheld": before["withheld"],
    }
