"""The owner of this home: unlocking the key for one command, and signing what only a person may.

1. The key is unlocked for one call and dropped with it; the node never keeps it.
2. Statements of owners (certificates) live in ``node.db`` and enter every agent's set that names
   their owner (R22).
"""

from __future__ import annotations

import asyncio
from typing import Any

from keys.errors import NotFoundError, RefusedError, UsageError
from keys.ids import OwnerId
from keys.keyfile import read_secret
from keys.limits import VAULT_BYTES_MAX
from keys.signing import DeviceKey, OwnerKey
from keys.statements import Statement, device_proof, sign
from keys.vault import open_owner
from memory.nodedb import NodeDbDoor
from node.clock import Clock
from node.handle import AgentHandle
from node.home import Home


class Ownership:
    """Who owns this home, and how its owner signs."""

    def __init__(self, home: Home, database: NodeDbDoor, key: DeviceKey, clock: Clock) -> None:
        self._home, self._database, self._key, self._clock = home, database, key, clock

    async def owner(self) -> OwnerId:
        """The owner's id: the first key where it was rotated. Raises ``NotFoundError``."""
        text = await self._database.run(lambda db: db.setting("owner"))
        if text is None:
            raise NotFoundError("this home has no owner", hint="roost init --name NAME")
        return OwnerId.parse(text)

    async def identities(self) -> set[bytes]:
        """The owner's ids: the one of new agents, and those from before a recovery (R20)."""
        former = await self._database.run(lambda db: db.setting("former_owners"))
        return {
            bytes(await self.owner()),
            *(bytes(OwnerId.parse(text)) for text in (former or "").split(",") if text),
        }

    async def recovery(self) -> bytes:
        """The hash that founding statements hold of the recovery key; empty without a code."""
        text = await self._database.run(lambda db: db.setting("recovery"))
        return bytes.fromhex(text) if text else b""

    async def device_name(self) -> str:
        """What this device is called."""
        return await self._database.run(lambda db: db.setting("name")) or "roost"

    async def unlock(self, passphrase: str) -> OwnerKey:
        """The owner's key, for the caller's one command; raises ``PassphraseError``."""
        if not passphrase:
            raise UsageError(
                "this needs the owner's passphrase",
                hint="--passphrase-file F, or ROOST_PASSPHRASE_FILE=F",
            )
        path = self._home.vault_path
        if not await asyncio.to_thread(path.exists):
            raise RefusedError(
                "the owner's key is not on this device",
                hint="use a device of the owner, or roost owner recover",
            )
        blob = await asyncio.to_thread(read_secret, path, VAULT_BYTES_MAX)
        return await asyncio.to_thread(open_owner, blob, passphrase)

    def statement(
        self, key: OwnerKey, kind: str, body: dict[str, Any], *, agent: bytes, after: list[bytes]
    ) -> Statement:
        """Sign a statement with this moment's stamp."""
        stamped = body | {"wall_ms": self._clock.now_us() // 1000}
        return sign(key, kind, stamped, agent=agent, after=after)

    async def act(
        self, handle: AgentHandle, key: OwnerKey, kind: str, body: dict[str, Any]
    ) -> Statement:
        """Sign a statement about an agent and fold it in."""
        heads = await handle.read(lambda store: store.authority.heads())
        made = self.statement(key, kind, body, agent=handle.agent, after=heads)
        authority = await handle.read(lambda store: store.authority_with(made))
        if not authority.is_valid(made.id):
            raise RefusedError(
                f"this owner may not sign a {kind} for this agent",
                hint="roost permissions AGENT shows who may",
            )
        await handle.write(lambda store, _a, now_us: store.add_statements([made], now_us))
        return made

    async def certificates(self, owner: OwnerId) -> list[Statement]:
        """The statements known of one owner."""
        return await self._database.run(lambda db: db.owner_statements.of(owner))

    async def certify_own(self, key: OwnerKey) -> list[Statement]:
        """The owner's statements, with a certificate of this device among them."""
        owner = await self.owner()
        held = await self.certificates(owner)
        if any(s.kind == "certify" and s.body["device"] == self._key.public for s in held):
            return held
        proof = device_proof(self._key, owner)
        made = await self.certify(key, self._key.public, await self.device_name(), proof)
        return [*held, made]

    async def certify(self, key: OwnerKey, device: bytes, name: str, proof: bytes) -> Statement:
        """Make a device one of the owner's (R19); the caller adds it to every own agent."""
        owner = await self.owner()
        held = await self.certificates(owner)
        covered = {before for s in held for before in s.after}
        heads = [bytes(s.id) for s in held if s.id not in covered]
        made = self.statement(
            key,
            "certify",
            {"owner": owner, "device": device, "name": name, "proof": proof},
            agent=b"",
            after=heads,
        )
        await self._database.run(lambda db: db.owner_statements.add([made]))
        return made
