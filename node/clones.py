"""Two live copies of one home: noticed, stopped, and told of (S-A7).

1. A copy is believed in only with proof: a start of this device, signed with its key, that is none
   of this home's own. A peer can pass such a proof on; it cannot make one up.
2. From then on this home writes nothing, through restarts too, until a person decides: one of the
   two becomes a new device, the other goes on (``roost devices renew``). Reading and serving go on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from keys.errors import BadSignature, StoreError
from keys.ids import DeviceId
from keys.signing import START_DOMAIN, verify
from memory.nodedb import NodeDb
from node.core import NodeCore
from node.settings import CLONE_SETTING, STARTS_SETTING, cloned
from sync.messages import Start

STARTS_KEPT: Final = 64


class Clones:
    """What this node knows of copies of itself."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        self.proof = core.key.sign(START_DOMAIN, core.boot_nonce)
        self._noted = False

    async def begin(self) -> None:
        """Keep this start in mind as one of our own, before anybody hears of it."""
        if self._noted:
            return
        self._noted = True
        nonce = self._core.boot_nonce.hex()
        try:
            await self._core.db.run(lambda db: _add_start(db, [nonce]))
        except StoreError as exc:
            self._core.journal.warning("start.not_noted", code=exc.code)

    async def told(self, copies: Sequence[Start], by: DeviceId) -> None:
        """A peer has heard other starts of this device."""
        own = await self._own_starts()
        device = self._core.device
        found = [c for c in copies if c.nonce not in own and is_start_of(device, c.nonce, c.proof)]
        if found:
            await self._stop([c.nonce for c in found], found[-1].address, by.short())

    async def met_ourselves(self, nonce: bytes, address: str) -> None:
        """Somebody with our own key speaks: it is us, or a copy."""
        if nonce not in await self._own_starts():
            await self._stop([nonce], address, "this node itself")

    async def _own_starts(self) -> set[bytes]:
        text = await self._core.db.run(lambda db: db.setting(STARTS_SETTING)) or ""
        return {bytes.fromhex(t) for t in text.split(",") if t} | {self._core.boot_nonce}

    async def _stop(self, nonces: Sequence[bytes], address: str, by: str) -> None:
        stopped = cloned(address, by)
        if self._core.agents.stopped is None:
            self._core.journal.error("cloned", peer=by)
        self._core.agents.stop_writing(stopped)
        said = json.dumps({"address": address, "by": by, "starts": [n.hex() for n in nonces]})
        try:
            if await self._core.db.run(lambda db: db.setting(CLONE_SETTING)) != said:
                await self._core.db.run(lambda db: db.set_settings(**{CLONE_SETTING: said}))
        except StoreError as exc:  # it holds for this start, and the next hears of it again
            self._core.journal.warning("clone.not_noted", code=exc.code)


def is_start_of(device: DeviceId, nonce: bytes, proof: bytes) -> bool:
    """Whether ``proof`` shows that the device's own key started under ``nonce``."""
    try:
        verify(device, START_DOMAIN, nonce, proof)
    except BadSignature:
        return False
    return True


def _add_start(db: NodeDb, nonces: Sequence[str]) -> None:
    held = [t for t in (db.setting(STARTS_SETTING) or "").split(",") if t]
    kept = [*(h for h in held if h not in nonces), *nonces][-STARTS_KEPT:]
    db.set_settings(**{STARTS_SETTING: ",".join(kept)})


def go_on(db: NodeDb) -> None:
    """A person says that this home goes on: what was heard of the other is no news any more."""
    said = db.setting(CLONE_SETTING)
    if said:
        _add_start(db, json.loads(said)["starts"])
        db.set_settings(**{CLONE_SETTING: None})
