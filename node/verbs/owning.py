"""Verbs about the owner: getting authority back with the recovery code (R20)."""

from __future__ import annotations

import asyncio
from typing import Any

from keys.authority import Authority
from keys.errors import NotFoundError, UsageError
from keys.ids import OwnerId
from keys.limits import KEEPS_MAX
from keys.recovery import new_code, recovery_hash, recovery_key
from keys.signing import OwnerKey, SigningKey
from keys.statements import OWNER_KINDS, Statement, device_proof, parse, sign, successor_proof
from keys.vault import seal_owner
from memory.store import AgentStore
from node.core import NodeCore
from node.handle import AgentHandle
from node.network import Network
from node.params import Params
from node.service import Emit
from node.vaults import prepare_vault, settle_vault
from sync.recovery import RecoverReply

Result = dict[str, Any]


async def recover(core: NodeCore, network: Network, params: Params, _emit: Emit | None) -> Result:
    """Make a new owner key with the recovery code; the old key's kept statements stay valid.

    Every agent here whose owner committed to this code gets the rotation, and those that peers
    hold: a new device pairs with any node that has them, then runs this. The new key lies in the
    vault under the passphrase given, and there is a new recovery code.
    """
    recovery = recovery_key(params.text("code"))
    passphrase = params.optional_text("passphrase") or ""
    params.done()
    if not passphrase:
        raise UsageError("choose a passphrase for the new key", hint="--passphrase-file F")
    committed = recovery_hash(recovery.public)
    for reply in await network.recover(recovery):
        await _take(core, reply, committed)
    mine = [
        (handle, owner)
        for handle in await core.agents.open_all()
        for owner, fits in handle.store.authority.recovery.items()
        if fits == committed
    ]
    if not mine:
        raise NotFoundError(
            "no agent here belongs to the owner of this code",
            hint="pair with a node that holds them (roost pair join …), then run this again",
        )
    owners = sorted({owner for _, owner in mine})
    code = await asyncio.to_thread(new_code)
    following = recovery_hash(recovery_key(code).public)
    key = OwnerKey.generate()
    # First the key is where it stays: no agent may be left with one that a crash took along.
    await _take_over(core, key, passphrase, following, owners)
    for owner in owners:
        handles = [h for h, o in mine if o == owner]
        await _rotate(core, handles, OwnerId(owner), key, recovery, following)
    network.look_again()
    return {
        "owner": str(key.owner),
        "recovery": code,
        "agents": sorted({str(h.agent) for h, _ in mine}),
    }


async def _take(core: NodeCore, reply: RecoverReply, committed: bytes) -> None:
    """Enter agents that a peer showed, if their owner did commit to this code."""
    for agent, signed in reply.agents:
        if core.agents.get(agent) is not None:
            continue
        statements = [parse(data, signature) for data, signature in signed]
        if committed not in Authority(agent, statements).recovery.values():
            continue
        await core.agents.create(agent, statements, [])
        await core.accept(agent)


async def _rotate(
    core: NodeCore,
    handles: list[AgentHandle],
    owner: OwnerId,
    key: OwnerKey,
    recovery: SigningKey,
    following: bytes,
) -> None:
    def signed(store: AgentStore) -> tuple[list[bytes], list[Statement]]:
        known = store.statements()
        old = store.authority.current_key(owner)
        keeps = [bytes(s.id) for s in known if s.signer == old]
        own = [s for s in known if s.kind in OWNER_KINDS and s.body["owner"] == owner]
        return keeps, own

    keeps: set[bytes] = set()
    held: dict[bytes, Statement] = {}
    for handle in handles:
        kept, own = await handle.read(signed)
        keeps.update(kept)
        held.update({s.id: s for s in own})
    held.update({s.id: s for s in await core.ownership.certificates(owner)})
    keeps.update(bytes(s.id) for s in held.values() if s.kind != "rotate")
    if len(keeps) > KEEPS_MAX:
        raise UsageError(f"a rotation keeps at most {KEEPS_MAX} statements")
    stamp = core.clock.now_us() // 1000
    covered = {before for s in held.values() for before in s.after}
    rotation = sign(
        recovery,
        "rotate",
        {
            "owner": owner,
            "new": key.public,
            "recovery": following,
            "keeps": sorted(keeps),
            "proof": successor_proof(key, owner),
            "wall_ms": stamp,
        },
        agent=b"",
        after=[i for i in held if i not in covered],
    )
    certificate = sign(
        key,
        "certify",
        {
            "owner": owner,
            "device": core.device,
            "name": await core.ownership.device_name(),
            "proof": device_proof(core.key, owner),
            "wall_ms": stamp,
        },
        agent=b"",
        after=[bytes(rotation.id)],
    )
    await core.db.run(lambda db: db.owner_statements.add([*held.values(), rotation, certificate]))
    for handle in handles:
        await handle.write(
            lambda store, _a, now_us: store.add_statements([rotation, certificate], now_us)
        )


async def _take_over(
    core: NodeCore, key: OwnerKey, passphrase: str, following: bytes, owners: list[bytes]
) -> None:
    vault = await asyncio.to_thread(seal_owner, key, passphrase)
    await asyncio.to_thread(prepare_vault, core.home.vault_path, key.owner, vault)
    former = {str(OwnerId(o)) for o in owners}
    held = await core.db.run(lambda db: db.setting("former_owners"))
    former |= set(held.split(",")) if held else set()
    await core.db.run(
        lambda db: db.set_settings(
            owner=str(key.owner), recovery=following.hex(), former_owners=",".join(sorted(former))
        )
    )
    await asyncio.to_thread(settle_vault, core.home.vault_path, str(key.owner))
