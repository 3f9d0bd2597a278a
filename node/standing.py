"""How each peer stands: what it lacks, what we lack, and the reason; "unknown" where it is.

Equal digests prove equality; nothing else is shown as in sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crdt.log import Vector
from keys.ids import DeviceId
from keys.statements import RIGHTS
from memory.peers import Peer
from memory.store import AgentStore
from node.exchange import Exchange, PeerState, Told
from node.handle import AgentHandle
from node.times import iso
from sync.plan import entries_of, lacking
from sync.reasons import SENTENCES, Missing

Result = dict[str, Any]


async def peer_row(exchange: Exchange, peer: Peer) -> Result:
    """One peer."""
    state = exchange.peer(peer.device)
    agents = [await _agent_row(exchange, peer, state, h) for h in exchange.core.agents.all()]
    return {
        "device": str(peer.device),
        "name": peer.shown_name,
        "owner": str(peer.owner) if peer.owner else None,
        "state": _state(peer, state),
        "last_seen": iso(peer.last_seen_us),
        "clock_offset_ms": peer.clock_offset_ms,
        "addresses": list(dict.fromkeys(a.address for a in peer.addresses)),
        "cloned": [s.address for s in state.copies()],
        "error": state.error,
        "agents": [row for row in agents if row is not None],
    }


def _state(peer: Peer, state: PeerState) -> str:
    if state.connected:
        return "connected"
    return "offline" if peer.last_seen_us is not None else "unknown"


async def _agent_row(
    exchange: Exchange, peer: Peer, state: PeerState, handle: AgentHandle
) -> Result | None:
    """One agent at one peer; None where neither may read it from the other."""
    told = state.told(handle.agent)
    rights = _rights(handle, peer.device)
    if not rights and not told.shared:
        return None

    def look(store: AgentStore) -> tuple[Vector, bytes, bool]:
        return store.vector(), store.vector_digest(), store.waiting_for_key

    mine, digest, waiting = await handle.read(look)
    they_lack, we_lack = _lacks(mine, digest, told)
    reason = _reason(state, told, they_lack, we_lack, waiting=waiting)
    return {
        "agent": str(handle.agent),
        "name": handle.name,
        "rights": rights,
        "forged": len(told.forged),
        "they_lack": they_lack,
        "we_lack": we_lack,
        "reason": reason.value if reason else None,
        "why": SENTENCES[reason] if reason else None,
    }


def _rights(handle: AgentHandle, device: DeviceId) -> list[str]:
    authority = handle.store.authority
    return [right for right in RIGHTS if authority.holds_device(device, right).held]


def _lacks(mine: Vector, digest: bytes, told: Told) -> tuple[int | None, int | None]:
    """(what they lack, what we lack); None where the peer has not told."""
    if told.vector_digest == digest:
        return 0, 0
    if told.vector is None:
        return None, None
    return entries_of(lacking(told.vector, mine)), entries_of(lacking(mine, told.vector))


def _reason(
    state: PeerState, told: Told, they_lack: int | None, we_lack: int | None, *, waiting: bool
) -> Missing | None:
    if they_lack == 0 and we_lack == 0:
        return Missing.WAITING if waiting else None
    if we_lack and told.refused:
        return next(iter(told.refused.values()))
    if told.reason is not None:
        return told.reason
    if not state.connected:
        return Missing.OFFLINE
    return Missing.NOT_ACCEPTED if told.vector is None and not told.shared else None


async def unconfirmed(exchange: Exchange, peers: Sequence[Peer], handle: AgentHandle) -> list[str]:
    """Ids of the peers that may read an agent and have not shown its newest statements."""
    mine = await handle.read(lambda store: store.statements_digest())
    return [
        str(p.device)
        for p in peers
        if exchange.may_read(handle, p.device)
        and exchange.peer(p.device).told(handle.agent).statements_digest != mine
    ]
