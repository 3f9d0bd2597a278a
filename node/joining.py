"""Joining with a code: find the listener that the code is of, prove, exchange, store.

1. Every address is called at once, with the ports after it where pairing may listen. Only a leaf
   that the code's first two digits pick, and that is the device meant if one is, is spoken to.
2. With ``mine`` this home moves in with the opener's owner: refused, before the proof, where that
   cannot be.
3. We store, and let the opener in, before we tell it so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from keys.address import Address
from keys.errors import BadInput, PairingError, RoostError, UnreachableError
from keys.ids import DeviceId
from keys.limits import PAIR_PORTS_TRIED
from keys.pair_code import Reason, check_picks, failed, parse_code
from keys.pair_messages import ANSWER, decode_greeting, encode_refused
from keys.pairing import Joiner, Paired
from node.gifts import STORED, Gifts, decode_owners, opener_gift
from node.listen import PORT_MAX
from node.pairing import FIREWALL, PairingService, as_pairing_error
from node.pairwire import CONFIRM_S, STALL_S, PairStream

CALLS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to join: where it may listen, its code, and which device is meant, if one is."""

    addresses: tuple[Address, ...]
    code: str
    device: DeviceId | None = None


async def join(service: PairingService, target: Target, *, mine: bool) -> dict[str, Any]:
    """Pair with whoever shows the code; ``{"device", "name"}`` of the other side.

    Raises ``PairingError``, or ``UnreachableError`` where nobody pairs.
    """
    code = parse_code(target.code)
    stream, leaf = await _find(target, code)
    try:
        paired = await _exchange(service, stream, leaf, target, mine=mine)
    except RoostError as exc:
        shown = as_pairing_error(exc) if isinstance(exc, (UnreachableError, BadInput)) else exc
        with contextlib.suppress(RoostError):
            await stream.send(encode_refused(shown))
        raise shown from exc.__cause__
    finally:
        await stream.close()
    return {"device": str(paired.device), "name": paired.introduction.name, "mine": mine}


async def _exchange(
    service: PairingService, stream: PairStream, leaf: DeviceId, target: Target, *, mine: bool
) -> Paired:
    household = service.household
    me = await service.introduction(mine=mine)
    machine = Joiner(service.core.key, me, leaf, target.code, target.device)
    await stream.send(await asyncio.to_thread(machine.start))
    answer = await stream.receive()
    confirm = await asyncio.to_thread(machine.receive, answer)
    assert confirm is not None, "an answer is confirmed"
    if mine:
        owner = decode_greeting(answer, ANSWER).introduction.owner.owner
        await household.check_may_move_in(owner)
    await stream.send(confirm)
    await asyncio.to_thread(machine.receive, await stream.receive())
    paired = machine.paired
    gifts = Gifts(stream, paired.channel)
    await gifts.send_statements(await household.statements())
    owners = decode_owners(paired.extra) if mine else []
    await gifts.send(household.proofs(owners).encode())
    # With mine their person may be asked about us first.
    theirs, rest = await gifts.receive(STALL_S + CONFIRM_S if mine else STALL_S)
    gift = opener_gift(rest)
    if mine:
        await household.move_in(paired, gift, theirs)
    await household.know(paired.introduction.owner.owner, theirs)
    await service.keep(paired, stream.host)
    await gifts.send([STORED])
    await service.follow(paired.device)
    return paired


async def _find(target: Target, code: str) -> tuple[PairStream, DeviceId]:
    """The pairing listener that the code is of."""
    found: list[tuple[PairStream, DeviceId]] = []
    others: list[DeviceId] = []
    async with asyncio.TaskGroup() as tasks:

        async def call(address: Address) -> None:
            try:
                stream, device = await PairStream.dial(address)
            except UnreachableError:
                return
            if found or not _is_meant(target, code, device):
                others.append(device)
                await stream.close()
                return
            found.append((stream, device))
            for other in calls:
                if other is not asyncio.current_task():
                    other.cancel()

        calls = [tasks.create_task(call(a), name="pair call") for a in places(target.addresses)]
    if found:
        return found[0]
    if others:
        raise failed(Reason.ANOTHER_DEVICE)
    shown = ", ".join(str(a) for a in target.addresses) or "any address"
    raise UnreachableError(
        f"no device shows a code at {shown}", hint=f"is `roost pair open` waiting there? {FIREWALL}"
    )


def _is_meant(target: Target, code: str, device: DeviceId) -> bool:
    if target.device not in (None, device):
        return False
    try:
        check_picks(code, device)
    except PairingError:
        return False
    return True


def places(addresses: Sequence[Address]) -> list[Address]:
    """The addresses, each with the ports after it where a pairing listener may be."""
    found = [
        Address(a.host, port)
        for a in addresses
        for port in range(a.port, min(a.port + PAIR_PORTS_TRIED, PORT_MAX) + 1)
    ]
    return list(dict.fromkeys(found))[:CALLS_MAX]
