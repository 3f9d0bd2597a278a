"""What the verbs of the kinds share: notes, names and channels from the parameters of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keys.errors import RefusedError
from keys.ids import RecordId
from memory import kinds
from memory.authoring import Author
from memory.notes import Note
from memory.query import get
from memory.store import AgentStore
from memory.writing import Written
from node.caller import Caller
from node.core import NodeCore
from node.params import Params
from node.verbs.targets import person_scope, target_in
from node.verbs.writing import provenance_of

Result = dict[str, Any]
Act = Callable[[AgentStore, Author, int], Result]
DEFAULT_REASON = "set"


def note_from(params: Params, store: AgentStore, text: str, now_us: int) -> Note:
    """A note with the options that all kinds share: tags, provenance, source, sources."""
    sources = params.texts("derived_from") + params.texts("evidence")
    found = tuple(target_in(store, params.caller, wanted, now_us) for wanted in sources)
    return Note(
        text=text,
        tags=params.texts("tags"),
        provenance=provenance_of(params),
        source=params.optional_text("source"),
        derived_from=found,
    )


def written_of(store: AgentStore, written: Written, now_us: int) -> Result:
    """What a write answers."""
    seen = get(store, person_scope(store), written.record, now_us=now_us)
    return {
        "record": str(written.record),
        "state": seen.state_at(now_us),
        "created": written.created,
    }


async def act_on(core: NodeCore, params: Params, work: Act) -> Result:
    """Run a write on the agent that the parameters name."""
    handle = await core.agents.resolve(params.text("agent"))
    return await handle.write(work)


def named(store: AgentStore, caller: Caller, kind: str, text: str, now_us: int) -> RecordId:
    """The record that a name, an id or a prefix of one stands for, as a caller sees it."""
    found = kinds.live_named(store, kind, text, now_us)
    if found:
        return target_in(store, caller, str(found[0].record), now_us)
    return target_in(store, caller, text, now_us)


def maybe_named(
    store: AgentStore, caller: Caller, kind: str, text: str | None, now_us: int
) -> RecordId | None:
    """The same for a name that may be absent."""
    return None if text is None else named(store, caller, kind, text, now_us)


def channel_of(params: Params) -> str | None:
    """Where something was said: in the channel of the credential, if that has one."""
    given, own = params.optional_text("channel"), params.caller.channel
    if own is not None and given not in (None, own):
        raise RefusedError("this credential is for another channel", hint="leave the channel out")
    return own or given
