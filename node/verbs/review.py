"""Verbs of review: what waits for a person, the exact bytes, and the decision."""

from __future__ import annotations

from typing import Any

from keys.errors import NotFoundError, RefusedError, UsageError
from keys.ids import EntryHash, RecordId, hash256
from memory.proposals import Change, changes, replaced_by, waiting
from memory.query import Filters, Seen, list_records
from memory.reviewing import carry_out
from memory.store import AgentStore
from node.callers import token_text
from node.core import NodeCore
from node.handle import AgentHandle
from node.params import Params
from node.present import detail_of, record_of
from node.revealing import flags, hidden, revealed
from node.times import iso
from node.verbs.moving import approve_records
from node.verbs.targets import person_scope, record_in, seen_in

Result = dict[str, Any]
LIST_MAX = 1000


def heads_text(heads: list[bytes]) -> str:
    """The heads that an approval is about, as one string: one id, or the hash of several."""
    if len(heads) == 1:
        return str(EntryHash(heads[0]))
    return str(EntryHash(hash256(b"roost heads", *heads)))


def _proposal(store: AgentStore, seen: Seen, now_us: int) -> Result:
    """A memory that waits: the exact text, what of it cannot be seen, and what approving does."""
    row = detail_of(seen, now_us) | {"heads": heads_text(seen.detail["heads"])}
    replaces = replaced_by(store, seen.record)
    edits = [_change(c) for c in changes(store, seen)]
    row |= {
        "replaces": [str(r) for r in replaces] or None,
        "reason": "edited after it was approved" if edits else f"{seen.provenance} {seen.category}",
        "revealed": revealed(seen.text),
        "hidden": hidden(seen.text),
        "flags": flags(seen.text, seen.title, seen.source, *seen.tags, *map(_text, edits)),
    }
    return row | ({"changes": edits} if edits else {})


def _change(change: Change) -> Result:
    shown, proposed = (
        v.hex() if isinstance(v, bytes) else v for v in (change.shown, change.proposed)
    )
    return {"key": change.key, "shown": shown, "proposed": proposed}


def _text(edit: Result) -> str:
    return f"{edit['key']} {edit['proposed']}"


async def review_list(core: NodeCore, params: Params) -> Result:
    """The memories that wait for a person, and edits of approved ones that do."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> list[Result]:
        found = waiting(store, person_scope(store), limit=LIST_MAX, now_us=now_us)
        return [_proposal(store, s, now_us) for s in found]

    proposals = await handle.read(read)
    erasures = await _erasures(core, handle)
    return {"review": proposals} | ({"erasures": erasures} if erasures else {})


async def _erasures(core: NodeCore, handle: AgentHandle) -> list[Result]:
    """What agents asked to forget (R37) and is not erased yet."""
    wishes = await core.db.run(lambda db: db.wishes.of(handle.agent))

    def read(store: AgentStore) -> list[RecordId]:
        return [record for record, _, _ in wishes if store.folder.tables.is_erased(record)]

    done = set(await handle.read(read)) if wishes else set()
    for record in done:
        await core.db.run(lambda db, r=record: db.wishes.remove(handle.agent, r))  # type: ignore[misc]
    return [
        {"record": str(record), "at": iso(at_us), "token": token_text(token) if token else None}
        for record, at_us, token in wishes
        if record not in done
    ]


def _proposed(store: AgentStore, now_us: int) -> list[Seen]:
    return list_records(
        store,
        person_scope(store),
        Filters(states=("proposed",)),
        limit=LIST_MAX,
        cursor=None,
        now_us=now_us,
    ).records


async def review_show(core: NodeCore, params: Params) -> Result:
    """One memory that waits, with the heads that an approval must name."""
    handle, seen = await _record(core, params)
    params.done()
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Result:
        shown = _proposal(store, seen_in(store, seen.record, now_us), now_us)
        shown["sources"] = [_source(store, r, now_us) for r in shown["derived_from"]]
        return shown

    return await handle.read(read)


def _source(store: AgentStore, record: str, now_us: int) -> Result:
    """What a proposal was derived from, as a person sees it."""
    try:
        return record_of(seen_in(store, RecordId.parse(record), now_us), now_us)
    except NotFoundError:
        return {"record": record, "state": "unknown"}


async def review_approve(core: NodeCore, params: Params) -> Result:
    """Sign that exactly the shown bytes are approved."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, run = params.optional_text("record"), params.optional_text("run")
    heads, passphrase = params.optional_text("heads"), params.optional_text("passphrase") or ""
    params.optional_text("reason")
    params.done()
    now_us = core.clock.now_us()
    if run is not None:
        return await _approve_run(core, handle, run, passphrase)
    if wanted is None or heads is None:
        raise UsageError(
            "an approval names a record and its heads", hint="roost review show AGENT RECORD"
        )
    seen = await handle.read(lambda store: seen_in(store, record_in(store, wanted), now_us))
    # What is erased has no heads.
    if heads_text(seen.detail.get("heads", [])) != heads or not heads:
        raise RefusedError(
            "the record has changed since it was shown",
            hint="look again: roost review show",
            record=str(seen.record),
        )
    await approve_records(core, handle, [seen], passphrase)
    if seen.kind == "verdict":
        await handle.write(lambda _store, author, at_us: carry_out(author, seen, at_us))
    after = await handle.read(lambda store: seen_in(store, seen.record, now_us))
    return {"record": str(seen.record), "state": after.state_at(now_us)}


async def _approve_run(core: NodeCore, handle: AgentHandle, run: str, passphrase: str) -> Result:
    now_us = core.clock.now_us()
    waiting = [
        s
        for s in await handle.read(lambda store: _proposed(store, now_us))
        if s.detail["body"].get("imported") == bytes.fromhex(run)
    ]
    if not waiting:
        raise UsageError("nothing of this run waits for review")
    total = 0
    while waiting:
        await approve_records(core, handle, waiting, passphrase)
        total += len(waiting)
        waiting = [
            s
            for s in await handle.read(lambda store: _proposed(store, now_us))
            if s.detail["body"].get("imported") == bytes.fromhex(run)
        ]
    return {"run": run, "approved": total}


async def review_reject(core: NodeCore, params: Params) -> Result:
    """Sign that a memory is not wanted."""
    handle, seen = await _record(core, params)
    passphrase = params.optional_text("passphrase") or ""
    params.text("reason")
    params.done()
    key = await core.ownership.unlock(passphrase)
    items = [[seen.record, seen.detail["heads"]]]
    await core.ownership.act(handle, key, "reject", {"items": items})
    return {"record": str(seen.record), "state": "deprecated"}


async def _record(core: NodeCore, params: Params) -> tuple[AgentHandle, Seen]:
    handle = await core.agents.resolve(params.text("agent"))
    wanted = params.text("record")
    now_us = core.clock.now_us()

    def read(store: AgentStore) -> Seen:
        record: RecordId = record_in(store, wanted)
        seen = seen_in(store, record, now_us)
        if seen.state == "erased":
            raise UsageError("the record is erased", record=str(record))
        return seen

    return handle, await handle.read(read)
