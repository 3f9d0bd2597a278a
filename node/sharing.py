"""Agents that come from peers: whose they are, their keys, and the certificates of our owner.

1. An agent of our own owner is taken without asking; any other is offered to the person (R25).
2. A fingerprint key enters only if a statement commits to it.
3. What our owner signed about devices is in ``node.db`` and in every own agent's set (R22).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crdt.fingerprint import FingerprintKey
from keys.authority import Authority
from keys.errors import BadInput
from keys.ids import AgentId, OwnerId
from keys.signing import DeviceKey
from keys.statements import OWNER_KINDS, Statement
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from sync.messages import KeyBox


async def own_owners(core: NodeCore) -> frozenset[bytes]:
    """The owner of this home, by its key of now and by those before a recovery."""

    def read(texts: Iterable[str | None]) -> frozenset[bytes]:
        named = [t for text in texts if text for t in text.split(",")]
        return frozenset(bytes(OwnerId.parse(t)) for t in named)

    return await core.db.run(lambda db: read((db.setting("owner"), db.setting("former_owners"))))


async def is_ours(core: NodeCore, authority: Authority) -> bool:
    """Whether an agent was founded by our owner, or by one that certifies this device."""
    if authority.founding is None:
        return False
    owners = await own_owners(core)
    return authority.founder in owners or authority.founder in authority.owners_of(core.device)


def open_boxes(key: DeviceKey, boxes: Sequence[KeyBox]) -> list[FingerprintKey]:
    """The fingerprint keys that were sealed to us, but for those that are not what they claim."""
    found = []
    for box in boxes:
        try:
            opened = FingerprintKey(key.open_sealed(box.box))
            if opened.commitment == box.commitment:
                found.append(opened)
        except BadInput:
            continue
    return found


def keys_in_grants(key: DeviceKey, statements: Iterable[Statement]) -> list[FingerprintKey]:
    """The fingerprint keys that grants carry for this device."""
    found = []
    for statement in statements:
        rows = statement.body["sealed"] if statement.kind == "grant" else ()
        for subject, sealed in rows:
            if subject == key.public:
                try:
                    found.append(FingerprintKey(key.open_sealed(sealed)))
                except BadInput:
                    continue
    return found


async def take_keys(core: NodeCore, handle: AgentHandle, keys: Sequence[FingerprintKey]) -> bool:
    """Keep the keys that the agent's statements commit to; True if any is new."""

    def take(store: AgentStore, _now_us: int) -> bool:
        wanted = set(store.authority.key_commitments())
        held = {k.commitment for k in store.keys}
        fresh = [k for k in keys if k.commitment in wanted - held]
        if not fresh or handle.ended:
            return False
        core.agents.save_keys(store.agent, fresh)
        store.set_keys([*store.keys, *fresh])
        return True

    return await handle.receive(take)


async def collect(core: NodeCore, statements: Iterable[Statement]) -> None:
    """Keep what our owner signed about devices, and pass it on to the own agents."""
    owners = await own_owners(core)
    mine = [s for s in statements if s.kind in OWNER_KINDS and s.body["owner"] in owners]
    if not mine:
        return
    held = {s.id for owner in owners for s in await core.ownership.certificates(OwnerId(owner))}
    if any(s.id not in held for s in mine):
        await core.db.run(lambda db: db.owner_statements.add(mine))
        await spread(core)


async def spread(core: NodeCore) -> None:
    """Put our owner's certificates into every agent whose statements name that owner."""
    for owner in await own_owners(core):
        statements = await core.ownership.certificates(OwnerId(owner))
        for handle in core.agents.all():
            await _spread_into(handle, owner, statements)


async def _spread_into(handle: AgentHandle, owner: bytes, statements: Sequence[Statement]) -> None:
    def missing(store: AgentStore) -> list[Statement]:
        if owner not in _named_owners(store.authority):
            return []
        held = set(store.statement_ids())
        return [s for s in statements if bytes(s.id) not in held]

    lacking = await handle.read(missing)
    if lacking:
        await handle.receive(lambda store, now_us: store.add_statements(lacking, now_us))


def _named_owners(authority: Authority) -> set[bytes]:
    granted = {
        bytes(s.body["subject"])
        for s in authority.valid("grant")
        if s.body["subject_kind"] == "owner"
    }
    return {bytes(authority.founder), *granted}


def founding_in(agent: AgentId, statements: Iterable[Statement]) -> Statement | None:
    """The founding statement of an agent among others."""
    return next((s for s in statements if s.kind == "found" and bytes(s.id) == bytes(agent)), None)
