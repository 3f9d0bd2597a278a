"""The engine behind a real store: panics, records with many values at once, and nothing on disk."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crdt.document
from crdt.document import DocumentError
from crdt.facts import Reason, Stored, Verdict
from crdt.fold import _Folding, fold_record
from crdt.payload import encode_ops, put
from keys.errors import BadEncoding, RoostError
from keys.ids import RecordId
from sync import frames
from sync.messages import PullRequest, StatementsReply, StatementsRequest
from tests.fuzz.judge import Decoder, allocated, counted
from tests.fuzz.nodes import calls, failures
from tests.support.memory_world import Node as Device
from tests.support.memory_world import World
from tests.support.peers import PASSPHRASE, Node, remember, running
from tests.unit.test_document import CALLS, Engine
from tests.unit.test_traps import HOSTILE, Guard
from tests.vectors.cast import AGENT, LAPTOP, PHONE, Writer, header_of

FREE = Verdict(None, reviews=True)
VALUES = 500
MAGIC = b"\x85\x6f\x4a\x83"  # of every chunk of Automerge's storage format


def acts(world: World, a: Device, b: Device, record: RecordId) -> dict[str, Callable[[], object]]:
    """Everything that opens a document: writing, folding what came, folding all."""
    return {
        "remember": lambda: a.remember("another"),
        "tag": lambda: a.tag(record, "new"),
        "untag": lambda: a.untag(record, "home"),
        "pull": lambda: world.pull(a, b),
        "rebuild": a.store.rebuild,
        "revise": lambda: a.revise(record, "put better"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_X_53_a_store_outlives_a_panic_at_any_call(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The act fails whole or is done whole; the same act then works, and all nodes agree."""
    world = World(tmp_path, "a", "b")
    a, b = world.nodes["a"], world.nodes["b"]
    record = a.remember("the first", tags=("home",))
    a.move(record, "week")
    world.settle()
    b.move(record, "month")
    a.tag(record, "work")
    engines: list[Engine] = []
    for name, act in acts(world, a, b, record).items():
        engine = Engine(call)
        engines.append(engine)
        before = a.store.vector_digest(), a.digest
        with monkeypatch.context() as patched:
            patched.setattr(crdt.document, "core", engine)
            try:
                act()
            except DocumentError:
                assert engine.panics_at is None
                assert (a.store.vector_digest(), a.digest) == before, f"{name} was half done"
                act()
        assert a.rows("SELECT reason FROM entry WHERE reason IS NOT NULL") == []
    world.settle()
    assert a.digest == b.digest
    model = a.store.rebuild()
    assert model[0] == model[1]
    assert any(engine.panics_at is None for engine in engines)
    world.close()


def many_at_once(text: str) -> tuple[RecordId, list[Stored]]:
    """A record of which one field was put ``VALUES`` times by logs that knew nothing of another."""
    first = Writer()
    first.open()
    record = first.next_id()
    raw = [first.create(text)]
    created = first.prev
    for number in range(VALUES):
        w = Writer(LAPTOP, f"at once {number}")
        w.changes, w.documents = first.changes, first.documents
        w.open()
        raw.append(w.change(record, [created], [put("field.layer", f"layer {number}")]))
    return record, [Stored(header_of(r), r.payload, 0) for r in raw]


@pytest.mark.slow
def test_S_F7_a_record_with_500_values_at_once_costs_a_bounded_amount() -> None:
    """A long text is held once, not once for each value; work grows with the entries."""
    record, stored = many_at_once("long " * 50_000)
    size = sum(len(s.payload or b"") for s in stored)
    folds: list[Any] = []

    def fold(_: bytes) -> object:
        folds[:] = [fold_record(AGENT, record, stored, lambda _: FREE)]
        return folds[0]

    decoder = Decoder("fold", lambda _: b"", fold, ())
    calls, _ = counted(decoder, b"")
    assert calls < 400 * VALUES
    assert allocated(decoder, b"") < 4 * size + 8 * 1024 * 1024
    (folded,) = folds
    assert folded.reasons == {}
    assert len(folded.heads) == VALUES
    assert folded.values["field.layer"].startswith("layer ")


async def test_X_54_no_file_of_a_home_holds_a_document(tmp_path: Path) -> None:
    """There is nothing on disk that the engine would load: records are made again from the log."""
    node = await asyncio.to_thread(Node, tmp_path / "home")
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(node, "muse", "a text that can be found on disk")
        for number in range(30):
            await node("tag", agent="muse", record=record, tags=[f"t{number}"])
        await node("rebuild", agent="muse")

    def search() -> tuple[list[str], list[str]]:
        files = [p for p in node.path.rglob("*") if p.is_file()]
        texts = [p.name for p in files if b"a text that can be found" in p.read_bytes()]
        documents = [p.name for p in files if MAGIC in p.read_bytes()]
        for path in node.path.rglob("*.db"):
            with sqlite3.connect(path) as found:
                documents += [row for row in found.iterdump() if MAGIC.hex() in row.lower()]
        return texts, documents

    texts, documents = await asyncio.to_thread(search)
    assert texts
    assert documents == []


@pytest.mark.slow
async def test_X_52_hostile_documents_reach_a_node_as_text_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every call that takes text, by an import, and by a peer's statements and pull requests."""
    monkeypatch.setattr(crdt.document, "core", Guard())
    node = await asyncio.to_thread(Node, tmp_path / "home")
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(node, "muse", "the first")
        run = (await node("import.begin", agent="muse"))["run"]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        for name, data in HOSTILE.items():
            text = data.decode("latin-1")
            for call in calls(record):
                spoiled = {
                    key: name + text if isinstance(value, str) and key != "agent" else value
                    for key, value in call["params"].items()
                }
                with contextlib.suppress(RoostError):
                    await node(call["verb"], **spoiled)
            await remember(node, "muse", name + text)
            await node("import.lines", agent="muse", run=run, rows=[{"text": name + text}])
            for decode in (StatementsReply.decode, StatementsRequest.decode, PullRequest.decode,
                           frames.parse):  # fmt: skip
                with pytest.raises(BadEncoding):
                    decode(data)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        assert grown < 50 * 1024 * 1024
        found = await node("search", agent="muse", query="endless", limit=20)
        assert found["results"]
        assert (await node("audit.verify", agent="muse"))["ok"]
    assert not failures(node)


@pytest.mark.parametrize("wrong", [1, 200])
def test_entries_that_do_not_regenerate_make_the_document_again_once(
    wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are among honest ones: the work of each does not grow with the record."""
    w, rng = Writer(), random.Random(wrong)
    w.open()
    record = w.next_id()
    raw = [w.create("one")]
    head = w.prev
    for number in range(100):
        raw.append(w.change(record, [head], [put("field.layer", f"layer {number}")]))
        head = w.prev
    honest = [Stored(header_of(r), r.payload, n) for n, r in enumerate(raw)]
    all_of_them = list(honest)
    bad = Writer(PHONE, "wrong")
    bad.open()
    for _ in range(wrong):
        payload = encode_ops(rng.randbytes(16), [put("field.layer", "lie")], bytes(32))
        at = rng.randrange(101)
        entry = bad.entry(payload, record=record, deps=[honest[at].header.hash], signed=False)
        all_of_them.append(Stored(header_of(entry), payload, honest[at].time_ms))
    rebuilt: list[_Folding] = []
    real = _Folding._rebuild

    def counting(folding: _Folding) -> None:
        rebuilt.append(folding)
        real(folding)

    monkeypatch.setattr(_Folding, "_rebuild", counting)
    folded = fold_record(AGENT, record, all_of_them, lambda _: FREE)
    assert set(folded.reasons.values()) == {Reason.MISMATCH}
    assert len(folded.reasons) == wrong
    assert folded.heads == [head]
    assert folded.values["field.layer"] == "layer 99"
    assert len(rebuilt) == 1
