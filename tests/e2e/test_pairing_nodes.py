"""Two nodes pair with a code over real TLS, and fail to, each way, with both sides told."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from keys.address import Address
from keys.errors import PairingError, RefusedError, UnreachableError
from keys.limits import PAIR_CONNECTIONS_MAX
from keys.pair_code import pick_digits
from keys.signing import DeviceKey
from keys.statements import device_proof
from keys.tls import pairing_client_context, pairing_server_context
from node.pairwire import PROTOCOL, PairStream
from node.sharing import spread
from tests.support.opening import Opening, reason
from tests.support.peers import PASSPHRASE, Node, equal, pair, running, until_true


def other_code(code: str) -> str:
    """A code of the same device that is wrong."""
    return code[:2] + f"{(int(code[2:]) + 1) % 10_000:04}"


async def test_both_sides_are_told_and_keep_each_other(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        joined = await b("pair.join", address=a.address, code=await opening.code())
        assert (joined["device"], joined["name"]) == (a.device, "a")
        assert await opening.failure() is None
        first, last = opening.events
        assert first["event"] == "open"
        assert first["uri"].startswith("roost://pair?")
        assert (last["event"], last["device"], last["name"]) == ("paired", b.device, "b")
        for node, other in ((a, b), (b, a)):
            (peer,) = (await node("peers"))["peers"]
            assert peer["device"] == other.device
            assert other.address in peer["addresses"]
            assert peer["owner"] == str(await other.core.ownership.owner())


async def test_the_link_carries_address_and_code(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        await opening.code()
        await b("pair.join", uri=opening.events[0]["uri"])
        assert await opening.failure() is None


async def test_mine_makes_the_joiner_a_device_of_the_openers_owner(
    two: list[Node], tmp_path: Path
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        before = await asyncio.to_thread(b.core.home.vault_path.read_bytes)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await pair(a, b, tasks, mine=True)
        assert await b.core.ownership.owner() == await a.core.ownership.owner()
        assert await b.core.ownership.recovery() == await a.core.ownership.recovery()
        key = await b.core.ownership.unlock(PASSPHRASE)
        assert key.owner == await a.core.ownership.owner()
        aside = b.core.home.vault_path.with_name("owner.vault.before")
        assert await asyncio.to_thread(aside.read_bytes) == before
        await equal("muse", a, b)
        await b("agent.create", name="clio", passphrase=PASSPHRASE)
        await equal("clio", a, b)


async def test_mine_needs_the_openers_passphrase_before_there_is_a_code(two: list[Node]) -> None:
    a, _ = two
    async with running(a) as tasks:
        opening = Opening(a, tasks, mine=True, passphrase="not the passphrase")
        failure = await opening.failure()
        assert isinstance(failure, RefusedError)
        assert opening.events == []


async def test_mine_into_a_home_with_agents_is_refused_and_says_why(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await b("agent.create", name="own", passphrase=PASSPHRASE)
        opening = Opening(a, tasks, mine=True, passphrase=PASSPHRASE)
        with pytest.raises(RefusedError, match="has agents of its own"):
            await b("pair.join", address=a.address, code=await opening.code(), mine=True)
        assert reason(await opening.failure()) == "closed"
        assert (await a("peers"))["peers"] == (await b("peers"))["peers"] == []
        assert await b.core.ownership.owner() != await a.core.ownership.owner()


async def test_S_D5_mine_after_one_that_broke_off_once_the_certificate_was_signed(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        owner, device = await a.core.ownership.owner(), b.core.key
        proof = device_proof(device, owner)
        key = await a.core.ownership.unlock(PASSPHRASE)
        await a.core.ownership.certify(key, device.public, "b", proof)
        await spread(a.core)
        await pair(a, b, tasks, mine=False)
        await equal("muse", a, b)
        assert await b.core.ownership.owner() != owner
        await pair(a, b, tasks, mine=True)
        assert await b.core.ownership.owner() == owner
        assert (await b.core.ownership.unlock(PASSPHRASE)).owner == owner


async def test_pairing_a_device_of_the_owner_again_is_no_move(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        await pair(a, b, tasks)
        await a("agent.create", name="muse", passphrase=PASSPHRASE)
        await equal("muse", a, b)
        await b("peers.remove", device=a.device)
        await pair(a, b, tasks)
        await equal("muse", a, b)


async def test_s_m3_a_wrong_code_is_dead_and_both_sides_hear_so(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        code = await opening.code()
        with pytest.raises(PairingError, match="wrong") as failed:
            await b("pair.join", address=a.address, code=other_code(code))
        assert reason(failed.value) == "wrong_code"
        assert "new code" in str(failed.value.hint)
        assert reason(await opening.failure()) == "wrong_code"
        with pytest.raises(UnreachableError):
            await b("pair.join", address=a.address, code=code)
        assert (await a("peers"))["peers"] == (await b("peers"))["peers"] == []


async def test_a_code_of_another_device_is_not_sent(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        code = await opening.code()
        strange = f"{(int(code[:2]) + 1) % 100:02}{code[2:]}"
        with pytest.raises(PairingError) as failed:
            await b("pair.join", address=a.address, code=strange)
        assert reason(failed.value) == "another_device"
        await b("pair.join", address=a.address, code=code)  # it was not used up
        assert await opening.failure() is None


async def test_one_side_with_mine_is_told_and_the_code_stays_good(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        code = await opening.code()
        with pytest.raises(PairingError) as failed:
            await b("pair.join", address=a.address, code=code, mine=True)
        assert reason(failed.value) == "mine"
        await b("pair.join", address=a.address, code=code)
        assert await opening.failure() is None
        assert [e["event"] for e in opening.events] == ["open", "attempt", "paired"]


async def test_nobody_comes_and_the_error_names_ports_and_firewall(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks, ttl=1)
        code = await opening.code()
        failure = await opening.failure()
        assert reason(failure) == "expired"
        with pytest.raises(UnreachableError) as failed:
            await b("pair.join", address=a.address, code=code)
        assert isinstance(failure, PairingError)
        for hint in (failure.hint, failed.value.hint):
            assert "7667/TCP" in str(hint)
            assert "5353/UDP" in str(hint)


async def test_the_listener_is_there_only_while_a_person_pairs(two: list[Node]) -> None:
    a, _ = two
    async with running(a) as tasks:
        opening = Opening(a, tasks)
        address = Address.parse(await opening.address())
        stream, device = await PairStream.dial(address)
        assert device == a.core.device
        await stream.close()
        opening.cancel()
        await until_true(lambda: _closed(address))


async def _closed(address: Address) -> bool:
    try:
        stream, _ = await PairStream.dial(address)
    except UnreachableError:
        return True
    await stream.close()
    return False


async def test_after_five_codes_there_is_a_pause_that_a_restart_does_not_end(
    two: list[Node],
) -> None:
    a, _ = two
    async with running(a) as tasks:
        for _ in range(5):
            opening = Opening(a, tasks)
            await opening.code()
            opening.cancel()
            await until_true(lambda: a.network.pairing._shown is None)
        await a.stop()
        await a.start(tasks)
        failure = await Opening(a, tasks).failure()
        assert reason(failure) == "paused"
        assert isinstance(failure, PairingError)
        assert 0 < int(str(failure.details["wait_s"])) <= 600


async def test_connections_to_an_open_code_are_bounded_and_do_not_keep_the_joiner_out(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        address = Address.parse(await opening.address())
        idle = [await PairStream.dial(address) for _ in range(PAIR_CONNECTIONS_MAX + 4)]
        await asyncio.sleep(0.1)
        alive = [s for s, _ in idle if not s._reader.at_eof()]
        assert len(alive) <= PAIR_CONNECTIONS_MAX
        await b("pair.join", address=a.address, code=await opening.code())
        assert await opening.failure() is None
        for stream, _ in idle:
            await stream.close()


async def test_who_asks_while_a_code_is_open_is_shown_that_one(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        first, second = Opening(a, tasks), Opening(a, tasks)
        code = await first.code()
        assert await second.code() == code
        mine = await Opening(a, tasks, mine=True, passphrase=PASSPHRASE).failure()
        assert isinstance(mine, RefusedError)
        await b("pair.join", address=a.address, code=code)
        assert await first.failure() is None
        assert await second.failure() is None
        assert first.events == second.events


async def test_who_shares_a_code_hears_how_it_ended(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        first, second = Opening(a, tasks), Opening(a, tasks)
        assert await second.code() == await first.code()
        with pytest.raises(PairingError):
            await b("pair.join", address=a.address, code=other_code(await first.code()))
        assert reason(await first.failure()) == reason(await second.failure()) == "wrong_code"


async def test_who_shares_a_code_gets_one_of_its_own_when_the_first_leaves(
    two: list[Node],
) -> None:
    a, b = two
    async with running(a, b) as tasks:
        first, second = Opening(a, tasks), Opening(a, tasks)
        await second.code()
        first.cancel()
        await until_true(lambda: len(second.events) == 2)
        await b("pair.join", address=a.address, code=second.events[1]["code"])
        assert await second.failure() is None
        assert [e["event"] for e in second.events] == ["open", "open", "paired"]


async def test_a_man_in_the_middle_with_a_key_of_his_own_gets_nothing(two: list[Node]) -> None:
    """He is the leaf that the joiner sees, and relays everything else to the true opener."""
    a, b = two
    async with running(a, b) as tasks:
        middle = await asyncio.to_thread(_key_with_picks, pick_digits(a.core.device))
        opening = Opening(a, tasks)
        target = Address.parse(await opening.address())
        async with _relay(middle, target) as address:
            with pytest.raises(PairingError) as failed:
                await b("pair.join", address=address, code=await opening.code())
        assert reason(failed.value) == "wrong_code"
        assert reason(await opening.failure()) in ("wrong_code", "closed")
        assert (await a("peers"))["peers"] == (await b("peers"))["peers"] == []


async def test_a_relay_of_bytes_is_a_wire_and_sees_nothing(two: list[Node]) -> None:
    a, b = two
    async with running(a, b) as tasks:
        opening = Opening(a, tasks)
        host, port = (await opening.address()).split(":")

        async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            async with asyncio.TaskGroup() as pipes:
                pipes.create_task(_pump(reader, far_writer))
                pipes.create_task(_pump(far_reader, writer))

        server = await asyncio.start_server(pipe, "127.0.0.1", 0)
        place = server.sockets[0].getsockname()
        await b("pair.join", address=f"{place[0]}:{place[1]}", code=await opening.code())
        assert await opening.failure() is None  # end to end: the relay saw nothing of it
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    writer.close()


def _key_with_picks(picks: str) -> DeviceKey:
    """Ground in a moment: two digits are no secret."""
    while pick_digits((key := DeviceKey.generate()).device) != picks:
        pass
    return key


@contextlib.asynccontextmanager
async def _relay(key: DeviceKey, target: Address) -> Any:
    context = await asyncio.to_thread(pairing_server_context, key)
    context.set_alpn_protocols([PROTOCOL])
    onward: ssl.SSLContext = pairing_client_context()
    onward.set_alpn_protocols([PROTOCOL])

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(
            target.host, target.port, ssl=onward, server_hostname=""
        )
        async with asyncio.TaskGroup() as pipes:
            pipes.create_task(_pump(reader, far_writer))
            pipes.create_task(_pump(far_reader, writer))

    server = await asyncio.start_server(pipe, "127.0.0.1", 0, ssl=context)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
