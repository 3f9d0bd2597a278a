"""The codec's law: what decodes encodes to the same bytes, and everything else is refused."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys import codec
from keys.errors import BadEncoding
from keys.limits import INT_MAX, INT_MIN, NESTING_MAX

BYTES_MAX = 4_096

scalars = (
    st.none()
    | st.booleans()
    | st.integers(INT_MIN, INT_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(values)
def test_what_is_encoded_decodes_to_the_same_value(value: Any) -> None:
    """Encoding loses nothing, and gives one encoding only."""
    data = codec.encode(value)

    found = codec.decode(data, len(data))

    assert found == value
    assert codec.encode(found) == data


@given(st.binary(max_size=64) | values.map(msgpack.packb))
def test_bytes_decode_to_a_value_that_encodes_to_them_or_are_refused(data: bytes) -> None:
    """No bytes make the decoder raise anything else, or accept a second encoding."""
    try:
        found = codec.decode(data, BYTES_MAX)
    except BadEncoding:
        return
    assert codec.encode(found) == data


@given(st.binary(max_size=64) | values.map(msgpack.packb))
def test_the_small_decoder_raises_nothing_else(data: bytes) -> None:
    """Whoever calls it has one error to handle, and gets back what the bytes say."""
    try:
        found = codec.decode_small(data)
    except BadEncoding:
        return
    assert codec.pack(found) == data


@pytest.mark.parametrize("inner", [0, [], {}], ids=str)
def test_both_ways_agree_on_what_is_too_deep(inner: object) -> None:
    """A value lies inside 8 lists or maps at most, whichever way it goes."""
    value = inner
    for _ in range(NESTING_MAX):
        value = [value]
    assert codec.decode(codec.encode(value), BYTES_MAX) == value

    with pytest.raises(BadEncoding):
        codec.encode([value])
    with pytest.raises(BadEncoding):
        codec.decode(msgpack.packb([value]), BYTES_MAX)


@pytest.mark.parametrize(
    "value",
    [
        INT_MAX + 1,
        INT_MIN - 1,
        float("nan"),
        float("inf"),
        "\ud800",
        {"\udfff": 1},
        {b"key": 1},
        {1: 1},
        {None: 1},
        bytearray(b"x"),
        memoryview(b"x"),
        {1, 2},
        1j,
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}"[:24].partition(" at 0x")[0],
)
def test_what_has_no_canonical_form_is_not_encoded(value: object) -> None:
    """The writer learns of it, not the peers."""
    with pytest.raises(BadEncoding):
        codec.encode([value])
