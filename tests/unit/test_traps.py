"""Traps of the libraries: that they are there, and that nothing from outside reaches them."""

from __future__ import annotations

import ast
import hashlib
import inspect
import random
import resource
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from automerge import core
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import crdt.document
from crdt.chain import RawEntry, verify_run
from crdt.document import DocumentError, RecordDocument
from crdt.entry import Via, actor_id, decode_header
from crdt.payload import Op, Type, Verb, decode_ops, encode_ops, put
from keys import codec
from keys.errors import BadEncoding, BadInput, BadSignature
from keys.limits import CODEC_ITEMS_MAX, ENTRY_BYTES_MAX
from keys.signing import ENTRY_DOMAIN, verify
from keys.statements import parse
from memory.authoring import Author
from memory.door import open_connection
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember
from tests.vectors.cast import (
    AGENT,
    CERTIFICATES,
    FOUND,
    LAPTOP,
    LOG,
    SMALL_ORDER_KEY,
    SMALL_ORDER_SIGNATURE,
    VALUES,
    Writer,
    observation,
    salt,
)

NOW_US = 1_700_000_100_000_000
GROWTH_BYTES_MAX = 50 * 1024 * 1024
CALLS = {
    "Document", "set_actor", "transaction", "put", "delete", "get_heads", "fork", "merge", "keys",
    "values",
}  # fmt: skip
SOURCE = ast.parse(inspect.getsource(crdt.document))


# -- Automerge: no bytes from outside --------------------------------------------------------------


def leb(number: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def chunk(kind: int, body: bytes) -> bytes:
    """A chunk of Automerge's storage format with the right checksum."""
    head = bytes([kind]) + leb(len(body)) + body
    return b"\x85\x6f\x4a\x83" + hashlib.sha256(head).digest()[:4] + head


def change_body(*, seq: int = 1, start_op: int = 1, columns: bytes = b"\0") -> bytes:
    """The body of a change chunk without deps."""
    actor = b"\x10" + bytes(16)
    return b"\0" + actor + leb(seq) + leb(start_op) + b"\0" + b"\0" + b"\0" + columns


def zipped(data: bytes) -> bytes:
    """Raw deflate."""
    squeezer = zlib.compressobj(9, wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


# One column (keys, run-length) that claims a run of 2**40 values.
ENDLESS_RUN = b"\x01\x15" + leb(8) + leb(2**40) + b"\x01\x78"
HOSTILE = {
    "endless run": chunk(1, change_body(columns=ENDLESS_RUN)),
    "seq gap": chunk(1, change_body(seq=7)),
    "last operation number": chunk(1, change_body(start_op=2**32 - 2)),
    "operation number past the last": chunk(1, change_body(start_op=2**64 - 1)),
    "deflated change": chunk(2, zipped(bytes(4 * 1024 * 1024))),
    "document without columns": chunk(0, bytes(64)),
    "endless document": chunk(0, b"\xff" * 9 + b"\x01" + bytes(170)),
    "sync message with an endless filter": b"\x42\x00\x00\x01\x00"
    + leb(2**34)
    + b"\x0a\x07"
    + b"\0",
    "bad checksum": b"\x85\x6f\x4a\x83" + bytes(100),
    "a real document": bytes(core.Document(actor_id=bytes(16)).save()),
}


class Guard:
    """Automerge with nothing that reads bytes; also not by way of a document."""

    ROOT, ScalarType = core.ROOT, core.ScalarType
    Document = core.Document

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"automerge.core.{name} was reached")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentStore]:
    """An agent's file, with the engine behind a guard."""
    monkeypatch.setattr(crdt.document, "core", Guard())
    made = AgentStore(open_connection(tmp_path / "agent.db"), AGENT, [VALUES], LAPTOP.device)
    made.add_statements([FOUND, *CERTIFICATES])
    yield made
    made.connection.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_X_52_hostile_bytes_never_reach_the_engines_decoder(store: AgentStore, name: str) -> None:
    """As a payload, a value, a header, a statement, a text: they are bytes, or refused."""
    data = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    w = Writer()
    run = [w.open(), w.create("a good one")]
    record, created = decode_header(run[1].header).record, w.prev
    run.append(w.entry(data, record=record, deps=[created]))
    run.append(w.entry(data, record=record, kind=200))
    run.append(w.change(record, [created], [put("field.blob", data)]))
    store.append_runs([verify_run(AGENT, run)], NOW_US)
    rows = store.connection.execute("SELECT seq, reason FROM entry WHERE reason IS NOT NULL")
    assert dict(rows.fetchall()) == {3: "malformed", 4: "needs_upgrade"}
    for refused in (
        lambda: verify_run(AGENT, [RawEntry(data, data, bytes(64))]),
        lambda: parse(data, bytes(64)),
        lambda: decode_ops(data),
        lambda: codec.decode(data, ENTRY_BYTES_MAX),
    ):
        with pytest.raises(BadInput):
            refused()
    note = Note(text="blob: " + data.decode("latin-1"))
    author = Author(store, LAPTOP)
    assert remember(author, note, Via.AGENT, NOW_US).created
    assert store.rebuild()[0] == store.rebuild()[1]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert grown < GROWTH_BYTES_MAX


def test_X_52_the_door_calls_nothing_that_reads_or_writes_the_engines_bytes() -> None:
    """No load, no save, no sync messages, no diff: what may panic on bytes, or keeps the erased."""
    used = {node.attr for node in ast.walk(SOURCE) if isinstance(node, ast.Attribute)}
    engine = {n for n in dir(core.Document) if not n.startswith("_")} | {"put", "delete"}
    assert used & (engine | {"Document", "SyncState", "Message"}) == CALLS


def test_a_transaction_is_only_ever_entered_at_once() -> None:
    """One that is created and not entered, or outlives its document, is a use after free."""
    entered = {
        id(item.context_expr)
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.With)
        for item in node.items
    }
    begun = [
        node
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "transaction"
    ]
    assert len(begun) == 1
    assert all(id(node) in entered for node in begun)


def test_a_real_panic_is_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters panic in this build; they are not among our types.

    The panic is no ``Exception``, and the document's lock is poisoned after it.
    """
    assert core.ScalarType.Counter not in crdt.document._TYPES
    assert core.ScalarType.Unknown not in crdt.document._TYPES
    with monkeypatch.context() as patched:
        patched.setattr(crdt.document, "_TYPES", (core.ScalarType.Counter,) * len(Type))
        with pytest.raises(DocumentError) as raised:
            RecordDocument().apply(frozenset(), bytes(16), [put("field.n", 1)])
    poisoned = raised.value.__cause__
    assert isinstance(poisoned, Exception)
    assert not isinstance(poisoned.__context__, Exception)
    assert RecordDocument().apply(frozenset(), bytes(16), [put("field.n", 1)]) is not None


def test_one_actor_twice_is_refused_by_the_engine_and_never_made_by_us() -> None:
    """Two changes of one actor with one number never merge; our actors name a place and a salt."""

    def document(value: str) -> Any:
        made = core.Document(actor_id=bytes(16))
        with made.transaction() as tx:
            tx.put(core.ROOT, "field.a", core.ScalarType.Str, value)
        return made

    left = document("left")
    with pytest.raises(Exception, match="duplicate seq"):
        left.merge(document("right"))
    salts = (bytes(16), salt("another"))
    assert len({actor_id(AGENT, LOG, seq, s) for seq in (1, 2) for s in salts}) == 4


def test_the_engine_hides_a_concurrent_put_and_the_entries_do_not() -> None:
    """One of two values wins silently: so what withholds is read from the entries (R11)."""
    document = RecordDocument()
    first = document.apply(frozenset(), bytes(16), observation("one"))
    assert first is not None
    for n, word in enumerate(("deprecated", "current")):
        actor = bytes(15) + bytes([n + 1])
        assert document.apply(frozenset([first]), actor, [put("mark.1", word)]) is not None
    assert document.values()["mark.1"] in {"deprecated", "current"}


def test_a_change_holds_no_time() -> None:
    """Regeneration would not be possible otherwise."""
    made = core.Document(actor_id=bytes(16))
    with made.transaction() as tx:
        tx.put(core.ROOT, "field.a", core.ScalarType.Str, "x")
    (change,) = made.get_changes([])
    assert str(change.timestamp) == "1970-01-01 00:00:00"


@pytest.mark.parametrize("kind", list(Type))
def test_every_scalar_comes_back_as_it_was_put(kind: Type) -> None:
    """Byte strings come out of the binding as lists of numbers; nobody sees that."""
    values: dict[Type, list[Any]] = {
        Type.NULL: [None],
        Type.BOOL: [True, False],
        Type.INT: [0, -(2**63), 2**63 - 1],
        Type.UINT: [0, 2**64 - 1],
        Type.F64: [0.0, -1.5, 1e308],
        Type.STR: ["", "a\0b", "\U0001f41d"],
        Type.BYTES: [b"", b"\0\xff", random.Random(1).randbytes(300)],
    }
    for value in values[kind]:
        document = RecordDocument()
        op = Op("field.a", Verb.PUT, kind, value)
        document.apply(frozenset(), bytes(16), [op])
        found = document.values()["field.a"]
        assert (type(found), found) == (type(value), value)
        assert decode_ops(encode_ops(bytes(16), [op], bytes(32))).ops == (op,)


# -- MessagePack ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"\x82\xa1a\x01\xa1a\x02", b"\xcf" + bytes(7) + b"\x05", b"\xcb\x7f\xf8" + bytes(6)],
    ids=["duplicate keys", "long integer", "NaN"],
)
def test_the_library_takes_what_the_codec_refuses(data: bytes) -> None:
    """The checks are ours; an upgrade of the library changes nothing."""
    msgpack.unpackb(data)
    with pytest.raises(BadEncoding):
        codec.decode(data, 64)


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd" + (2_000_000).to_bytes(4, "big") + b"\x80" * 2_000_000,
        b"\xdd\xff\xff\xff\xff" + b"\x90" * 100_000,
        b"\x91" * 2_000_000,
        b"\xdc\xff\xff" + b"\xa0" * (CODEC_ITEMS_MAX + 1),
    ],
    ids=["empty maps", "endless list", "deep", "many"],
)
def test_what_would_be_much_is_refused_before_it_is_built(data: bytes) -> None:
    """In the library empty maps take 75 times their encoding."""
    tracemalloc.start()
    with pytest.raises(BadEncoding):
        codec.decode(data, len(data))
    with pytest.raises(BadEncoding):
        codec.decode_small(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1024 * 1024


# -- Ed25519 --------------------------------------------------------------------------------------


def test_one_signature_for_every_message_is_refused() -> None:
    """Another library takes a key of small order, under which this verifies anything."""
    for message in (b"one", b"two"):
        signed = ENTRY_DOMAIN + b"\0" + message
        key = Ed25519PublicKey.from_public_bytes(SMALL_ORDER_KEY)
        key.verify(SMALL_ORDER_SIGNATURE, signed)
        with pytest.raises(BadSignature):
            verify(SMALL_ORDER_KEY, ENTRY_DOMAIN, message, SMALL_ORDER_SIGNATURE)
