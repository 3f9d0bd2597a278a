"""Valid inputs of every decoder: the published vectors, and messages made of what is in them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from crdt.entry import LogId
from crdt.log import ServedEntry, Tip, Vector, Want
from crdt.vector import rows_of
from keys import codec
from keys.address import Address
from keys.ids import AgentId, DeviceId, EntryHash, Incarnation, hash256
from keys.keyfile import _MAGIC
from keys.signing import OwnerKey
from keys.vault import Cost, seal_owner
from node.gifts import JoinerGift, OpenerGift
from sync import messages
from sync.frames import (
    Ahead,
    Announce,
    Beat,
    End,
    Failure,
    Frame,
    PayloadFrame,
    Run,
    ServerVector,
    StatementsChanged,
    Totals,
    pack,
)
from sync.recovery import RecoverReply, RecoverRequest
from tests.support.pairing import two
from tests.support.vectors import load
from tests.vectors.cast import OWNER as OWNER_KEY
from tests.vectors.cast import RECOVERY
from tests.vectors.forms import unhexed

# Read once, and not in anybody's event loop.
_LOADED: Final = {
    suite: load(suite) for suite in ("runs", "statements", "headers", "payloads", "digests")
}
OWNER: Final = OWNER_KEY.owner
AGENT: Final = AgentId(bytes.fromhex(_LOADED["runs"]["agent"]))
DEVICE: Final = DeviceId(hash256(b"a device"))
LOG: Final = LogId(DEVICE, Incarnation(bytes(8)))
HASH: Final = EntryHash(hash256(b"an entry"))
VECTOR: Final[Vector] = {
    LOG: [Tip(7, HASH)],
    LogId(DeviceId(b"\xff" * 32), Incarnation(bytes(8))): [Tip(1, HASH), Tip(2, HASH)],
}


def cases(suite: str, field: str, **wanted: str) -> list[bytes]:
    """The bytes of every case of a suite, also of those that are refused."""
    return [
        unhexed(case[field])
        for case in _LOADED[suite]["cases"]
        if field in case and all(case.get(k) == v for k, v in wanted.items())
    ]


def good(suite: str, field: str, **wanted: str) -> list[bytes]:
    """The bytes of the cases that are taken."""
    return [
        unhexed(case[field])
        for case in _LOADED[suite]["cases"]
        if field in case
        and "error" not in case
        and all(case.get(k) == v for k, v in wanted.items())
    ]


def headers() -> list[bytes]:
    """Headers of every shape."""
    return good("headers", "bytes")


def payloads(kind: str) -> list[bytes]:
    """Payloads of a kind."""
    return good("payloads", "bytes", kind=kind)


def statements() -> list[bytes]:
    """Statements of every kind."""
    return good("statements", "data")


def signed_statements() -> list[bytes]:
    """Statements with their signatures, as a list of the two."""
    return [codec.encode(list(pair)) for pair in _signed()]


def _signed() -> list[tuple[bytes, bytes]]:
    found = [case for case in _LOADED["statements"]["cases"] if "error" not in case]
    pairs = [(unhexed(case["data"]), unhexed(case["signature"])) for case in found]
    return [pair for pair in pairs if len(pair[0]) < 8_192]


def vectors() -> list[bytes]:
    """Version vectors."""
    return [codec.encode(rows_of(VECTOR)), *good("digests", "bytes")]


@cache
def _runs() -> list[list[list[bytes | None]]]:
    found = []
    for case in _LOADED["runs"]["cases"]:
        if "error" not in case and "entries" in case:
            rows = [[None if p is None else unhexed(p) for p in row] for row in case["entries"]]
            if sum(len(p or b"") for row in rows for p in row) < 8_192:
                found.append(rows)
    return found


def runs() -> list[bytes]:
    """Runs as the rows of a frame."""
    return [codec.encode([[*row, b""] for row in rows]) for rows in _runs()]


def singles() -> list[bytes]:
    """Single entries as the rows of a frame."""
    return [codec.encode([[*row, b""]]) for rows in _runs() for row in rows]


def frames() -> list[bytes]:
    """A frame of every kind, without its length."""
    return [pack(frame)[4:] for frame in _frames()]


def _frames() -> list[Frame]:
    from crdt.chain import RawEntry

    run = [RawEntry(*row) for row in _runs()[0]]  # type: ignore[arg-type]
    opening = next(e for e in run if e.payload is not None)
    return [
        Totals(3, 1),
        Ahead(RawEntry(opening.header, opening.payload, bytes(64)),
              RawEntry(opening.header, opening.payload, bytes(64))),
        Run(tuple(ServedEntry(entry, b"") for entry in run)),
        Run((ServedEntry(RawEntry(opening.header, None, b""), bytes(HASH)),)),
        ServerVector(VECTOR),
        End(True),
        Failure("not_found"),
        Announce(AGENT, LOG, Tip(7, HASH)),
        StatementsChanged(AGENT, bytes(32)),
        Beat(),
        PayloadFrame(Want(LOG, 3, HASH), b"payload"),
    ]  # fmt: skip


def streams() -> list[bytes]:
    """Whole answers to a pull."""
    from crdt.chain import RawEntry

    out = []
    for rows in _runs():
        run = tuple(ServedEntry(RawEntry(*row), b"") for row in rows)  # type: ignore[arg-type]
        whole: list[Frame] = [Totals(len(run), 0), Run(run), ServerVector(VECTOR), End(False)]
        out.append(b"".join(map(pack, whole)))
    return out


def watched() -> bytes:
    """What a watch brings."""
    found: list[Frame] = [
        Announce(AGENT, LOG, Tip(7, HASH)),
        Beat(),
        StatementsChanged(AGENT, bytes(32)),
    ]
    return b"".join(map(pack, found))


def hellos() -> list[bytes]:
    """Hellos with and without agents."""
    shared = (messages.SharedAgent(AGENT, bytes(32), bytes(32)),)
    addresses = (Address("10.0.0.1", 7667), Address("fe80::1%eth0", 80))
    return [
        messages.Hello((1, 1), "laptop", bytes(16), 1_700_000_000_000, addresses, shared).encode(),
        messages.Hello((1, 3), "", bytes(16), 0, (), ()).encode(),
    ]


def statements_requests() -> list[bytes]:
    """Requests with and without a proof."""
    ids = tuple(sorted(hash256(bytes([n])) for n in range(5)))
    found = (messages.StatementsRequest(ids, tuple(_signed()[:2])), messages.StatementsRequest(()))
    return [request.encode() for request in found]


def statements_replies() -> list[bytes]:
    """Replies with statements and sealed keys."""
    boxes = (messages.KeyBox(bytes(32), bytes(80)), messages.KeyBox(bytes(HASH), bytes(80)))
    return [messages.StatementsReply(tuple(_signed()[:3]), boxes, False).encode()]


def pull_requests() -> list[bytes]:
    """Requests with and without what is held."""
    found = (messages.PullRequest(VECTOR, 100, frozenset({LOG})), messages.PullRequest({}))
    return [request.encode() for request in found]


def payloads_requests() -> list[bytes]:
    """Want-lists."""
    wants = tuple(Want(LOG, n, HASH) for n in range(1, 4))
    return [messages.PayloadsRequest(wants).encode()]


def recover_requests() -> list[bytes]:
    """A claim with a recovery key."""
    return [RecoverRequest.sign(RECOVERY, DEVICE, DEVICE).encode()]


def recover_replies() -> list[bytes]:
    """Statements of two agents."""
    return [RecoverReply(((AGENT, tuple(_signed()[:2])), (AGENT, ()))).encode()]


def pairing() -> tuple[bytes, bytes, bytes, bytes]:
    """The four messages of one pairing."""
    joiner, opener = two()
    join = joiner.start()
    answer = opener.receive(join, 1_000.0)
    assert answer is not None
    confirm = joiner.receive(answer)
    assert confirm is not None
    confirmed = opener.receive(confirm, 1_000.0)
    assert confirmed is not None
    return join, answer, confirm, confirmed


def joiner_gifts() -> list[bytes]:
    """What a joiner gives."""
    return [codec.encode(JoinerGift({OWNER: bytes(64)}).encode())]


def opener_gifts() -> list[bytes]:
    """What an opener gives."""
    return [codec.encode(OpenerGift("me", (OWNER,), bytes(200)).encode())]


def device_key_file() -> bytes:
    """The file of a device's key."""
    body = _MAGIC + bytes(range(32))
    return body + hash256(body)[:8]


def owner_vault() -> bytes:
    """A vault that costs little."""
    return seal_owner(OwnerKey(bytes(32)), "correct horse battery", cost=Cost(1, 8_192))


def everything() -> list[bytes]:
    """Some bytes of every kind that is MessagePack."""
    found = [*headers()[:4], *payloads("ops")[:6], *payloads("open")[:2],
             *payloads("tombstone")[:2], *statements()[:20], *runs()[:4], *frames(), *hellos(),
             *statements_requests(), *pull_requests(), *payloads_requests()]  # fmt: skip
    return [data for data in found if len(data) < 8_192]


# -- JSON -----------------------------------------------------------------------------------------


def rows() -> list[Any]:
    """Lines of an export."""
    return export()[1:]


def export() -> list[Any]:
    """An export: its manifest and its lines."""
    return [
        {"roost": 1, "agent": str(AGENT), "name": "muse", "exported_at": "2026-01-01T00:00:00Z",
         "records": 3},
        {"record": "0" * 32, "kind": "observation", "text": "the key hangs in the shed",
         "tags": ["home", "keys"], "layer": "day", "weight": 1.0, "sources": []},
        {"record": "1" * 32, "kind": "turn", "text": "\U0001f41d caf\u00e9", "speaker": "Ana",
         "session": "s/1", "valid_from": "2026-01-01T00:00:00Z"},
        {"text": "short"},
    ]  # fmt: skip


def locomo() -> Any:
    """Two conversations."""
    turn = {"dia_id": "D1:1", "speaker": "Ana", "text": "hello", "blip_caption": "a cat"}
    talk = {"session_1": [turn, turn], "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [], "speaker_a": "Ana"}  # fmt: skip
    return [{"sample_id": "conv-1", "conversation": talk, "qa": []},
            {"sample_id": "conv-2", "conversation": {"session_1": [turn]}}]  # fmt: skip
