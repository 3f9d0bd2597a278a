"""The negative matrix: what no agent may be shown, by every way of reading, on three nodes.

Real nodes on loopback: A writes, B holds a copy, C joins when all is done. Each row is a memory
that must not be shown and a control beside it, found by the same word, that must. A cell is one
way of reading, with an agent's credential, on one node; it looks for the memory's marker or id
anywhere in the answer. ``python -m tests.eval.matrix`` prints it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keys.errors import NotFoundError, RoostError
from node.caller import ACCOUNT, Credential
from node.params import UnknownParameterError
from node.rules import NotForAgentsError
from node.times import iso
from tests.support.peers import PASSPHRASE, Node, befriend, equal, running, share

HOUR_US: Final = 3_600_000_000
ROWS: Final = (
    "proposed",
    "deprecated",
    "superseded",
    "expired",
    "erased",
    "other agent",
    "other channel",
    "not valid at T",
    "not yet believed at T",
)
WAYS: Final = ("search", "context", "list", "show", "export", "summaries")
NODES: Final = ("A", "B", "C")
# Ways that have no T of their own: asking them for one is refused, which is what is looked at.
TIMELESS: Final = ("context", "show", "export", "summaries")


@dataclass(frozen=True)
class Row:
    """One memory that is not to be shown, and its control."""

    name: str
    word: str
    marker: str
    record: str
    control: str
    agent: str = "muse"  # whose memory it is
    kind: str = "observation"
    channel: str | None = None
    at: str | None = None
    as_of: str | None = None


@dataclass(frozen=True)
class Cell:
    """What one way of reading gave: ``leaked`` must be false, ``control`` true."""

    row: str
    way: str
    node: str
    leaked: bool
    control: bool
    said: str

    def __str__(self) -> str:
        leak = "LEAK" if self.leaked else "nothing"
        seen = "seen" if self.control else "NOT SEEN"
        return f"{self.row:22} {self.way:10} {self.node}  {leak:8} control {seen:9} {self.said}"


async def matrix(directory: Path) -> list[Cell]:
    """Every cell, in order."""
    a, b, c = [await asyncio.to_thread(Node, directory / name) for name in ("a", "b", "c")]
    async with running(a, b, c):
        for agent in ("muse", "other"):
            await a("agent.create", name=agent, passphrase=PASSPHRASE)
        await befriend(a, b)
        await share(a, "muse", b, "write")
        await share(a, "other", b, "write")
        rows = await _write(a, (a, b, c))
        await equal("muse", a, b)
        await equal("other", a, b)
        await befriend(a, c)
        await share(a, "muse", c, "write")
        await share(a, "other", c, "write")
        for node in (a, b, c):
            node.clock.offset_us += 2 * HOUR_US  # what expires has expired
        for row in rows:
            for name, node in zip(NODES, (a, b, c), strict=True):
                assert await _is_here(node, row), f"{row.name} has not come to {name}"
        return [
            await _cell(node, name, row, way)
            for row in rows
            for way in WAYS
            for name, node in zip(NODES, (a, b, c), strict=True)
        ]


# -- writing -------------------------------------------------------------------------------------


async def _write(node: Node, nodes: Sequence[Node]) -> list[Row]:
    made = _Writer(node)
    rows = [await made.row("proposed", provenance="web")]
    for name, verb, more in (
        ("deprecated", "retire", {"reason": "no longer so"}),
        ("superseded", "revise", {"reason": "put better", "text": "put in other terms"}),
        ("erased", "forget", {"reason": "asked for"}),
    ):
        row = await made.row(name)
        await node(verb, agent="muse", record=row.record, **more)
        rows.append(row)
    soon = iso(node.clock.now_us() + HOUR_US)
    rows.append(await made.row("expired", expires=soon))
    rows.append(await made.row("other agent", agent="other"))
    rows.append(await made.line("other channel"))
    rows.append(
        await made.row(
            "not valid at T",
            at="2020-06-01T00:00:00Z",
            valid_from="2021-01-01T00:00:00Z",
            valid_to="2022-01-01T00:00:00Z",
        )
    )
    row = await made.row("not yet believed at T", late=nodes)
    rows.append(row)
    return sorted(rows, key=lambda r: ROWS.index(r.name))


class _Writer:
    """Writes rows: each with a word of its own."""

    def __init__(self, node: Node) -> None:
        self._node, self._rows = node, 0

    def _words(self) -> tuple[str, str]:
        self._rows += 1
        return f"zebra{self._rows}q", f"marker{self._rows}q"

    async def row(
        self,
        name: str,
        *,
        agent: str = "muse",
        at: str | None = None,
        late: Sequence[Node] = (),
        **more: Any,
    ) -> Row:
        """A memory and its control; with ``late`` clocks the memory comes well after it."""
        word, marker = self._words()
        control = await self._node("remember", agent="muse", text=f"{word} may be seen")
        as_of = None
        if late:
            as_of = iso(self._node.clock.now_us() + HOUR_US // 60)
            for node in late:
                node.clock.offset_us += HOUR_US // 30
        record = await self._node("remember", agent=agent, text=f"{word} {marker}", **more)
        return Row(
            name, word, marker, record["record"], control["record"], agent, at=at, as_of=as_of
        )

    async def line(self, name: str) -> Row:
        """Two lines of the diary, of two channels."""
        word, marker = self._words()
        given = {"agent": "muse"}
        record = await self._node("diary.add", **given, text=f"{word} {marker}", channel="blue")
        control = await self._node("diary.add", **given, text=f"{word} seen", channel="red")
        ids = record["record"], control["record"]
        return Row(name, word, marker, *ids, kind="diary", channel="red")


# -- reading -------------------------------------------------------------------------------------


async def _cell(node: Node, name: str, row: Row, way: str) -> Cell:
    asked = _Asked(node, row, Credential(agent="muse", channel=row.channel))
    if way in TIMELESS and row.as_of is not None:
        said = await asked.for_a_time(way)
        return Cell(row.name, way, name, said != "no T to ask for", True, said)
    hidden, control = await getattr(asked, way)()
    leaked = row.marker in hidden or row.record in hidden
    if way == "show" and row.at is not None:  # by its id, with the times at which it holds
        leaked = '"valid_to": "2022-01-01' not in hidden
    return Cell(row.name, way, name, leaked, control, asked.said)


async def _is_here(node: Node, row: Row) -> bool:
    """Whether a node holds the memory at all: a person's list says so."""
    given: dict[str, Any] = {"agent": row.agent, "limit": 1000, "kinds": [row.kind]}
    if row.name == "erased":
        given |= {"states": ["erased"], "kinds": []}
    found = await node("list", **given)
    return any(r["record"] == row.record for r in found["records"])


class _Asked:
    """One row asked for on one node as its agent."""

    def __init__(self, node: Node, row: Row, credential: Credential) -> None:
        self._node, self._row, self._credential = node, row, credential
        self.said = ""

    async def _ask(self, verb: str, credential: Credential | None = None, **params: Any) -> str:
        """The whole answer, or the whole error, as text."""
        try:
            who = credential or self._credential
            done = await self._node.dispatch.call(verb, params, None, who)
        except RoostError as exc:
            self.said = exc.code
            return json.dumps(exc.as_dict())
        return json.dumps(done)

    def _times(self) -> dict[str, Any]:
        row = self._row
        return {k: v for k, v in (("at", row.at), ("as_of", row.as_of)) if v is not None}

    async def search(self) -> tuple[str, bool]:
        """By the word that both have, with reasons."""
        given: dict[str, Any] = {
            "kinds": [self._row.kind],
            "explain": True,
            "limit": 100,
        } | self._times()
        found = await self._ask("search", query=self._row.word, **given)
        return found, self._row.control in found

    async def context(self) -> tuple[str, bool]:
        """The block for that word, with room for everything."""
        found = await self._ask("context", query=self._row.word, budget=100_000)
        return found, self._row.control in found

    async def list(self) -> tuple[str, bool]:
        """Everything, and then every state by name, which an agent may not widen its view by."""
        given: dict[str, Any] = {"kinds": [self._row.kind], "limit": 1000} | self._times()
        found = await self._ask("list", **given)
        states = ["proposed", "deprecated", "superseded", "expired", "erased", "new", "current"]
        return found + await self._ask("list", states=states, **given), self._row.control in found

    async def show(self) -> tuple[str, bool]:
        """By id, and by the history of that id."""
        found = ""
        for verb in ("show", "history"):
            found += await self._ask(verb, record=self._row.record)
        if self.said == NotFoundError.code:
            found = found.replace(self._row.record, "")  # the id that was asked for
        shown = await self._ask("show", record=self._row.control)
        return found, self._row.control in shown

    async def export(self) -> tuple[str, bool]:
        """No agent exports; a person's export of the same store holds the control."""
        found = await self._ask("export.page")
        said = self.said
        whole = await self._ask("export.page", ACCOUNT, agent="muse")
        self.said = said
        control = self._row.control in whole and said == NotForAgentsError.code
        return found, control

    async def summaries(self) -> tuple[str, bool]:
        """A memory that an agent makes of it: the id is not taken as a source."""
        if self._row.at is not None:
            self.said = await self.for_a_time("summaries")
            return "", self.said == "no T to ask for"
        made = await self._make(self._row.record, "hidden")
        said = self.said
        control = await self._make(self._row.control, "seen")
        taken = '"created": true' in made
        self.said = said
        return (self._row.marker if taken else ""), '"created": true' in control

    async def _make(self, source: str, name: str) -> str:
        text = f"made of what is {name} for {self._row.name} on {self._node.name}"
        return await self._ask("remember", text=text, derived_from=[source])

    async def for_a_time(self, way: str) -> str:
        """That a way which has no T does not take one."""
        verbs = {"summaries": "remember", "export": "export.page"}
        given: dict[str, Any] = {
            "context": {"query": self._row.word},
            "show": {"record": self._row.control},
            "export": {},
            "summaries": {"text": "made at another time"},
        }[way]
        await self._ask(verbs.get(way, way), **given, as_of="2020-01-01")
        refused = {UnknownParameterError.code, NotForAgentsError.code}
        return "no T to ask for" if self.said in refused else f"took a T: {self.said}"


def missing(cells: Sequence[Cell]) -> set[tuple[str, str, str]]:
    """The cells that should be there and are not."""
    wanted = {(row, way, node) for row in ROWS for way in WAYS for node in NODES}
    return wanted ^ {(c.row, c.way, c.node) for c in cells}


def main() -> int:
    """Print the matrix; 1 where a cell is missing, leaks or lacks its control."""
    with tempfile.TemporaryDirectory() as directory:
        cells = asyncio.run(matrix(Path(directory)))
    bad = [c for c in cells if c.leaked or not c.control]
    sys.stdout.write("\n".join(map(str, cells)) + "\n")
    sys.stdout.write(f"{len(cells)} cells, {sum(c.leaked for c in cells)} leaks\n")
    return 1 if bad or missing(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
