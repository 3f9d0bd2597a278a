"""Record documents: one change from the same operations everywhere, and a contained engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from automerge import core

import crdt.document
from crdt.document import DocumentError, RecordDocument, change_of_creation
from crdt.entry import Header, decode_header
from crdt.facts import Reason, Stored, Verdict
from crdt.fold import base_of, fold_record
from crdt.payload import delete, put
from keys.ids import RecordId
from tests.fuzz.clusters import cluster
from tests.vectors.cast import AGENT, Writer, observation

CLUSTERS = 2_000  # and 10,000 in `make soak`
SEEDS = 20
FREE = Verdict(None, reviews=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_X_50_regenerated_changes_are_the_same_in_every_order(seed: int) -> None:
    """2,000 random clusters: the same change hashes and reads on every replica."""
    rng = random.Random(seed)
    changes = 0
    for _ in range(CLUSTERS // SEEDS):
        made, _ = cluster(rng)
        changes += made
    assert changes > 3 * CLUSTERS // SEEDS


# -- a failing engine -----------------------------------------------------------------------------


class PanicException(BaseException):
    """What the binding raises when the engine panics: no ``Exception``."""


CALLS = (
    "Document", "set_actor", "transaction", "enter", "put", "delete", "exit", "get_heads", "fork",
    "merge", "keys", "values",
)  # fmt: skip


class Engine:
    """Automerge behind a counter of calls, one of which panics."""

    def __init__(self, panics_at: str | None) -> None:
        self.panics_at, self.calls = panics_at, set[str]()
        self.real = core
        self.ROOT, self.ScalarType = self.real.ROOT, self.real.ScalarType

    def call(self, name: str) -> None:
        """Count a call; panic where it was asked for, once."""
        self.calls.add(name)
        if name == self.panics_at:
            self.panics_at = None
            raise PanicException(name)

    def Document(self, *args: Any, **kw: Any) -> Wrapped:
        """A document whose every call is counted."""
        self.call("Document")
        return Wrapped(self, self.real.Document(*args, **kw))


class Wrapped:
    """A document of the engine."""

    def __init__(self, engine: Engine, real: Any) -> None:
        self.engine, self.real = engine, real

    def __getattr__(self, name: str) -> Any:
        def called(*args: Any, **kw: Any) -> Any:
            self.engine.call(name)
            bare = [a.real if isinstance(a, Wrapped) else a for a in args]
            if name == "transaction":
                return Transacting(self)
            found = getattr(self.real, name)(*bare, **kw)
            return Wrapped(self.engine, found) if name == "fork" else found

        return called


class Transacting:
    """A transaction, begun when it is entered: one that never is cannot be given up safely."""

    def __init__(self, document: Wrapped) -> None:
        self.document = document
        self.real: Any = None

    def __enter__(self) -> Wrapped:
        self.document.engine.call("enter")
        self.real = self.document.real.transaction()
        return Wrapped(self.document.engine, self.real.__enter__())

    def __exit__(self, *error: object) -> Any:
        real, self.real = self.real, None  # it must not outlive its document
        done = real.__exit__(*error)
        del real
        self.document.engine.call("exit")
        return done


def story() -> tuple[RecordId, list[Stored], Header]:
    """A record with a concurrent edit, a delete and a merge of both; the header of the last."""
    w = Writer()
    w.open()
    record = w.next_id()
    raw = [w.create("one")]
    created = w.prev
    raw.append(w.change(record, [created], [put("field.layer", "week"), delete("tag.vectors")]))
    left = w.prev
    raw.append(w.change(record, [created], [put("field.layer", "month")]))
    raw.append(w.change(record, [left, w.prev], [put("field.weight", 2.0)]))
    headers = [decode_header(e.header) for e in raw]
    return record, [Stored(h, e.payload, 0) for h, e in zip(headers, raw, strict=True)], headers[-1]


def folded(record: RecordId, stored: Sequence[Stored]) -> Any:
    """The fold where nothing stands against any entry."""
    return fold_record(AGENT, record, stored, lambda _: FREE)


@pytest.mark.parametrize("name", CALLS)
def test_X_53_a_panic_at_any_call_is_contained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document is made again from the log in the same fold: nothing is left of the panic."""
    record, stored, _ = story()
    expected = folded(record, stored)
    assert expected.reasons == {}
    engine = Engine(name)
    with monkeypatch.context() as patched:
        patched.setattr(crdt.document, "core", engine)
        broken = folded(record, stored)
        assert engine.panics_at is None
        again = folded(record, stored)
    assert again.values == broken.values == expected.values
    assert again.reasons == broken.reasons == {}
    assert again.heads == broken.heads == expected.heads


def test_X_53_an_entry_that_the_engine_never_makes_is_malformed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same on every node with this engine; what does not build on it counts."""
    record, stored, _ = story()
    right = folded(record, stored[:1] + stored[2:3])

    class Failing(Engine):
        def call(self, name: str) -> None:
            if name == "delete":
                raise PanicException(name)

    monkeypatch.setattr(crdt.document, "core", Failing(None))
    broken = folded(record, stored)
    reasons = [broken.reasons.get(s.header.hash) for s in stored]
    assert reasons == [None, Reason.MALFORMED, None, Reason.WAITING]
    assert broken.values == right.values


@pytest.mark.parametrize("name", CALLS)
def test_X_53_a_panic_reaches_a_writer_as_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never as the ``BaseException`` that would end the process; the next write works."""
    record, stored, _ = story()
    ops = [put("field.layer", "year"), delete("field.weight")]
    base = base_of(AGENT, record, stored, lambda _: FREE)
    expected = base.change(bytes(16), ops)
    engine = Engine(None)
    monkeypatch.setattr(crdt.document, "core", engine)
    document = RecordDocument()
    made = document.apply(frozenset(), bytes(16), observation("one"))
    assert made is not None
    document.apply(frozenset([made]), bytes(15) + b"\1", ops[:1])
    engine.panics_at = name

    def write() -> None:
        RecordDocument().apply(frozenset(), bytes(16), observation("two"))
        document.apply(frozenset([made]), bytes(15) + b"\2", [*ops, delete("tag.vectors")])
        document.values()

    with pytest.raises(DocumentError) as raised:
        write()
    assert isinstance(raised.value.__cause__, PanicException)
    again = base_of(AGENT, record, stored, lambda _: FREE)
    assert again.change(bytes(16), ops) == expected


def test_every_call_of_the_engine_is_one_that_the_tests_let_panic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new call of Automerge needs a place in the list above."""
    record, stored, _ = story()
    engine = Engine(None)
    monkeypatch.setattr(crdt.document, "core", engine)
    folded(record, stored)
    RecordDocument().copy()
    assert engine.calls == set(CALLS)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit])
def test_what_is_no_failure_of_the_engine_passes_through(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who stops the process is not told that Automerge failed."""

    class Interrupted(Engine):
        def call(self, name: str) -> None:
            raise error

    monkeypatch.setattr(crdt.document, "core", Interrupted(None))
    with pytest.raises(error):
        change_of_creation(bytes(16), observation("x"))


def test_a_copy_can_be_tried_on_and_thrown_away() -> None:
    """What is tried on the copy does not reach the document."""
    document = RecordDocument()
    first = document.apply(frozenset(), bytes(16), observation("one"))
    assert first is not None
    before = document.values()
    copied = document.copy()
    assert copied.values() == before
    second = copied.apply(frozenset([first]), b"\1" * 16, [put("field.weight", 9.0)])
    assert document.values() == before
    assert document.apply(frozenset([first]), b"\1" * 16, [put("field.weight", 9.0)]) == second
    assert RecordDocument().copy().values() == {}


def test_operations_without_effect_make_no_change() -> None:
    """R6: a delete of what is not there, a put of what is there already."""
    document = RecordDocument()
    made = document.apply(frozenset(), bytes(16), observation("one"))
    assert made is not None
    heads = frozenset([made])
    assert document.apply(heads, b"\1" * 16, [delete("tag.none")]) is None
    assert document.apply(heads, b"\1" * 16, [put("field.layer", "day")]) is None
    assert document.apply(heads, b"\1" * 16, [put("field.layer", "week")]) is not None
