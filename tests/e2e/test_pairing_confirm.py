"""Whom the opener's person does not confirm becomes no device of theirs (R39, decision 9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keys.errors import NotFoundError, PairingError
from tests.support.opening import Opening, reason
from tests.support.peers import PASSPHRASE, Node, running


class Asked(Opening):
    """``pair open --mine`` by a person on a terminal, who is asked."""

    def __init__(self, node: Node, tasks: asyncio.TaskGroup, answer: bool) -> None:
        super().__init__(node, tasks, mine=True, passphrase=PASSPHRASE, ask=True)
        self._node, self._answer = node, answer

    async def _emit(self, event: dict[str, Any]) -> None:
        await super()._emit(event)
        if event["event"] == "confirm":
            await self._node("pair.confirm", device=event["device"], yes=self._answer)


@pytest.mark.parametrize("answer", [True, False])
async def test_mine_asks_the_openers_person_before_anything_is_signed(
    two: list[Node], answer: bool
) -> None:
    """R39: no certificate and no vault for a device that the person does not confirm."""
    a, b = two
    async with running(a, b) as tasks:
        owner = await a.core.ownership.owner()
        before = await asyncio.to_thread(b.core.home.vault_path.read_bytes)
        opening = Asked(a, tasks, answer)
        joining = b("pair.join", address=a.address, code=await opening.code(), mine=True)
        if answer:
            await joining
            assert await opening.failure() is None
        else:
            with pytest.raises(PairingError) as told:
                await joining
            assert reason(told.value) == reason(await opening.failure()) == "declined"
        assert [e["event"] for e in opening.events][:2] == ["open", "confirm"]
        assert opening.events[1]["device"] == b.device
        certified = [
            s
            for s in await a.core.ownership.certificates(owner)
            if s.body["device"] != a.core.device
        ]
        after = await asyncio.to_thread(b.core.home.vault_path.read_bytes)
        assert bool(certified) is answer
        assert (after != before) is answer
        assert bool((await a("peers"))["peers"]) is answer


async def test_only_the_device_that_is_asked_about_can_be_confirmed(two: list[Node]) -> None:
    a, b = two
    async with running(a, b):
        with pytest.raises(NotFoundError):
            await a("pair.confirm", device=b.device, yes=True)
