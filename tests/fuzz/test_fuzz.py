"""A sample of what ``make soak`` does at length: hostile inputs to every decoder and to nodes."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from keys import codec
from keys.errors import BadEncoding, RefusedError
from keys.limits import (
    CODEC_ITEMS_MAX,
    IMPORT_LINE_BYTES_MAX,
    JSON_VALUE_BYTES,
    JSON_VALUES_MAX,
    REQUEST_BYTES_MAX,
)
from node.jsontext import parse_json
from tests.fuzz import nodes
from tests.fuzz.convergence import live
from tests.fuzz.decoders import MESSAGE_FREE, all_decoders
from tests.fuzz.judge import GROWTH, Decoder, FaultyError, allocated, judge, taken
from tests.fuzz.stores import all_deep
from tests.support.peers import PASSPHRASE, Node, remember, running

SEED = 20_251
INPUTS = 1_000
_FOLDER = tempfile.TemporaryDirectory(prefix="roost-fuzz-")
DECODERS = [*all_decoders(Path(_FOLDER.name)), *all_deep()]


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_a_decoder_takes_or_refuses_whatever_it_is_given(decoder: Decoder) -> None:
    """Within its work and its memory, and with no error but those it documents."""
    result = judge(decoder, SEED, INPUTS)
    assert result.inputs == INPUTS
    assert result.traced >= INPUTS // 16


def _refusing(data: bytes) -> None:
    raise BadEncoding("no")


def _failing(data: bytes) -> None:
    raise KeyError(len(data))


def _working(data: bytes) -> None:
    for _ in range(20_000 + 50 * len(data)):
        len(data)


def _hoarding(data: bytes) -> int:
    return len(bytes(10 * len(data) + 1024 * 1024))


@pytest.mark.parametrize(
    ("read", "what"),
    [(_failing, "KeyError"), (_working, "calls"), (_hoarding, "bytes, ")],
)
def test_the_judge_notices_what_a_decoder_may_not_do(read: Any, what: str) -> None:
    """An error that is not documented, work without bound, memory without bound."""
    make = DECODERS[0].make
    assert judge(Decoder("good", make, _refusing, (BadEncoding,)), SEED, 50).taken == 0
    with pytest.raises(FaultyError, match=what):
        judge(Decoder("bad", make, read, (BadEncoding,)), SEED, 50)


LIST = b"\xdd" + (CODEC_ITEMS_MAX - 1).to_bytes(4, "big")
DEAR = {
    "empty maps": LIST + b"\x80" * (CODEC_ITEMS_MAX - 1),
    "empty lists": LIST + b"\x90" * (CODEC_ITEMS_MAX - 1),
    "floats": LIST + (b"\xcb\x3f" + bytes(7)) * (CODEC_ITEMS_MAX - 1),
    "short texts": LIST + b"\xa3abc" * (CODEC_ITEMS_MAX - 1),
    "one map each": b"\xdc\x55\x55" + b"\x81\xa1a\x00" * 0x5555,
    "too many": b"\xdd\x00\x0f\xff\xf0" + b"\x80" * 0xFFFF0,
    "one blob": b"\xc6\x00\x0f\xff\x00" + bytes(0xFFF00),
}


@pytest.mark.parametrize("name", DEAR)
def test_the_dearest_messages_are_bounded(name: str) -> None:
    """Of the largest size a request may have: four times its bytes, and a constant."""
    data = DEAR[name][:REQUEST_BYTES_MAX]
    decoder = Decoder(
        name, lambda _: data, lambda d: codec.decode(d, REQUEST_BYTES_MAX), (BadEncoding,)
    )
    assert allocated(decoder, data) <= GROWTH * len(data) + MESSAGE_FREE


def _json_of(item: bytes) -> bytes:
    return b"[" + item + (b"," + item) * ((IMPORT_LINE_BYTES_MAX - 2) // (len(item) + 1) - 1) + b"]"


JSON = {
    "empty objects": b"{}",
    "empty lists": b"[]",
    "small objects": b'{"a":1}',
    "numbers": b"1",
    "floats": b"1.5",
    "sixty bytes each": b'"' + b"x" * 58 + b'"',
    "objects of sixty bytes": b'{"a":1,"b":"' + b"x" * 150 + b'"}',
}


@pytest.mark.parametrize("name", JSON)
def test_the_dearest_texts_are_bounded(name: str) -> None:
    """A line of an import as long as it may be; before, empty objects took 25 times their bytes."""
    data = _json_of(JSON[name])
    decoder = Decoder(name, lambda _: data, parse_json, (ValueError,))
    assert allocated(decoder, data) <= GROWTH * len(data) + MESSAGE_FREE


def test_values_of_a_text_are_counted_where_they_are_values() -> None:
    """At the bound and one past it; commas inside strings are none."""
    decoder = Decoder("", lambda _: b"", parse_json, (ValueError,))
    size = 4 * JSON_VALUES_MAX
    most = JSON_VALUES_MAX + size // JSON_VALUE_BYTES
    assert taken(decoder, b"[" + (b"1," * (most - 1)).ljust(size - 3) + b"1]")
    assert not taken(decoder, b"[" + (b"1," * most).ljust(size - 3) + b"1]")
    assert taken(decoder, (b'["' + b",[{" * most + b'\\""]').ljust(size))
    assert not taken(decoder, b'["\\"", ' + (b"1, " * 2 * most) + b'"]"]')


@pytest.mark.slow
async def test_a_node_bears_hostile_calls_on_its_socket(tmp_path: Path) -> None:
    """Each is answered, none with a fault of Roost's, and a good call afterwards too."""
    codes = await nodes.local_api(tmp_path, SEED, 600)
    assert codes.keys() > {"result", "usage", "bad_encoding", "not_found"}
    assert codes.total() == 600


async def test_an_approval_of_what_is_erased_is_refused(tmp_path: Path) -> None:
    """Found by hostile calls: it has no heads that anybody could have been shown."""
    node = await asyncio.to_thread(Node, tmp_path / "home")
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(node, "muse", "forget me")
        await node("forget", agent="muse", record=record, reason="no")
        for heads in ("", "0" * 52):
            with pytest.raises(RefusedError):
                await node("review.approve", agent="muse", record=record, heads=heads,
                           passphrase=PASSPHRASE)  # fmt: skip


@pytest.mark.slow
async def test_a_node_bears_hostile_requests_of_a_peer(tmp_path: Path) -> None:
    """Each is answered with no or with what was asked, and it still searches."""
    codes = await nodes.peer_port(tmp_path, SEED, 400)
    assert {"pull 200", "pull 400", "hello 200", "hello 400"} < codes.keys()


@pytest.mark.slow
async def test_a_node_bears_hostile_answers_to_its_pulls(tmp_path: Path) -> None:
    """Its memory stays as it was, and the first good answer is taken."""
    codes = await nodes.pulls(tmp_path, SEED, 60)
    assert {"none", "bad_encoding"} <= codes.keys()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_X_55_nodes_that_edit_at_once_end_with_one_dump(seed: int) -> None:
    """Partitions, restarts and interrupted pulls; 100,000 steps in ``make soak``."""
    counts = live(seed, 250)
    assert {"pull", "some", "part", "restart", "tag", "move", "remember"} <= counts.keys()
