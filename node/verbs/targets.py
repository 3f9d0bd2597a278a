"""What a call is about: the record that a person names, as this machine's person sees it."""

from __future__ import annotations

from keys.ids import RecordId
from memory.query import Seen, get, resolve
from memory.scope import Scope
from memory.store import AgentStore
from node.caller import Caller


def person_scope(store: AgentStore) -> Scope:
    """What this machine's person sees of an agent: every state."""
    return Scope(store.agent, every_state=True)


def target_in(store: AgentStore, caller: Caller, text: str, now_us: int) -> RecordId:
    """The record that a caller names, of those it may see; raises ``NotFoundError`` otherwise."""
    scope = caller.scope(store)
    record = resolve(store, scope, text)
    if caller.bound:  # a whole id is not looked up above
        get(store, scope, record, now_us=now_us)
    return record


def record_in(store: AgentStore, text: str) -> RecordId:
    """The record a person names by id or prefix."""
    return resolve(store, person_scope(store), text)


def seen_in(store: AgentStore, record: RecordId, now_us: int) -> Seen:
    """A record as this machine's person sees it."""
    return get(store, person_scope(store), record, now_us=now_us)
