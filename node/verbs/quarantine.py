"""Verbs of the quarantine: what does not count, and what a person makes of it (R7, R24)."""

from __future__ import annotations

from typing import Any

from keys.errors import UsageError
from keys.ids import EntryHash
from keys.limits import CUTS_MAX
from memory.authoring import Author
from memory.quarantine import Aside, adopt, aside_in, branch_end, set_aside
from memory.store import AgentStore
from node.core import NodeCore
from node.params import Params
from node.verbs.targets import seen_in

Result = dict[str, Any]


async def quarantine_list(core: NodeCore, params: Params) -> Result:
    """Changes that are held but do not count, each with its reason."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    return {"quarantine": await handle.read(set_aside)}


async def quarantine_adopt(core: NodeCore, params: Params) -> Result:
    """Write changes that do not count anew, as this device's; all of them or none."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, caller = _wanted(params), params.caller
    params.done()

    def act(store: AgentStore, author: Author, now_us: int) -> Result:
        adopted = []
        with author.together():
            for text in wanted:
                aside = aside_in(store, text)
                record, created = adopt(author, aside, caller.via, now_us)
                state = seen_in(store, record, now_us).state_at(now_us)
                adopted.append(
                    {
                        "entry": str(EntryHash(aside.header.hash)),
                        "record": str(record),
                        "created": created,
                        "state": state,
                    }
                )
        return {"adopted": adopted}

    return await handle.write(act)


async def quarantine_drop(core: NodeCore, params: Params) -> Result:
    """Sign that changes are not wanted: no node lists them any more."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, passphrase = _wanted(params), params.optional_text("passphrase") or ""
    params.done()
    asides = await handle.read(lambda store: [aside_in(store, text) for text in wanted])
    key = await core.ownership.unlock(passphrase)
    entries = sorted({bytes(a.header.hash) for a in asides})
    made = await core.ownership.act(handle, key, "drop", {"entries": entries})
    return {"statement": str(made.id), "dropped": [str(EntryHash(e)) for e in entries]}


async def quarantine_settle(core: NodeCore, params: Params) -> Result:
    """Sign which branch of a forked log counts: that of an entry, to its end as held here."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, passphrase = params.text("entry"), params.optional_text("passphrase") or ""
    params.done()

    def read(store: AgentStore) -> tuple[Aside, dict[str, Any]]:
        aside = aside_in(store, wanted)
        return aside, branch_end(store, aside)

    aside, body = await handle.read(read)
    key = await core.ownership.unlock(passphrase)
    made = await core.ownership.act(handle, key, "settle", body)
    return {
        "statement": str(made.id),
        "log": str(aside.header.log),
        "seq": body["seq"],
        "entry": str(EntryHash(body["hash"])),
    }


def _wanted(params: Params) -> tuple[str, ...]:
    wanted = params.texts("entries")
    if not 0 < len(wanted) <= CUTS_MAX:
        raise UsageError(f"name 1 to {CUTS_MAX} entries", hint="roost quarantine list AGENT")
    return wanted
