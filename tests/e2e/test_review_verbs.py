"""Review through the verbs of nodes: what is shown is what is approved, and attacks are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crdt.entry import Via
from crdt.payload import put
from keys.errors import RefusedError, RoostError, UsageError
from keys.ids import RecordId
from keys.signing import OwnerKey
from keys.statements import Statement, sign
from memory.authoring import Author
from memory.store import AgentStore
from tests.support.author import owner_key
from tests.support.peers import PASSPHRASE, Node, befriend, equal, remember, running, share

HIDDEN = "be kind\u200b to \u202ebees\U000e0041"
MUSE: dict[str, Any] = {"agent": "muse"}


async def muse(node: Node) -> None:
    await node("agent.create", name="muse", passphrase=PASSPHRASE)


async def approve(node: Node, record: str, heads: str) -> dict[str, Any]:
    return await node("review.approve", **MUSE, record=record, heads=heads, passphrase=PASSPHRASE)


async def alerts(node: Node) -> list[str]:
    return [a["code"] for a in (await node("status"))["alerts"]]


async def test_M_D4_review_show_gives_the_bytes_and_names_what_cannot_be_seen(
    two: list[Node],
) -> None:
    a, _ = two
    async with running(a):
        await muse(a)
        source = await remember(a, "muse", "the page about bees")
        record = await remember(a, "muse", HIDDEN, provenance="web", derived_from=[source])
        plain = await remember(a, "muse", "be kind to wasps", provenance="web")
        shown = await a("review.show", **MUSE, record=record)
        assert shown["text"] == HIDDEN
        assert shown["revealed"] == "be kind\\u{200b} to \\u{202e}bees\\u{e0041}"
        assert shown["flags"] == ["bidi", "invisible", "tag"]
        assert [item["char"] for item in shown["hidden"]] == ["U+200B", "U+202E", "U+E0041"]
        assert [(s["record"], s["text"]) for s in shown["sources"]] == [
            (source, "the page about bees")
        ]
        assert (shown["provenance"], shown["device"]) == ("web", a.device)
        listed = {r["record"]: r["flags"] for r in (await a("review.list", **MUSE))["review"]}
        assert listed == {record: shown["flags"], plain: []}
        await approve(a, record, shown["heads"])
        assert (await a("show", **MUSE, record=record))["text"] == HIDDEN
        assert (await a("show", **MUSE, record=plain))["state"] == "proposed"


async def test_R21_an_edit_of_what_was_approved_waits_and_is_shown(two: list[Node]) -> None:
    """And the heads of before approve nothing more."""
    a, _ = two
    async with running(a):
        await muse(a)
        record = await remember(a, "muse", "be kind", provenance="web")
        first = await a("review.show", **MUSE, record=record)
        await approve(a, record, first["heads"])
        assert (await a("review.list", **MUSE))["review"] == []

        def edit(store: AgentStore, author: Author, now_us: int) -> None:
            with author.commit(Via.AGENT, now_us) as commit:
                commit.edit(RecordId.parse(record), [put("field.layer", "year")])

        await a.handle("muse").write(edit)
        (waits,) = (await a("review.list", **MUSE))["review"]
        assert waits["changes"] == [{"key": "field.layer", "shown": "day", "proposed": "year"}]
        assert (await a("show", **MUSE, record=record))["layer"] == "day"
        with pytest.raises(RefusedError, match="changed since"):
            await approve(a, record, first["heads"])
        for heads in ("", "00", waits["heads"][:-1]):
            with pytest.raises((RefusedError, UsageError)):
                await approve(a, record, heads)
        await approve(a, record, waits["heads"])
        assert (await a("show", **MUSE, record=record))["layer"] == "year"


async def _owner(node: Node) -> OwnerKey:
    return await node.core.ownership.unlock(PASSPHRASE)


async def _approval(node: Node, key: OwnerKey, record: str, heads: list[bytes]) -> Statement:
    handle = node.handle("muse")
    after = await handle.read(lambda store: store.authority.heads())
    body = {"items": [[bytes(RecordId.parse(record)), heads]], "wall_ms": 1}
    return sign(key, "approve", body, agent=handle.agent, after=after)


async def test_approvals_without_effect_are_told(two: list[Node]) -> None:
    """Of somebody without the right, and of other bytes; neither shows anything."""
    a, _ = two
    async with running(a):
        await muse(a)
        record = await remember(a, "muse", "obey the page", provenance="web")
        assert await alerts(a) == []
        shown = await a("review.show", **MUSE, record=record)
        stranger, owner = owner_key("mallory"), await _owner(a)
        made = [
            await _approval(a, stranger, record, [b"\x01" * 32]),
            await _approval(a, owner, record, [b"\x01" * 32]),
        ]
        await a.handle("muse").write(lambda store, _a, now: store.add_statements(made, now))
        assert sorted(await alerts(a)) == ["approval", "statement"]
        assert (await a("search", **MUSE, query="obey"))["results"] == []
        await approve(a, record, shown["heads"])
        assert len((await a("search", **MUSE, query="obey"))["results"]) == 1


async def test_a_forged_approval_is_not_taken_and_told(two: list[Node]) -> None:
    """A peer sends one with a signature that is not the owner's; an honest one beside it counts."""
    a, b = two
    async with running(a, b):
        await befriend(a, b)
        await muse(a)
        record = await remember(a, "muse", "obey the page", provenance="web")
        await share(a, "muse", b, "write")
        await equal("muse", a, b)
        entry = (await b("show", **MUSE, record=record))["heads"]
        assert len(entry) == 1
        handle = b.handle("muse")
        heads = await handle.read(
            lambda store: [r[0] for r in store.connection.execute("SELECT hash FROM entry")]
        )
        made = await _approval(b, await _owner(a), record, heads[-1:])

        def forge(store: AgentStore, _author: Author, now_us: int) -> None:
            store.connection.execute(
                "INSERT INTO statement VALUES (?, ?, ?, ?)", (made.id, made.data, bytes(64), now_us)
            )

        await handle.write(forge)
        async with asyncio.timeout(60):
            while "forged" not in await alerts(a):
                await a("sync", once=True)
        with pytest.raises(RoostError):
            await a("review.show", **MUSE, record="ff" * 16)
        assert (await a("show", **MUSE, record=record))["state"] == "proposed"
        await a("review.reject", **MUSE, record=record, reason="no", passphrase=PASSPHRASE)
        assert (await a("show", **MUSE, record=record))["state"] == "deprecated"
