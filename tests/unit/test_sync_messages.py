"""Messages: what is encoded comes back, what is off is refused, bounds hold at n and n + 1."""

from dataclasses import replace
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdt.log import Tip, Want
from keys import codec
from keys.address import Address
from keys.errors import BadEncoding
from keys.ids import AgentId, EntryHash
from keys.limits import (
    ADDRESSES_MAX,
    AGENTS_PER_HELLO_MAX,
    KEY_BOX_BYTES_MAX,
    KEY_BOXES_MAX,
    LOGS_PER_AGENT_MAX,
    NAME_BYTES_MAX,
    PROOF_STATEMENTS_MAX,
    PULL_ENTRIES_MAX,
    REPLY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    SEQ_MAX,
    STATEMENT_BYTES_MAX,
    STATEMENTS_PAGE_MAX,
    STATEMENTS_PER_AGENT_MAX,
    VERSION_MAX,
    WALL_MS_MAX,
    WANT_PAYLOADS_MAX,
)
from sync.errors import IncompatibleError
from sync.messages import (
    BAD_REQUEST,
    NOT_FOUND,
    PULL_PATH,
    REFUSALS,
    Hello,
    KeyBox,
    PayloadsRequest,
    PullRequest,
    SharedAgent,
    StatementsReply,
    StatementsRequest,
    agent_of_path,
    agreed_version,
    code_of_refusal,
    path_of,
)
from tests.support.author import Family, seeded
from tests.support.exchange import raises_bad_input_only

FAMILY = Family("a", "b")
LOG = FAMILY.author("a").log
SHARED = SharedAgent(FAMILY.agent, bytes(32), bytes(32))
HELLO = Hello((1, 2), "attic", bytes(16), 5, (Address("10.0.0.2", 7667),), (SHARED,))
SIGNED = [(s.data, s.signature) for s in FAMILY.statements]
WANT = Want(LOG, 7, EntryHash(bytes(32)))


class Message(Protocol):
    """A class of messages."""

    def decode(self, data: bytes, /) -> object:
        """The message in ``data``."""


def many(count: int) -> list[bytes]:
    """Distinct hashes, sorted."""
    return sorted(seeded(str(i)) for i in range(count))


def hello(**changes: object) -> bytes:
    """A hello with fields of its map replaced."""
    return codec.encode(codec.decode(HELLO.encode(), REQUEST_BYTES_MAX) | changes)


def test_every_message_comes_back() -> None:
    """Encoding and decoding are each other's inverse."""
    assert Hello.decode(HELLO.encode()) == HELLO
    ask = StatementsRequest(tuple(many(3)), tuple(SIGNED))
    assert StatementsRequest.decode(ask.encode()) == ask
    reply = StatementsReply(tuple(SIGNED), (KeyBox(bytes(32), b"box"),), True)
    assert StatementsReply.decode(reply.encode()) == reply
    pull = PullRequest({LOG: [Tip(3, EntryHash(bytes(32)))]}, 5, frozenset({LOG}))
    assert PullRequest.decode(pull.encode()) == pull
    assert PullRequest.decode(PullRequest({LOG: []}).encode()).have == {}
    wants = PayloadsRequest((WANT,))
    assert PayloadsRequest.decode(wants.encode()) == wants


def test_an_in_sync_check_costs_little() -> None:
    """Budget: under 1 KiB for each agent."""
    other = SharedAgent(AgentId(seeded("other")), bytes(32), bytes(32))
    more = len(replace(HELLO, agents=(SHARED, other)).encode()) - len(HELLO.encode())
    assert more < 128


def test_only_a_hello_may_grow() -> None:
    """A later version adds to a hello; any other message is exactly its fields."""
    assert Hello.decode(hello(later=[1])) == HELLO
    empty: list[tuple[Message, bytes]] = [
        (StatementsRequest, StatementsRequest(()).encode()),
        (PullRequest, PullRequest({}).encode()),
        (PayloadsRequest, PayloadsRequest(()).encode()),
    ]
    for message, data in empty:
        value = codec.decode(data, REQUEST_BYTES_MAX)
        changes: list[object] = [value | {"later": 1}, dict(list(value.items())[1:]), [], None]
        for changed in changes:
            with pytest.raises(BadEncoding):
                message.decode(codec.encode(changed))


BAD_HELLOS: dict[str, bytes] = {
    "short nonce": hello(boot_nonce=bytes(15)),
    "clock over": hello(clock_ms=WALL_MS_MAX + 1),
    "clock negative": hello(clock_ms=-1),
    "clock float": hello(clock_ms=1.0),
    "name over": hello(device_name="x" * (NAME_BYTES_MAX + 1)),
    "name over in bytes": hello(device_name="é" * (NAME_BYTES_MAX // 2 + 1)),
    "versions turned": hello(versions=[2, 1]),
    "version 0": hello(versions=[0, 1]),
    "version over": hello(versions=[1, VERSION_MAX + 1]),
    "versions short": hello(versions=[1]),
    "address": hello(addresses=["nowhere"]),
    "address written otherwise": hello(addresses=["ATTIC.local:7667"]),
    "addresses over": hello(addresses=["10.0.0.2:1"] * (ADDRESSES_MAX + 1)),
    "agent twice": hello(agents=[[bytes(32)] * 3] * 2),
    "agents over": hello(agents=[[h, h, h] for h in many(AGENTS_PER_HELLO_MAX + 1)]),
    "short digest": hello(agents=[[bytes(32), bytes(31), bytes(32)]]),
    "trailing byte": HELLO.encode() + b"\0",
    "too large": hello(later="x" * REQUEST_BYTES_MAX),
}


@pytest.mark.parametrize("name", BAD_HELLOS)
def test_a_hello_that_is_off_is_refused(name: str) -> None:
    """Every field, every bound."""
    with pytest.raises(BadEncoding):
        Hello.decode(BAD_HELLOS[name])


def test_a_hello_at_its_bounds_is_taken() -> None:
    """The longest name, the most addresses and agents."""
    found = Hello.decode(
        hello(
            device_name="x" * NAME_BYTES_MAX,
            addresses=["10.0.0.2:1"] * ADDRESSES_MAX,
            agents=[[h, h, h] for h in many(AGENTS_PER_HELLO_MAX)],
            versions=[1, VERSION_MAX],
            clock_ms=WALL_MS_MAX,
        )
    )
    assert len(found.agents) == AGENTS_PER_HELLO_MAX


def statements(count: int, size: int = 1) -> list[list[bytes]]:
    """Pairs that have the form of signed statements."""
    return [[b"s" * size, bytes(64)]] * count


BOUNDS: dict[str, tuple[Message, object, object]] = {
    "have": (
        StatementsRequest,
        {"have": many(STATEMENTS_PER_AGENT_MAX), "proof": []},
        {"have": many(STATEMENTS_PER_AGENT_MAX + 1), "proof": []},
    ),
    "proof": (
        StatementsRequest,
        {"have": [], "proof": statements(PROOF_STATEMENTS_MAX)},
        {"have": [], "proof": statements(PROOF_STATEMENTS_MAX + 1)},
    ),
    "statement": (
        StatementsRequest,
        {"have": [], "proof": statements(1, STATEMENT_BYTES_MAX)},
        {"have": [], "proof": statements(1, STATEMENT_BYTES_MAX + 1)},
    ),
    "page": (
        StatementsReply,
        {"keys": [], "more": False, "statements": statements(STATEMENTS_PAGE_MAX)},
        {"keys": [], "more": False, "statements": statements(STATEMENTS_PAGE_MAX + 1)},
    ),
    "keys": (
        StatementsReply,
        {"keys": [[h, b"b"] for h in many(KEY_BOXES_MAX)], "more": False, "statements": []},
        {"keys": [[h, b"b"] for h in many(KEY_BOXES_MAX + 1)], "more": False, "statements": []},
    ),
    "box": (
        StatementsReply,
        {"keys": [[bytes(32), bytes(KEY_BOX_BYTES_MAX)]], "more": False, "statements": []},
        {"keys": [[bytes(32), bytes(KEY_BOX_BYTES_MAX + 1)]], "more": False, "statements": []},
    ),
    "limit": (
        PullRequest,
        {"have": [], "limit": PULL_ENTRIES_MAX, "skip": []},
        {"have": [], "limit": PULL_ENTRIES_MAX + 1, "skip": []},
    ),
    "no limit": (
        PullRequest,
        {"have": [], "limit": 1, "skip": []},
        {"have": [], "limit": 0, "skip": []},
    ),
    "skip": (
        PullRequest,
        {"have": [], "limit": 1, "skip": [[h, bytes(8)] for h in many(LOGS_PER_AGENT_MAX)]},
        {"have": [], "limit": 1, "skip": [[h, bytes(8)] for h in many(LOGS_PER_AGENT_MAX + 1)]},
    ),
    "want": (
        PayloadsRequest,
        {"want": [[h, bytes(8), 1, h] for h in many(WANT_PAYLOADS_MAX)]},
        {"want": [[h, bytes(8), 1, h] for h in many(WANT_PAYLOADS_MAX + 1)]},
    ),
    "seq": (
        PayloadsRequest,
        {"want": [[bytes(32), bytes(8), SEQ_MAX, bytes(32)]]},
        {"want": [[bytes(32), bytes(8), SEQ_MAX + 1, bytes(32)]]},
    ),
    "first seq": (
        PayloadsRequest,
        {"want": [[bytes(32), bytes(8), 1, bytes(32)]]},
        {"want": [[bytes(32), bytes(8), 0, bytes(32)]]},
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_every_bound_holds_at_n_and_not_at_n_plus_1(name: str) -> None:
    """Limits of requests and replies."""
    message, fits, over = BOUNDS[name]
    message.decode(codec.encode(fits))
    with pytest.raises(BadEncoding):
        message.decode(codec.encode(over))


def test_lists_that_stand_for_sets_are_sorted_and_distinct() -> None:
    """One set has one encoding."""
    twice = [[bytes(32), bytes(8), 1, bytes(32)]] * 2
    wrong: list[tuple[Message, object]] = [
        (StatementsRequest, {"have": [b"b" * 32, b"a" * 32], "proof": []}),
        (StatementsRequest, {"have": [b"a" * 32] * 2, "proof": []}),
        (PayloadsRequest, {"want": twice}),
        (PullRequest, {"have": [], "limit": 1, "skip": [[bytes(32), bytes(8)]] * 2}),
        (StatementsReply, {"keys": [[bytes(32), b"b"]] * 2, "more": False, "statements": []}),
        (StatementsReply, {"keys": [], "more": 0, "statements": []}),
    ]
    for message, value in wrong:
        with pytest.raises(BadEncoding):
            message.decode(codec.encode(value))


@pytest.mark.parametrize(
    "message", [Hello, StatementsRequest, StatementsReply, PullRequest, PayloadsRequest]
)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused_and_nothing_else_happens(message: Message, data: bytes) -> None:
    """No decoder raises anything but ``BadInput``."""
    raises_bad_input_only(lambda: message.decode(data))


@given(at=st.integers(0, len(HELLO.encode()) * 8 - 1))
def test_a_flipped_bit_is_refused_or_another_hello(at: int) -> None:
    """Whatever decodes encodes to the very bytes it came from."""
    data = bytearray(HELLO.encode())
    data[at // 8] ^= 1 << at % 8
    try:
        found = Hello.decode(bytes(data))
    except BadEncoding:
        return
    grown = (
        codec.decode(bytes(data), REQUEST_BYTES_MAX).keys()
        - codec.decode(HELLO.encode(), REQUEST_BYTES_MAX).keys()
    )
    assert grown or found.encode() == bytes(data)


def test_a_reply_of_the_largest_page_and_most_keys_fits_its_bound() -> None:
    """No honest reply is over ``REPLY_BYTES_MAX``."""
    keys = tuple(KeyBox(h, bytes(KEY_BOX_BYTES_MAX)) for h in many(KEY_BOXES_MAX))
    page = tuple((bytes(STATEMENT_BYTES_MAX), bytes(64)) for _ in range(17))
    assert len(StatementsReply(page, keys, False).encode()) < REPLY_BYTES_MAX


def test_versions_agree_on_the_highest_that_both_speak() -> None:
    """Or say whose node is behind."""
    assert agreed_version((1, 1), (1, 1)) == 1
    assert agreed_version((2, 5), (1, 3)) == 3
    assert agreed_version((1, 1), (1, 9)) == 1
    for theirs, whose in [((2, 3), "this"), ((1, 1), "the other")]:
        mine = (1, 1) if whose == "this" else (2, 2)
        with pytest.raises(IncompatibleError) as caught:
            agreed_version(theirs, mine)
        assert caught.value.hint == f"upgrade {whose} node"


def test_no_right_no_agent_and_no_id_are_told_apart_by_nothing() -> None:
    """X-59: one reply, and it is a constant."""
    assert (NOT_FOUND.status, code_of_refusal(NOT_FOUND.body)) == (404, "not_found")
    assert len({r.body for r in REFUSALS}) == len(REFUSALS)
    agent = FAMILY.agent
    assert agent_of_path(path_of(PULL_PATH, agent).split("/")[3]) == agent
    for wrong in ["", "x", str(agent).upper(), f"{agent} ", str(agent)[:-1], "-" + str(agent)]:
        assert agent_of_path(wrong) is None


@pytest.mark.parametrize("body", [b"", b"\x80", codec.encode({"error": "No Words"}), b"\xff"])
def test_a_refusal_without_a_code_is_refused(body: bytes) -> None:
    """Text of a peer does not pass for a code."""
    with pytest.raises(BadEncoding):
        code_of_refusal(body)
    assert code_of_refusal(BAD_REQUEST.body) == "bad_request"
