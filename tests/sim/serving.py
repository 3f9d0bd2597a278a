"""What a simulated device answers: the machines of ``sync.serve``, driven as node.serving does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from crdt.vector import vector_digest
from keys.authority import Authority
from keys.ids import DeviceId
from node.serving import statements_for
from sync.messages import (
    NOT_FOUND,
    VERSIONS,
    Hello,
    PayloadsRequest,
    PullRequest,
    Refusal,
    SharedAgent,
    StatementsRequest,
    agent_of_path,
    agreed_version,
)
from sync.serve import PayloadServer, PullServer, proof_in

if TYPE_CHECKING:
    from tests.sim.device import Device

RUN_BYTES = 2048


def hello_of(device: Device, peer: DeviceId) -> Hello:
    """What to tell a peer of ourselves."""
    store, shared = device.store, []
    if device.has_agent and device.may_read(peer):
        digests = (vector_digest(store.vector()), store.statements_digest())
        shared.append(SharedAgent(store.agent, *digests))
    return Hello(
        versions=VERSIONS,
        device_name=device.name,
        boot_nonce=device.boots.to_bytes(8, "big") + bytes(8),
        clock_ms=device.now_ms,
        addresses=(),
        agents=tuple(shared),
    )


async def answer(
    device: Device, peer: DeviceId, path: str, body: bytes
) -> AsyncIterator[bytes | Refusal]:
    """The pieces of an answer; a refusal is the only piece."""
    match path.split("/"):
        case ["", "v1", "hello"]:
            agreed_version(Hello.decode(body).versions)
            yield (await device.read(lambda _store: hello_of(device, peer))).encode()
        case ["", "v1", "agents", agent, what] if agent_of_path(agent) == device.sim.agent:
            if not device.has_agent:
                yield NOT_FOUND
                return
            if what == "statements":
                yield await _statements(device, peer, body)
                return
            async for piece in _stream(device, peer, what, body):
                yield piece
        case _:
            yield NOT_FOUND


async def _statements(device: Device, peer: DeviceId, body: bytes) -> bytes | Refusal:
    asked = StatementsRequest.decode(body)
    proof = proof_in(asked, device.sim.agent) if asked.proof else []
    if proof and not device.may_read(peer):
        now_ms = device.now_ms

        def take() -> None:
            store = device.store
            together = Authority(store.agent, [*store.statements(), *proof])
            if together.holds_device(peer, "read", now_ms).held:
                store.add_statements(proof, device.now_us)
                device.sim.counts["proofs taken"] += 1

        await device.hop(take)
    now_ms = device.now_ms
    reply = await device.read(lambda store: statements_for(store, peer, asked, now_ms))
    return NOT_FOUND if reply is None else reply.encode()


async def _stream(
    device: Device, peer: DeviceId, what: str, body: bytes
) -> AsyncIterator[bytes | Refusal]:
    server: PullServer | PayloadServer
    if what == "pull":
        asked = PullRequest.decode(body)
        if not device.may_read(peer):
            yield NOT_FOUND
            return
        await device.compare_own(asked.have)
        server = PullServer(
            device.store, asked, lambda: device.may_read(peer), bytes_target=RUN_BYTES
        )
    else:
        wanted = PayloadsRequest.decode(body)
        server = PayloadServer(device.store, wanted, lambda: device.may_read(peer))
    piece = await device.read(lambda _store: server.next_piece())
    if piece is None:
        yield NOT_FOUND
    while piece is not None:
        yield piece
        piece = await device.read(lambda _store: server.next_piece())
