"""Entries and statements as an attacker sends them: altered, replayed, mis-encoded, mis-stamped."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from crdt.chain import RawEntry, verify_run, verify_single
from crdt.entry import decode_header
from crdt.facts import Reason, Stored, Verdict
from crdt.fold import fold_record
from crdt.payload import decode_ops, delete, put
from keys import codec
from keys.errors import BadChain, BadEncoding, BadInput, BadSignature
from keys.ids import EntryHash, hash256
from keys.limits import ENTRY_BYTES_MAX, OP_KEY_BYTES_MAX, WALL_MS_MAX
from keys.signing import ENTRY_DOMAIN, STATEMENT_DOMAIN
from keys.statements import parse, sign
from memory.door import open_connection
from memory.store import AgentStore
from tests.support.misencoding import misencoded
from tests.vectors.cast import (
    AGENT,
    CERTIFICATES,
    FOUND,
    LAPTOP,
    OWNER,
    PHONE,
    VALUES,
    Writer,
)

NOW_US = 1_700_000_100_000_000
FREE = Verdict(None, reviews=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    """An agent's file in which two devices may write."""
    made = AgentStore(open_connection(tmp_path / "agent.db"), AGENT, [VALUES])
    made.add_statements([FOUND, *CERTIFICATES])
    yield made
    made.connection.close()


def flips(data: bytes) -> Iterator[bytes]:
    """The bytes with each bit flipped in turn."""
    for at, bit in itertools.product(range(len(data)), range(8)):
        yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def three_kinds() -> list[RawEntry]:
    """An opening, operations and a tombstone."""
    w = Writer()
    run = [w.open(), w.create("the key is under the mat")]
    return [*run, w.tombstone(decode_header(run[1].header).record)]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["opening", "operations", "tombstone"])
@pytest.mark.parametrize("part", ["header", "payload", "signature"])
def test_X_32_every_flipped_bit_is_noticed(store: AgentStore, place: int, part: str) -> None:
    """Every single bit of one entry, of each kind, at the end of a run and ahead of its chain."""
    run = three_kinds()[: place + 1]
    raw = run[-1]
    refused = 0
    for changed in flips(getattr(raw, part)):
        bad = replace(raw, **{part: changed})
        with pytest.raises(BadInput):
            verify_run(AGENT, [*run[:-1], bad])
        with pytest.raises(BadInput):
            verify_single(AGENT, bad)
        refused += 1
    assert refused == 8 * len(getattr(raw, part))
    assert store.append_runs([verify_run(AGENT, run)], NOW_US).new == len(run)


@pytest.mark.parametrize("place", [0, 1])
def test_X_32_a_bit_inside_a_run_is_noticed_by_the_one_signature_at_its_end(place: int) -> None:
    """The hashes carry it there; an unsigned entry is as safe as a signed one."""
    w = Writer()
    run = [w.open(), w.create("one", left=1), w.create("two")]
    for part in ("header", "payload"):
        for changed in flips(getattr(run[place], part)):
            bad = replace(run[place], **{part: changed})
            with pytest.raises(BadInput):
                verify_run(AGENT, [*run[:place], bad, *run[place + 1 :]])


def test_X_32_every_flipped_bit_of_a_statement_is_noticed() -> None:
    """Its bytes and its signature."""
    for data in flips(FOUND.data):
        with pytest.raises(BadInput):
            parse(data, FOUND.signature)
    for signature in flips(FOUND.signature):
        with pytest.raises(BadSignature):
            parse(FOUND.data, signature)


@pytest.mark.parametrize("seq", [0, -1, -(2**63), 2**40 + 1, 2**63, 2**64 - 1])
def test_X_37_an_impossible_seq_is_refused_before_allocation(seq: int) -> None:
    """Nothing is counted up to it, and no room is made for what would come before it."""
    w = Writer()
    w.open()
    raw = w.create("far away", seq=seq)
    tracemalloc.start()
    with pytest.raises(BadEncoding):
        decode_header(raw.header)
    with pytest.raises(BadEncoding):
        verify_run(AGENT, [raw])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 256 * 1024


def test_X_37_a_seq_of_more_than_64_bits_does_not_exist() -> None:
    """MessagePack has no longer integers; neither do we make one."""
    with pytest.raises(BadEncoding):
        codec.encode([2**64])
    with pytest.raises(BadEncoding):
        decode_header(b"\x9e\x01" + b"\xd7\x00" + bytes(8))


def test_X_39_a_signature_of_a_statement_is_none_of_an_entry() -> None:
    """The same key over the same hash, under the name of another kind of thing."""
    w = Writer()
    opening = w.open()
    entry = w.create("one")
    found = decode_header(entry.header).hash
    for domain in (STATEMENT_DOMAIN, b"roost device of owner v1", b"roost pairing v1", b""):
        replayed = replace(entry, signature=LAPTOP.sign(domain, found))
        with pytest.raises(BadSignature):
            verify_run(AGENT, [opening, replayed])


def test_X_39_a_grant_is_no_entry_and_an_entry_is_no_grant() -> None:
    """Neither are the bytes of one the bytes of the other."""
    body = {
        "subject_kind": "device",
        "subject": PHONE.public,
        "rights": ["write"],
        "recovery": b"",
        "sealed": [],
        "until_ms": 0,
        "wall_ms": 0,
    }
    grant = sign(OWNER, "grant", body, agent=AGENT, after=[])
    with pytest.raises(BadEncoding):
        verify_run(AGENT, [RawEntry(grant.data, b"", grant.signature)])
    raw = three_kinds()[1]
    with pytest.raises(BadEncoding):
        parse(raw.header, raw.signature)
    with pytest.raises(BadSignature):
        parse(grant.data, OWNER.sign(ENTRY_DOMAIN, grant.id))


def check(variants: Iterator[bytes], good: bytes, decode: Callable[[bytes], object]) -> int:
    """That every variant is refused; how many there were."""
    decode(good)
    seen = {data for data in variants if data != good}
    for data in seen:
        with pytest.raises(BadInput):
            decode(data)
    return len(seen)


def test_X_42_no_part_of_a_header_has_a_second_encoding() -> None:
    """Each field of each kind, signed as if it were right."""
    w = Writer()
    run = [w.open(), w.create("one")]
    value = msgpack.unpackb(run[1].header)

    def signed(header: bytes) -> object:
        signature = LAPTOP.sign(ENTRY_DOMAIN, hash256(header))
        return verify_run(AGENT, [run[0], RawEntry(header, run[1].payload, signature)])

    assert check(misencoded(value), run[1].header, signed) > 40


def test_X_42_no_part_of_a_payload_has_a_second_encoding() -> None:
    """Neither the outer list nor the operations inside."""
    payload = three_kinds()[1].payload
    assert payload is not None
    value = msgpack.unpackb(payload)
    assert check(misencoded(value), payload, decode_ops) > 10
    unpacker = msgpack.Unpacker()
    unpacker.feed(value[2])
    rows = unpacker.unpack()

    def padded(packed: bytes) -> bytes:
        return msgpack.packb([*value[:2], packed + bytes(-len(packed) % 64), value[3]])  # type: ignore[no-any-return]

    inner = (padded(bad) for bad in misencoded(rows, trailing=False))
    assert check(inner, payload, decode_ops) > 80


def test_X_42_no_part_of_a_statement_has_a_second_encoding() -> None:
    """Signed as if it were right: one statement has one id."""

    def signed(data: bytes) -> object:
        return parse(data, OWNER.sign(STATEMENT_DOMAIN, hash256(data)))

    value = msgpack.unpackb(FOUND.data)
    assert check(misencoded(value), FOUND.data, signed) > 25


@pytest.mark.parametrize(
    "stamp", [-2_208_988_800_000, -1, WALL_MS_MAX + 1, 2**62, 2**64 - 1, float("nan"), 1.0]
)
def test_X_45_a_stamp_out_of_range_is_refused(stamp: object) -> None:
    """The year 1900, a far future, and what is no number."""
    w = Writer()
    run = [w.open(), w.create("when?", wall_ms=stamp)]
    with pytest.raises(BadEncoding):
        verify_run(AGENT, run)


def test_X_45_order_never_depends_on_a_stamp(store: AgentStore) -> None:
    """An entry stamped 9999 does not beat one that was written after it and saw it."""
    w = Writer()
    run = [w.open()]
    record = w.next_id()
    run.append(w.create("one", wall_ms=0))
    created = w.prev
    run.append(w.change(record, [created], [put("field.layer", "year")], wall_ms=WALL_MS_MAX))
    far = w.prev
    run.append(w.change(record, [far], [put("field.layer", "week")], wall_ms=0))
    store.append_runs([verify_run(AGENT, run)], NOW_US)
    (layer,) = store.connection.execute("SELECT layer FROM record").fetchone()
    times = [r[0] for r in store.connection.execute("SELECT time_ms FROM entry ORDER BY seq")]
    assert layer == "week"
    assert times == sorted(times)


LOOK_ALIKES = (
    "tag.caf\u00e9",
    "tag.cafe\u0301",
    "tag.\u0441afe",
    "tag.cafe",
    "tag.cafe\u200b",
    "tag.CAFE",
    "tag.\u202ecafe",
    "tag.\uff43afe",
)


def test_X_48_keys_that_look_alike_are_different_keys_on_every_node() -> None:
    """Keys are compared by their bytes, and nobody's are folded together."""
    w = Writer()
    w.open()
    record = w.next_id()
    tags = [put(key, b"12345678") for key in LOOK_ALIKES]
    raw = [w.create("one"), w.change(record, [w.prev], tags)]
    removed = w.change(record, [w.prev], [delete(LOOK_ALIKES[0])])
    stored = [Stored(decode_header(e.header), e.payload, 0) for e in [*raw, removed]]
    for order in itertools.permutations(stored):
        fold = fold_record(AGENT, record, order, lambda _: FREE)
        assert fold.reasons == {}
        assert {k for k in fold.values if k in LOOK_ALIKES} == {*LOOK_ALIKES[1:]}


@pytest.mark.parametrize(
    "key",
    [
        "tag.a\0b",
        "tag.\x1b]0;title\x07",
        "tag." + "\u0301" * (2 * 1024 * 1024),
        "tag." + "x" * (OP_KEY_BYTES_MAX - 3),
        "tag." + "\U0001f41d" * 64,
    ],
    ids=["NUL", "escape", "marks", "bytes", "bytes of emoji"],
)
def test_X_48_keys_with_control_characters_or_without_end_are_malformed(key: str) -> None:
    """By one rule on every node: the entry is set aside, the record reads as before."""
    w = Writer()
    w.open()
    record = w.next_id()
    raw = [w.create("one")]
    value = msgpack.packb([[key, 0, 6, b"12345678"]])
    padded = value + bytes(-len(value) % 64)
    bad = msgpack.packb([1, bytes(16), padded, bytes(32)])
    assert len(bad) < ENTRY_BYTES_MAX
    raw.append(w.entry(bad, record=record, deps=[w.prev]))
    fold = fold_record(
        AGENT,
        record,
        [Stored(decode_header(e.header), e.payload, 0) for e in raw],
        lambda _: FREE,
    )
    assert fold.reasons == {EntryHash(hash256(raw[1].header)): Reason.MALFORMED}
    assert fold.body["body.text"] == "one"


def test_X_48_a_surrogate_in_a_key_is_no_text() -> None:
    """It neither encodes nor decodes."""
    with pytest.raises(BadEncoding):
        codec.encode(["tag.\ud800"])
    with pytest.raises(BadEncoding):
        codec.decode(b"\xa7tag.\xed\xa0\x80", 64)


def test_an_entry_given_to_another_agent_is_refused() -> None:
    """A log is of one agent; its signature does not make it part of another."""
    w = Writer()
    other = type(AGENT)(hash256(b"another agent"))
    with pytest.raises(BadChain):
        verify_run(other, [w.open()])
    w = Writer()
    w.open()
    tombstone = w.tombstone(w.next_id())
    with pytest.raises(BadChain):
        verify_single(other, tombstone)
    with pytest.raises(BadChain):
        verify_single(AGENT, w.create("neither an opening nor a tombstone"))
