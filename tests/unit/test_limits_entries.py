"""Bounds of entries, runs and folds at n and n + 1."""

from __future__ import annotations

import random
from typing import Any

import pytest

import crdt.chain
from crdt.chain import RawEntry, verify_run
from crdt.entry import Header, actor_id, decode_header, make_header
from crdt.facts import Reason, Stored, Verdict
from crdt.fold import fold_record
from crdt.log import Tip
from crdt.payload import (
    Fingerprint,
    check_key,
    decode_open,
    decode_ops,
    decode_tombstone,
    encode_open,
    encode_ops,
    encode_tombstone,
    put,
)
from crdt.vector import vector_of
from keys import codec, limits
from keys.errors import BadChain, BadEncoding
from keys.ids import EntryHash, RecordId
from memory.notes import add_tag
from tests.support.author import seeded
from tests.support.bounds import bounds
from tests.vectors.cast import AGENT, LOG, MANY_HASHES, Writer, salt

FREE = Verdict(None, reviews=True)
RECORD = RecordId(seeded("record", 16))


def header(**changed: Any) -> Header:
    """A header with some fields changed."""
    given: dict[str, Any] = {
        "record": RECORD,
        "payload_kind": 1,
        "payload": b"payload",
        "deps": [],
        "wall_ms": 0,
        "via": 1,
        "commit_left": 0,
    }
    seq = changed.pop("seq", 2)
    return make_header(AGENT, LOG, seq, EntryHash(bytes(32)), **given | changed)


@bounds("SEQ_MAX", "WALL_MS_MAX", "DEPS_MAX")
@pytest.mark.parametrize(
    ("field", "most", "beyond"),
    [
        ("seq", limits.SEQ_MAX, limits.SEQ_MAX + 1),
        ("wall_ms", limits.WALL_MS_MAX, limits.WALL_MS_MAX + 1),
        ("commit_left", limits.COMMIT_ENTRIES_MAX - 1, limits.COMMIT_ENTRIES_MAX),
        ("payload_kind", 255, 256),
        ("via", 6, 7),
        ("deps", MANY_HASHES[: limits.DEPS_MAX], MANY_HASHES[: limits.DEPS_MAX + 1]),
    ],
)
def test_a_field_of_a_header_has_its_bound(field: str, most: Any, beyond: Any) -> None:
    """Where it is made and where it is read."""
    assert getattr(header(**{field: most}), field) == (tuple(most) if field == "deps" else most)
    with pytest.raises(BadEncoding):
        header(**{field: beyond})


@bounds("HEADER_BYTES_MAX")
def test_a_header_has_so_many_bytes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared before it is decoded; the longest that is well-formed fits."""
    longest = header(
        seq=limits.SEQ_MAX,
        deps=MANY_HASHES[: limits.DEPS_MAX],
        wall_ms=limits.WALL_MS_MAX,
        commit_left=511,
        payload_kind=255,
    )
    assert len(longest.data) < limits.HEADER_BYTES_MAX - 512
    decoded: list[int] = []

    def decode(data: bytes) -> object:
        decoded.append(len(data))
        return None

    monkeypatch.setattr(codec, "decode_small", decode)
    for size in (limits.HEADER_BYTES_MAX, limits.HEADER_BYTES_MAX + 1):
        with pytest.raises(BadEncoding):
            decode_header(bytes(size))
    assert decoded == [limits.HEADER_BYTES_MAX]


@bounds("ENTRY_BYTES_MAX")
def test_an_entry_has_so_many_bytes_at_most_header_and_payload_together() -> None:
    """A payload is refused by what its header says, before it is read."""
    w = Writer()
    w.open()
    size = len(w.entry(b"x" * (4 * 1024 * 1024), record=RECORD).header)
    for room, fits in ((limits.ENTRY_BYTES_MAX - size, True), (limits.ENTRY_BYTES_MAX, False)):
        w = Writer()
        w.open()
        raw = w.entry(bytes(room), record=RECORD)
        if fits:
            assert len(raw.header) + room == limits.ENTRY_BYTES_MAX
            verify_run(AGENT, [raw])
            raw = Writer().entry(bytes(room + 1), record=RECORD, seq=2)
        with pytest.raises(BadEncoding):
            decode_header(raw.header)
    for decode in (decode_ops, lambda data: encode_ops(salt("x"), [put("body.x", data)], data)):
        with pytest.raises(BadEncoding):
            decode(bytes(limits.ENTRY_BYTES_MAX + 1))


@bounds("COMMIT_ENTRIES_MAX", "RUN_ENTRIES_MAX")
def test_a_commit_and_a_run_have_so_many_entries_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted before a header is decoded."""
    w = Writer()
    w.open()
    n = limits.COMMIT_ENTRIES_MAX
    run = [w.entry(b"x", record=RECORD, left=n - 1 - i) for i in range(n)]
    assert len(verify_run(AGENT, run).entries) == limits.RUN_ENTRIES_MAX
    singles = [w.entry(b"x", record=RECORD) for _ in range(limits.RUN_ENTRIES_MAX)]
    assert len(verify_run(AGENT, singles).entries) == limits.RUN_ENTRIES_MAX
    monkeypatch.setattr(crdt.chain, "decode_header", None)
    with pytest.raises(BadChain):
        verify_run(AGENT, [*singles, w.entry(b"x", record=RECORD)])


@bounds("RUN_BYTES_MAX")
def test_a_run_has_so_many_bytes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Added up before a header is decoded."""
    half = bytes(limits.RUN_BYTES_MAX // 2)
    w = Writer()
    w.open()
    first = w.entry(half, record=RECORD)
    size = len(first.header)
    second = w.entry(half[: len(half) - 2 * size], record=RECORD)
    assert sum(len(e.header) + len(e.payload or b"") for e in (first, second)) == (
        limits.RUN_BYTES_MAX
    )
    verify_run(AGENT, [first, second])
    monkeypatch.setattr(crdt.chain, "decode_header", None)
    longer = RawEntry(second.header, (second.payload or b"") + b"\0", second.signature)
    with pytest.raises(BadChain):
        verify_run(AGENT, [first, longer])


@bounds("COMMIT_BYTES_MAX")
def test_a_commit_has_so_many_bytes_at_most_whether_they_are_sent_or_not() -> None:
    """What was erased counts as it was, so that every node judges alike."""
    for over in (0, 1):
        w = Writer()
        w.open()
        half = limits.COMMIT_BYTES_MAX // 2
        first = w.entry(bytes(half), record=RECORD, left=1, send=None)
        rest = half - 2 * len(first.header) + over
        run = [first, w.entry(bytes(rest), record=RECORD, send=None)]
        if over:
            with pytest.raises(BadChain):
                verify_run(AGENT, run)
        else:
            verify_run(AGENT, run)


# -- payloads -------------------------------------------------------------------------------------


@bounds("OPS_MAX")
def test_an_entry_has_so_many_operations_at_most() -> None:
    """And one at least."""
    ops = [put(f"field.{n:03}", n) for n in range(limits.OPS_MAX)]
    assert len(decode_ops(encode_ops(salt("x"), ops, bytes(32))).ops) == limits.OPS_MAX
    with pytest.raises(BadEncoding):
        decode_ops(encode_ops(salt("x"), [*ops, put("tag.x", b"12345678")], bytes(32)))
    with pytest.raises(BadEncoding):
        decode_ops(encode_ops(salt("x"), [], bytes(32)))


@bounds("OP_KEY_BYTES_MAX", "TAG_BYTES_MAX")
def test_a_key_has_so_many_bytes_at_most() -> None:
    """In UTF-8, its prefix included."""
    n = limits.OP_KEY_BYTES_MAX
    for key in ("tag." + "k" * limits.TAG_BYTES_MAX, "field." + "\u00e9" * ((n - 6) // 2)):
        assert len(key.encode()) == n
        check_key(key)
        with pytest.raises(BadEncoding):
            check_key(key + "k")


@bounds("OPS_PADDING_BYTES")
def test_operations_are_padded_with_the_fewest_zeros() -> None:
    """To a multiple of 64, so that the length of a short text does not show."""
    for length in range(140):
        op = put("field.a", "x" * length)
        padded = codec.decode(encode_ops(salt("x"), [op], bytes(32)), 4096)[2]
        bare = len(codec.encode([["field.a", 0, 5, "x" * length]]))
        assert len(padded) == -(-bare // limits.OPS_PADDING_BYTES) * limits.OPS_PADDING_BYTES


@bounds("SALT_BYTES", "ACTOR_BYTES", "TAG_VALUE_BYTES")
def test_salts_actors_and_tag_values_have_their_sizes() -> None:
    """Random enough not to meet, short enough to be carried."""
    salted = encode_ops(bytes(limits.SALT_BYTES), [put("tag.a", b"")], bytes(32))
    assert decode_ops(salted).salt == bytes(limits.SALT_BYTES)
    for wrong in (limits.SALT_BYTES - 1, limits.SALT_BYTES + 1):
        with pytest.raises(BadEncoding):
            decode_ops(encode_ops(bytes(wrong), [put("tag.a", b"")], bytes(32)))
    assert len(actor_id(AGENT, LOG, 2, bytes(16))) == limits.ACTOR_BYTES
    value = add_tag("x").value
    assert isinstance(value, bytes)
    assert len(value) == limits.TAG_VALUE_BYTES


@bounds("OPEN_HEADS_MAX")
def test_an_opening_cites_so_many_heads_at_most() -> None:
    """A writer that has seen more cites the smallest."""
    n = limits.OPEN_HEADS_MAX
    heads = MANY_HASHES[:n]
    assert list(decode_open(encode_open(heads)).heads) == heads
    assert list(decode_open(encode_open(MANY_HASHES[: n + 1])).heads) == heads
    for wrong in ([], MANY_HASHES[: n + 1]):
        with pytest.raises(BadEncoding):
            decode_open(codec.encode([1, 1, wrong]))


@bounds("TOMBSTONE_PRINTS_MAX")
def test_a_tombstone_lists_so_many_fingerprints_at_most() -> None:
    """One per key of the agent, and there may be some."""
    n = limits.TOMBSTONE_PRINTS_MAX
    prints = [Fingerprint(1, bytes(8), i.to_bytes(16, "big")) for i in range(n + 1)]
    assert len(decode_tombstone(encode_tombstone(RECORD, "person", prints[:n])).prints) == n
    with pytest.raises(BadEncoding):
        decode_tombstone(encode_tombstone(RECORD, "person", prints))


# -- folds and vectors -----------------------------------------------------------------------------


@bounds("PAST_ENTRIES_MAX")
@pytest.mark.slow
def test_an_entry_has_so_many_entries_before_it_at_most() -> None:
    """R6: a record with a longer history is edited by a successor."""
    w = Writer()
    w.open()
    record = w.next_id()
    raw = [w.create("a long story")]
    raw += [
        w.change(record, [w.prev], [put("field.n", n)]) for n in range(limits.PAST_ENTRIES_MAX + 1)
    ]
    stored = [Stored(decode_header(e.header), e.payload, 0) for e in raw]
    fold = fold_record(AGENT, record, stored, lambda _: FREE)
    assert fold.reasons == {stored[-1].header.hash: Reason.MALFORMED}
    assert fold.values["field.n"] == limits.PAST_ENTRIES_MAX - 1


@bounds("BRANCHES_MAX")
def test_a_log_in_a_vector_has_so_many_tips_at_most() -> None:
    """As many branches as a store keeps."""
    rng = random.Random(1)
    tips = sorted([5, rng.randbytes(32)] for _ in range(limits.BRANCHES_MAX + 1))
    place = [bytes(LOG.device), bytes(LOG.incarnation)]
    assert vector_of([[*place, tips[:-1]]]) == {LOG: [Tip(5, EntryHash(h)) for _, h in tips[:-1]]}
    for wrong in (tips, []):
        with pytest.raises(BadEncoding):
            vector_of([[*place, wrong]])


def test_openings_and_tombstones_are_bounded_before_they_are_decoded() -> None:
    """1 KiB and 8 KiB; both kinds fit with room to spare."""
    assert len(encode_open(MANY_HASHES)) < 1024
    prints = [Fingerprint(65_535, bytes(8), i.to_bytes(16, "big")) for i in range(64)]
    assert len(encode_tombstone(RECORD, "person", prints)) < 8192
    with pytest.raises(BadEncoding, match="1024"):
        decode_open(bytes(1025))
    with pytest.raises(BadEncoding, match="8192"):
        decode_tombstone(bytes(8193))
