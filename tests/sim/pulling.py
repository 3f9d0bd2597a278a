"""One session with a peer: what node.conversation and node.receiving do, over the same machines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from crdt.vector import vector_digest
from keys.errors import BadInput
from node.sharing import keys_in_grants, open_boxes
from sync.catchup import Found, PayloadClient, PayloadEffect, StatementsClient
from sync.errors import StalledError
from sync.messages import (
    HELLO_PATH,
    PAYLOADS_PATH,
    PULL_PATH,
    STATEMENTS_PATH,
    Hello,
    StatementsReply,
    path_of,
)
from sync.outcome import Applied, Rounds, append, outcome_of
from sync.pull import CUT, Append, Effect, PullClient, Refuse, Whole, Withhold, admission
from sync.serve import GONE
from tests.sim.network import RefusedByPeerError, WireError
from tests.sim.serving import hello_of

if TYPE_CHECKING:
    from tests.sim.device import Device

PROOF_MAX = 256
WANTS_MAX = 256
PULLS_MAX = 30


class Session:
    """A device pulls from a peer, until it has what there is or something breaks."""

    def __init__(self, device: Device, peer: Device) -> None:
        self._device, self._peer = device, peer
        self._agent = device.sim.agent
        self._rounds = Rounds()
        self._refused: set[bytes] = set()
        self._theirs: bytes | None = None
        self.new = 0
        self.stalled = False
        self.broken = False
        self.whole = False

    async def run(self) -> None:
        """Hello, statements, entries, payloads."""
        try:
            await self._run()
            self.whole = True
        except WireError:
            self.broken = True
        except RefusedByPeerError:
            self._device.sim.counts["refusals met"] += 1
        except BadInput as exc:  # an answer that was cut is not one
            self.broken = True
            self._device.sim.trace(f"{self._device.name} got a bad answer: {exc.code}")

    async def _run(self) -> None:
        device = self._device
        reply = Hello.decode(await self._ask(HELLO_PATH, hello_of(device, self._peer.device)))
        shared = next((a for a in reply.agents if a.agent == self._agent), None)
        self._theirs = shared.vector_digest if shared else None
        mine, waiting = await device.read(lambda s: (s.statements_digest(), s.waiting_for_key))
        if shared is None or waiting or shared.statements_digest != mine:
            await self._statements(proof=shared is None)
        if not shared and not device.may_read(device.device):
            return
        if not device.may_read(self._peer.device):
            return
        await self._entries()
        await self._payloads()

    async def _ask(self, path: str, message: object) -> bytes:
        body = message.encode()  # type: ignore[attr-defined]
        where = path if path == HELLO_PATH else path_of(path, self._agent)
        return await self._device.sim.network.request(self._device, self._peer, where, body).whole()

    async def _statements(self, *, proof: bool) -> None:
        device = self._device
        shown = await device.read(
            lambda s: s.statements_missing(frozenset())[-PROOF_MAX:] if proof else []
        )
        ids = await device.read(lambda store: store.statement_ids())
        asking = StatementsClient(self._agent, [*ids, *sorted(self._refused)], shown)
        while asking.wants_more:
            page = asking.take(
                StatementsReply.decode(await self._ask(STATEMENTS_PATH, asking.request()))
            )
            self._refused.update(bytes(i) for i in page.refused)
            found = page.statements
            if found:
                await device.hop(partial(device.learn_statements, found))
                self._rounds.changed()
            keys = [
                *open_boxes(device.key, page.keys),
                *keys_in_grants(device.key, found),
            ]
            if keys:
                await device.hop(partial(device.take_keys, keys))

    # -- entries ---------------------------------------------------------------------------------

    async def _entries(self) -> None:
        for _ in range(PULLS_MAX):
            mine = await self._device.read(lambda store: store.vector_digest())
            if self._theirs is not None and not self._rounds.may_pull(mine, self._theirs):
                return
            if not await self._pull():
                return
        raise AssertionError("a session that pulls for ever")

    async def _pull(self) -> bool:
        """One answer; whether to ask again."""
        device = self._device
        have, authority = await device.read(lambda s: (s.vector(), s.authority))
        client = PullClient(
            self._agent,
            have,
            admits=admission(authority),
            skip=self._rounds.skip,
            limit=device.random.choice(device.sim.pull_limits),
        )
        where = path_of(PULL_PATH, self._agent)
        stream = device.sim.network.request(device, self._peer, where, client.request.encode())
        new, failure = 0, False
        while not client.over:
            try:
                chunk = await stream.next()
            except WireError:
                failure, chunk = True, None
            effects = client.closed() if chunk is None else client.feed(chunk)
            for effect in effects:
                new += await self._carry_out(client, effect)
        self.new += new
        if failure and client.tally.expected == 0:
            raise WireError
        outcome = outcome_of(client, await device.read(lambda store: store.vector()))
        if outcome.error == CUT:
            raise WireError
        if outcome.error == GONE:
            raise RefusedByPeerError
        mine = await device.read(lambda store: store.vector_digest())
        try:
            self._rounds.finished(outcome, new, (mine, self._theirs or b""))
        except StalledError:
            self.stalled = True
            return False
        return outcome.more and new > 0

    async def _carry_out(self, client: PullClient, effect: Effect) -> int:
        device = self._device
        match effect:
            case Append():
                applied = await device.receive(lambda _s, now: self._append(effect, now))
                for refusal in applied.refused:
                    self._note_refusal(client, refusal)
                return applied.new
            case Withhold(tombstones):
                await device.receive(lambda store, _now_us: store.add_ahead(tombstones))
            case Refuse():
                self._note_refusal(client, effect)
            case Whole(vector):
                self._theirs = vector_digest(vector)
                await device.compare_own(vector)
            case _:
                pass
        return 0

    def _append(self, effect: Append, now_us: int) -> Applied:
        for run in effect.runs:
            self._device.note_own(run.log, run.first_seq + len(run.entries) - 1)
        return append(self._device.store, effect.runs, now_us)

    def _note_refusal(self, client: PullClient, refusal: Refuse) -> None:
        self._device.sim.counts[f"refused: {refusal.reason.value}"] += 1
        if refusal.log is not None:
            client.refuse(refusal.log, refusal.reason)

    # -- payloads --------------------------------------------------------------------------------

    async def _payloads(self) -> None:
        device = self._device
        wanted = await device.read(lambda store: store.wants(WANTS_MAX))
        if not wanted:
            return
        asking = PayloadClient(wanted)
        where = path_of(PAYLOADS_PATH, self._agent)
        stream = device.sim.network.request(device, self._peer, where, asking.request.encode())
        while not asking.over:
            try:
                chunk = await stream.next()
            except WireError:
                chunk = None
            for effect in asking.closed() if chunk is None else asking.feed(chunk):
                await self._keep(effect)

    async def _keep(self, effect: PayloadEffect) -> None:
        if isinstance(effect, Found):
            took = await self._device.receive(
                lambda store, now_us: store.add_payloads(effect.payloads, now_us)
            )
            self._device.sim.counts["payloads fetched"] += took
