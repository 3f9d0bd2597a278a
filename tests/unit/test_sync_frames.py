"""Frames: cut out of any chunks, bounded before they are kept, refused unless exact."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdt.chain import RawEntry
from crdt.log import ServedEntry, Tip, Want
from keys import codec
from keys.errors import BadEncoding
from keys.ids import EntryHash
from keys.limits import (
    AHEAD_TOMBSTONES_MAX,
    ENTRY_BYTES_MAX,
    FRAME_BYTES_MAX,
    RUN_BYTES_MAX,
    RUN_ENTRIES_MAX,
    SEQ_MAX,
)
from sync.frames import (
    KIND_CHARS_MAX,
    LENGTH_BYTES,
    READERS,
    Ahead,
    Announce,
    Beat,
    End,
    Failure,
    Frame,
    FrameReader,
    PayloadFrame,
    Run,
    ServerVector,
    StatementsChanged,
    Totals,
    Unknown,
    pack,
    parse,
)
from tests.support.author import Family
from tests.support.exchange import raises_bad_input_only

FAMILY = Family("a")
LOG = FAMILY.author("a").log
HASH = EntryHash(bytes(32))
ENTRY = RawEntry(b"header", b"payload", bytes(64))
STUB = RawEntry(b"header", None, b"")
FRAMES: list[Frame] = [
    Totals(3, 1),
    Ahead(ENTRY, ENTRY),
    Run((ServedEntry(ENTRY, b""), ServedEntry(STUB, bytes(32)), ServedEntry(STUB, b""))),
    ServerVector({LOG: [Tip(3, HASH)]}),
    End(True),
    Failure("not_found"),
    Announce(FAMILY.agent, LOG, Tip(4, HASH)),
    StatementsChanged(FAMILY.agent, bytes(32)),
    Beat(),
    PayloadFrame(Want(LOG, 2, HASH), b"payload"),
    Unknown("later"),
]
SENT = b"".join(map(pack, FRAMES))


def bodies(chunks: list[bytes], size_max: int = FRAME_BYTES_MAX) -> list[bytes]:
    """What a reader makes of chunks."""
    reader, found = FrameReader(size_max), []
    for chunk in chunks:
        reader.feed(chunk)
        found += list(iter(reader.next_body, None))
    return found


def test_every_kind_comes_back() -> None:
    """Packing and parsing are each other's inverse, and every kind is in the list."""
    assert [parse(body) for body in bodies([SENT])] == FRAMES
    kinds = {codec.decode_small(body)[0] for body in bodies([SENT])}
    assert kinds == READERS.keys() | {"later"}


@given(st.lists(st.integers(0, len(SENT)), max_size=20))
def test_frames_do_not_depend_on_how_the_stream_is_chunked(cuts: list[int]) -> None:
    """The same bodies for every way to cut the bytes."""
    places = [0, *sorted(cuts), len(SENT)]
    chunks = [SENT[a:b] for a, b in pairwise(places)]
    assert bodies(chunks) == bodies([SENT])


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_random_bytes_are_refused_and_nothing_else_happens(chunks: list[bytes]) -> None:
    """Neither the reader nor the parser raises anything but ``BadInput``."""

    def read() -> None:
        for body in bodies(chunks):
            parse(body)

    raises_bad_input_only(read)


@given(st.sampled_from(bodies([SENT])), st.integers(0, 7), st.data())
def test_a_flipped_bit_is_refused_or_read_as_what_it_is(
    body: bytes, bit: int, data: st.DataObject
) -> None:
    """Whatever parses packs to the very bytes it came from."""
    at = data.draw(st.integers(0, len(body) - 1))
    flipped = body[:at] + bytes([body[at] ^ 1 << bit]) + body[at + 1 :]
    try:
        frame = parse(flipped)
    except BadEncoding:
        return
    assert isinstance(frame, Unknown) or pack(frame)[LENGTH_BYTES:] == flipped


@given(
    st.recursive(st.none() | st.integers(-5, 70) | st.binary(max_size=70), st.lists, max_leaves=12),
    st.data(),
)
def test_wrong_fields_are_refused(value: object, data: st.DataObject) -> None:
    """Any values behind a known kind: the frame they spell, or ``BadEncoding``."""
    kind = data.draw(st.sampled_from(sorted(READERS)))
    values = value if isinstance(value, list) else [value]
    body = codec.encode([kind, *values])
    try:
        frame = parse(body)
    except BadEncoding:
        return
    assert pack(frame)[LENGTH_BYTES:] == body


def test_a_length_is_compared_before_anything_is_kept() -> None:
    """The largest frame passes; one byte more, or none, is refused at its fourth byte."""
    assert bodies([(8).to_bytes(4, "big") + bytes(8)], 8) == [bytes(8)]
    assert FrameReader(8).next_body() is None
    for length in (9, 0, 2**32 - 1):
        reader = FrameReader(8)
        reader.feed(length.to_bytes(4, "big")[:3])
        assert reader.next_body() is None
        reader.feed(length.to_bytes(4, "big")[3:])
        with pytest.raises(BadEncoding):
            reader.next_body()
        with pytest.raises(BadEncoding):
            reader.next_body()


def test_whole_frames_before_a_bad_length_are_read() -> None:
    """One bad frame does not take back the good ones before it."""
    reader = FrameReader()
    reader.feed(pack(Beat()) + bytes(4))
    assert reader.next_body() is not None
    assert not reader.between_frames
    with pytest.raises(BadEncoding):
        reader.next_body()


def test_the_largest_run_fits_a_frame_and_more_does_not() -> None:
    """A frame holds what ``verify_run`` accepts, with signatures and tombstones."""
    part = RUN_BYTES_MAX // RUN_ENTRIES_MAX
    entry = ServedEntry(RawEntry(b"h", bytes(part - 1), bytes(64)), b"")
    stub = ServedEntry(RawEntry(b"h", None, bytes(64)), bytes(32))
    assert len(pack(Run((entry, stub) * (RUN_ENTRIES_MAX // 2)))) < FRAME_BYTES_MAX
    assert len(pack(Run((entry,) * RUN_ENTRIES_MAX))) <= FRAME_BYTES_MAX + LENGTH_BYTES
    with pytest.raises(BadEncoding):
        pack(Run((ServedEntry(RawEntry(b"h", bytes(FRAME_BYTES_MAX), b""), b""),)))


ROW = [b"h", b"p", b"", b""]
OFF: dict[str, object] = {
    "no list": 1,
    "empty": [],
    "kind no text": [b"totals", 1, 1],
    "kind empty": [""],
    "kind long": ["k" * (KIND_CHARS_MAX + 1)],
    "totals short": ["totals", 1],
    "totals negative": ["totals", -1, 0],
    "totals over": ["totals", SEQ_MAX + 1, 0],
    "tombstones over": ["totals", 0, AHEAD_TOMBSTONES_MAX + 1],
    "ahead without payload": ["ahead", [b"h", None, bytes(64)], [b"h", b"p", bytes(64)]],
    "ahead without signature": ["ahead", [b"h", b"p", b""], [b"h", b"p", bytes(64)]],
    "run empty": ["run", []],
    "run over": ["run", [ROW] * (RUN_ENTRIES_MAX + 1)],
    "run of a map": ["run", {}],
    "entry short": ["run", [ROW[:3]]],
    "entry of maps": ["run", [[{}, {}, {}, {}]]],
    "header empty": ["run", [[b"", *ROW[1:]]]],
    "payload empty": ["run", [[b"h", b"", b"", b""]]],
    "payload over": ["run", [[b"h", bytes(ENTRY_BYTES_MAX + 1), b"", b""]]],
    "signature short": ["run", [[b"h", b"p", bytes(63), b""]]],
    "signature none": ["run", [[b"h", b"p", None, b""]]],
    "tombstone short": ["run", [[b"h", None, b"", bytes(31)]]],
    "payload and tombstone": ["run", [[b"h", b"p", b"", bytes(32)]]],
    "vector of none": ["vector", None],
    "end of a number": ["end", 0],
    "error with words": ["error", "Some words"],
    "error empty": ["error", ""],
    "announce seq 0": ["announce", bytes(32), bytes(32), bytes(8), 0, bytes(32)],
    "announce short": ["announce", bytes(32), bytes(32), bytes(8), 1, bytes(31)],
    "statements short": ["statements", bytes(32), bytes(31)],
    "beat with more": ["beat", 1],
    "payload frame empty": ["payload", bytes(32), bytes(8), 1, bytes(32), b""],
}


@pytest.mark.parametrize("name", OFF)
def test_a_frame_that_is_off_is_refused(name: str) -> None:
    """Every field of every kind."""
    with pytest.raises(BadEncoding):
        parse(codec.encode(OFF[name]))


def test_bounds_of_frames_hold_at_n() -> None:
    """The largest values pass."""
    parse(codec.encode(["totals", SEQ_MAX, AHEAD_TOMBSTONES_MAX]))
    parse(codec.encode(["run", [ROW] * RUN_ENTRIES_MAX]))
    parse(codec.encode(["run", [[b"h", bytes(ENTRY_BYTES_MAX), b"", b""]]]))
    assert parse(codec.encode(["k" * KIND_CHARS_MAX, {"any": "thing"}])) == Unknown("k" * 32)


def test_X_42_non_canonical_frames_are_refused() -> None:
    """Long integers, a trailing byte, text for bytes."""
    for body in (b"\x93\xa6totals\xcd\x00\x01\x00", b"\x91\xa4beat\x00", b"\x91\xd9\x04beat"):
        with pytest.raises(BadEncoding):
            parse(body)
