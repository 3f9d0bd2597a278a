"""The owner of this home in pairing: what is said of it, whom it takes in, and moving in with one.

1. A joiner becomes a device of every key the opener's owner ever had, since agents keep the owner
   that founded them (R20).
2. A home moves in with another owner only while it has no agent but that owner's: what its own
   owner founded would have nobody left to sign for it. That owner's are here where a pairing broke
   off between its certificate and our moving in. The vault that was here is kept (``vaults``).
3. What a peer brings of its owner's certificates is kept: a later grant to that owner reaches them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from keys.address import Address
from keys.errors import BadSignature, PairingError, RefusedError
from keys.ids import OwnerId
from keys.keyfile import read_secret
from keys.limits import ADDRESSES_MAX, HASH_BYTES, VAULT_BYTES_MAX
from keys.pair_messages import Introduction, OwnerInfo
from keys.pairing import Paired
from keys.signing import CERTIFICATE_DOMAIN, OwnerKey, verify
from keys.statements import Statement, device_proof
from node.core import NodeCore
from node.gifts import JoinerGift, OpenerGift
from node.handle import AgentHandle
from node.sharing import spread
from node.vaults import prepare_vault, settle_vault

NO_RECOVERY: Final = bytes(HASH_BYTES)
OTHERS_STATEMENTS_MAX: Final = 256


class Household:
    """Whose home this is, for the other side of a pairing."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core

    async def introduction(self, *, mine: bool, addresses: Sequence[Address]) -> Introduction:
        """What this node says of itself."""
        ownership = self._core.ownership
        info = OwnerInfo(await ownership.owner(), await ownership.recovery() or NO_RECOVERY)
        name = await ownership.device_name()
        return Introduction(name, mine, info, tuple(addresses[:ADDRESSES_MAX]))

    async def owners(self) -> list[OwnerId]:
        """Our owner, and the keys it had before."""
        return [await self._core.ownership.owner(), *await self._former()]

    async def _former(self) -> list[OwnerId]:
        text = await self._core.db.run(lambda db: db.setting("former_owners"))
        return [OwnerId.parse(t) for t in text.split(",")] if text else []

    async def statements(self) -> list[Statement]:
        """What our owner signed about devices."""
        found = [await self._core.ownership.certificates(o) for o in await self.owners()]
        return [s for of_one in found for s in of_one]

    # -- the opener ------------------------------------------------------------------------------

    async def adopt(self, key: OwnerKey, paired: Paired, gift: JoinerGift) -> None:
        """Sign the joiner's certificates; raises ``BadSignature`` for a proof that is none."""
        core, device = self._core, paired.device
        await core.ownership.certify_own(key)
        for owner in await self.owners():
            proof = gift.proofs.get(owner)
            if proof is None:
                raise BadSignature("a joiner without its proof for the owner")
            verify(device, CERTIFICATE_DOMAIN, owner + device, proof)
            held = await core.ownership.certificates(owner)
            about = [s for s in held if s.body.get("device") == device]
            if about and all(s.kind == "certify" for s in about):
                continue  # it is one already
            covered = {before for s in held for before in s.after}
            made = core.ownership.statement(
                key,
                "certify",
                {
                    "owner": owner,
                    "device": device,
                    "name": paired.introduction.name,
                    "proof": proof,
                },
                agent=b"",
                after=[bytes(s.id) for s in held if bytes(s.id) not in covered],
            )
            await core.db.run(lambda db, made=made: db.owner_statements.add([made]))  # type: ignore[misc]
        await spread(core)

    async def opener_gift(self, *, mine: bool) -> OpenerGift:
        """What the joiner is given: with ``mine`` the vault, still encrypted."""
        core = self._core
        name = await core.db.run(lambda db: db.setting("owner_name")) or ""
        if not mine:
            return OpenerGift(name)
        vault = await asyncio.to_thread(read_secret, core.home.vault_path, VAULT_BYTES_MAX)
        return OpenerGift(name, tuple(await self._former()), vault)

    # -- the joiner ------------------------------------------------------------------------------

    async def check_may_move_in(self, owner: OwnerId) -> None:
        """Raise ``RefusedError`` unless this home is that owner's, or has no other's agent."""
        core = self._core
        if owner == await core.ownership.owner():
            return
        others = {k.agent for k in await core.db.run(lambda db: db.agents()) if k.accepted}
        for handle in await core.agents.open_all():
            if await self._is_of(handle, owner):
                others.discard(handle.agent)
            else:
                others.add(handle.agent)
        if others:
            raise RefusedError(
                f"this home has agents of its own ({len(others)}): it cannot become a device"
                " of another owner",
                hint="use a home where only `roost init` ran, or pair without --mine and grant"
                " what is to be shared",
            )

    async def _is_of(self, handle: AgentHandle, owner: OwnerId) -> bool:
        """Whether an agent is of ``owner``, who founded it or has us as a device in it already."""
        authority = await handle.read(lambda store: store.authority)
        if authority.founder in await self._core.ownership.identities():
            return False
        return authority.founder == owner or owner in authority.owners_of(self._core.device)

    def proofs(self, owners: Iterable[OwnerId]) -> JoinerGift:
        """The signatures of our device over (owner, device)."""
        return JoinerGift({owner: device_proof(self._core.key, owner) for owner in owners})

    async def move_in(
        self, paired: Paired, gift: OpenerGift, statements: Sequence[Statement]
    ) -> None:
        """Become a device of the opener's owner; raises ``PairingError`` without a certificate."""
        core, info = self._core, paired.introduction.owner
        if not gift.vault or not self._certified(info.owner, statements):
            raise PairingError("the opener sent no certificate of this device", reason="malformed")
        if info.owner != await core.ownership.owner():
            await asyncio.to_thread(prepare_vault, core.home.vault_path, info.owner, gift.vault)
        recovery = None if info.recovery_hash == NO_RECOVERY else info.recovery_hash.hex()
        former = ",".join(str(o) for o in gift.former) or None
        await core.db.run(lambda db: db.owner_statements.add(statements))
        await core.db.run(
            lambda db: db.set_settings(
                owner=str(info.owner),
                owner_name=gift.owner_name or None,
                recovery=recovery,
                former_owners=former,
            )
        )
        await asyncio.to_thread(settle_vault, core.home.vault_path, str(info.owner))

    def _certified(self, owner: OwnerId, statements: Iterable[Statement]) -> bool:
        return any(
            s.kind == "certify"
            and s.body["device"] == self._core.key.public
            and s.body["owner"] == owner
            for s in statements
        )

    # -- both ------------------------------------------------------------------------------------

    async def know(self, owner: OwnerId, statements: Iterable[Statement]) -> None:
        """Keep what a peer brings of its owner's certificates (rule 3)."""
        about = [s for s in statements if s.body["owner"] == owner][:OTHERS_STATEMENTS_MAX]
        if about:
            await self._core.db.run(lambda db: db.owner_statements.add(about))
