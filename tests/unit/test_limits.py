"""Every bound at n and n + 1: what is one too much is refused with a typed error, and early.

A constant of ``keys/limits.py`` without a test fails ``test_every_constant_is_tried``: mark a test
with ``bounds``, or name the test that tries it in ``tests/support/bounds.py``.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sync.discovery
from keys import codec, limits
from keys.errors import BadEncoding, BadSignature, KeyFileError, UsageError
from keys.ids import AgentId, DeviceId, EntryHash, Id, Incarnation, OwnerId, RecordId, StatementId
from keys.keyfile import create_secret, read_secret, secure_directory
from keys.recovery import format_code, new_code, parse_code
from keys.signing import OwnerKey, verify
from keys.statements import (
    NONCE_BYTES,
    POLICY_KEYS_MAX,
    SEALED_BYTES_MAX,
    Statement,
    parse_stored,
    sign,
)
from keys.vault import Cost, seal_owner
from sync.announce import Outbox
from sync.discovery import Discovery
from sync.frames import Failure, StatementsChanged, pack, parse
from tests.support.author import seeded
from tests.support.bounds import ELSEWHERE, bounds, constants, tried
from tests.unit import test_limits_entries, test_limits_memory
from tests.vectors.cast import AGENT, LAPTOP, MANY_HASHES, OWNER, PHONE

ROOT = Path(__file__).parents[2]
HASH = seeded("a hash")


def test_every_constant_is_tried() -> None:
    """A bound that nobody tries is a wish."""
    known = tried(sys.modules[__name__]) | tried(test_limits_entries) | tried(test_limits_memory)
    assert constants().keys() - known - ELSEWHERE.keys() == set()
    assert known - constants().keys() == set()
    assert ELSEWHERE.keys() - constants().keys() == set()
    assert known & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_tried_elsewhere_is(name: str) -> None:
    """The file is there, and the word stands in it."""
    file, word = ELSEWHERE[name]
    assert word in (ROOT / file).read_text()


@bounds("WATCH_BEAT_S", "WATCH_SILENCE_S")
def test_the_relations_between_bounds_hold() -> None:
    """They are asserted where the bounds are, so that importing them checks them."""
    tree = ast.parse(Path(limits.__file__).read_text())
    relations = [ast.unparse(node.test) for node in tree.body if isinstance(node, ast.Assert)]
    assert len(relations) >= 14
    for relation in relations:
        assert eval(relation, vars(limits))
    for needed in (
        "ENTRY_BYTES_MAX < COMMIT_BYTES_MAX",
        "COMMIT_ENTRIES_MAX <= RUN_ENTRIES_MAX",
        "RUN_BYTES_MAX < FRAME_BYTES_MAX",
        "WATCH_BEAT_S * 2 < WATCH_SILENCE_S",
        "DEPS_MAX * (HASH_BYTES + 2) + 512 <= HEADER_BYTES_MAX",
    ):
        assert any(needed in relation for relation in relations)


# -- fixed sizes and ids ---------------------------------------------------------------------------


@bounds("KEY_BYTES", "HASH_BYTES", "INCARNATION_BYTES", "RECORD_BYTES")
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (DeviceId, limits.KEY_BYTES),
        (OwnerId, limits.KEY_BYTES),
        (AgentId, limits.HASH_BYTES),
        (StatementId, limits.HASH_BYTES),
        (EntryHash, limits.HASH_BYTES),
        (Incarnation, limits.INCARNATION_BYTES),
        (RecordId, limits.RECORD_BYTES),
    ],
)
def test_an_id_has_its_size(kind: type[Id], size: int) -> None:
    """Not one byte more or less."""
    assert len(kind(bytes(size))) == size
    for wrong in (0, size - 1, size + 1):
        with pytest.raises(BadEncoding):
            kind(bytes(wrong))


@bounds("SIGNATURE_BYTES")
def test_a_signature_has_its_size() -> None:
    """And so has the key."""
    signature = OWNER.sign(b"domain", b"message")
    verify(OWNER.public, b"domain", b"message", signature)
    for wrong in (signature[:-1], signature + b"\0", b""):
        with pytest.raises(BadSignature):
            verify(OWNER.public, b"domain", b"message", wrong)


# -- codec ----------------------------------------------------------------------------------------


@bounds("INT_MIN", "INT_MAX")
def test_integers_have_64_bits() -> None:
    """From the smallest signed to the largest unsigned."""
    for edge, beyond in (
        (limits.INT_MIN, limits.INT_MIN - 1),
        (limits.INT_MAX, limits.INT_MAX + 1),
    ):
        assert codec.decode(codec.encode(edge), 9) == edge
        with pytest.raises(BadEncoding):
            codec.encode(beyond)


@bounds("NESTING_MAX")
def test_a_value_lies_in_so_many_lists_at_most() -> None:
    """Both ways, and refused before it is built."""
    deepest = b"\x91" * limits.NESTING_MAX + b"\x01"
    assert codec.encode(codec.decode(deepest, 64)) == deepest
    with pytest.raises(BadEncoding, match="deeper"):
        codec.decode(b"\x91" + deepest, 64)


@bounds("CODEC_ITEMS_MAX")
def test_a_message_has_so_many_values_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted before anything is built."""
    many = limits.CODEC_ITEMS_MAX - 1
    data = b"\xdc" + many.to_bytes(2, "big") + b"\xc0" * many
    assert len(codec.decode(data, len(data))) == many
    more = b"\xdd" + (many + 1).to_bytes(4, "big") + b"\xc0" * (many + 1)
    monkeypatch.setattr("msgpack.unpackb", None)
    with pytest.raises(BadEncoding, match="more than"):
        codec.decode(more, len(more))


@bounds("SMALL_BYTES")
def test_beyond_a_size_the_small_decoder_walks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what can be built without a walk is bounded."""
    walked: list[int] = []
    walk = codec._walk

    def counted(data: bytes, items_max: int) -> int:
        walked.append(len(data))
        return walk(data, items_max)

    monkeypatch.setattr(codec, "_walk", counted)
    for size in (limits.SMALL_BYTES, limits.SMALL_BYTES + 1):
        assert codec.decode_small(b"\xc5" + (size - 3).to_bytes(2, "big") + bytes(size - 3))
    assert walked == [limits.SMALL_BYTES + 1]


# -- statements -----------------------------------------------------------------------------------


def stated(kind: str, body: dict[str, Any], after: list[bytes] | None = None) -> Statement:
    """A statement by its bytes, so that ``sign`` does not cut anything off."""
    agent = b"" if kind in ("certify", "decertify", "rotate", "found") else bytes(AGENT)
    value = [1, agent, OWNER.public, after or [], kind, body | {"wall_ms": 0}]
    return parse_stored(codec.encode(value), bytes(64))


def refused(kind: str, body: dict[str, Any], after: list[bytes] | None = None) -> None:
    """Expects that there is no such statement."""
    with pytest.raises(BadEncoding):
        stated(kind, body, after)


@bounds("STATEMENT_BYTES_MAX")
def test_a_statement_has_so_many_bytes_at_most() -> None:
    """Compared before it is decoded."""
    room = limits.STATEMENT_BYTES_MAX - len(stated("later", {"x": bytes(60_000)}).data) + 60_000
    assert len(stated("later", {"x": bytes(room)}).data) == limits.STATEMENT_BYTES_MAX
    refused("later", {"x": bytes(room + 1)})


@bounds("STATEMENT_AFTER_MAX")
def test_a_statement_cites_so_many_heads_at_most() -> None:
    """A signer that saw more cites the smallest."""
    n = limits.STATEMENT_AFTER_MAX
    assert len(stated("undo", {"run": bytes(16)}, MANY_HASHES[:n]).after) == n
    refused("undo", {"run": bytes(16)}, MANY_HASHES[: n + 1])
    body = {"run": bytes(16), "wall_ms": 0}
    assert list(sign(OWNER, "undo", body, agent=AGENT, after=MANY_HASHES).after) == MANY_HASHES[:n]


@bounds("CUTS_MAX", "KEEPS_MAX", "FACTS_PER_LIFT_MAX", "APPROVALS_MAX")
@pytest.mark.parametrize(
    ("kind", "field", "item", "most"),
    [
        ("revoke", "cuts", [bytes(32), bytes(8), 1, bytes(32)], limits.CUTS_MAX),
        ("revoke", "keep", HASH, limits.CUTS_MAX),
        ("revoke", "keeps", HASH, limits.KEEPS_MAX),
        ("revoke", "replaces", HASH, limits.STATEMENT_AFTER_MAX),
        ("rotate", "keeps", HASH, limits.KEEPS_MAX),
        ("decertify", "cuts", [bytes(32), bytes(8), 1, bytes(32)], limits.CUTS_MAX),
        ("drop", "entries", HASH, limits.CUTS_MAX),
        ("lift", "facts", [HASH, "mark.x"], limits.FACTS_PER_LIFT_MAX),
        ("lift", "tombstones", HASH, limits.FACTS_PER_LIFT_MAX),
        ("approve", "items", [bytes(16), [HASH]], limits.APPROVALS_MAX),
        ("reject", "items", [bytes(16), []], limits.APPROVALS_MAX),
        ("grant", "sealed", [PHONE.public, b""], 16),
    ],
)
def test_a_list_in_a_statement_has_so_many_rows_at_most(
    kind: str, field: str, item: object, most: int
) -> None:
    """Each list its own bound."""
    body = {**_BODIES[kind], field: [item] * most}
    assert len(stated(kind, body).body[field]) == most
    refused(kind, {**body, field: [item] * (most + 1)})


_SUBJECT = {"subject_kind": "device", "subject": PHONE.public, "rights": ["read"]}
_BODIES: dict[str, dict[str, Any]] = {
    "revoke": _SUBJECT | {"cuts": [], "keep": [], "keeps": [], "replaces": [], "key": b""},
    "grant": _SUBJECT | {"recovery": b"", "sealed": [], "until_ms": 0},
    "rotate": {
        "owner": OWNER.public, "new": OWNER.public, "recovery": HASH, "keeps": [],
        "proof": bytes(64),
    },
    "decertify": {"owner": OWNER.public, "device": LAPTOP.public, "cuts": []},
    "drop": {"entries": []},
    "lift": {"record": bytes(16), "facts": [], "tombstones": []},
    "approve": {"items": []},
    "reject": {"items": []},
}  # fmt: skip


@bounds("NAME_BYTES_MAX")
def test_texts_in_statements_have_their_bounds() -> None:
    """Names, keys of facts, and settings, in bytes of UTF-8."""
    found = {"owner": OWNER.public, "nonce": bytes(NONCE_BYTES), "recovery": b"", "key": HASH}
    n = limits.NAME_BYTES_MAX
    for name in ("n" * n, "\u00e9" * (n // 2)):
        assert stated("found", found | {"name": name}).body["name"] == name
        refused("found", found | {"name": name + "x"})
    fact = "k" * limits.OP_KEY_BYTES_MAX
    stated("lift", _BODIES["lift"] | {"facts": [[HASH, fact]]})
    refused("lift", _BODIES["lift"] | {"facts": [[HASH, fact + "x"]]})
    settings = {f"{n:064}": "v" * 64 for n in range(POLICY_KEYS_MAX)}
    stated("policy", {"settings": settings})
    refused("policy", {"settings": settings | {"more": ""}})
    refused("policy", {"settings": {"k" * 65: ""}})
    refused("policy", {"settings": {"k": "v" * 65}})
    box = [[PHONE.public, bytes(SEALED_BYTES_MAX)]]
    stated("grant", _BODIES["grant"] | {"sealed": box})
    refused("grant", _BODIES["grant"] | {"sealed": [[PHONE.public, bytes(SEALED_BYTES_MAX + 1)]]})


# -- key files, vault, recovery codes --------------------------------------------------------------


@bounds("KEY_FILE_BYTES_MAX")
def test_a_key_file_has_so_many_bytes_at_most(tmp_path: Path) -> None:
    """Its size is looked at before it is read."""
    folder = tmp_path / "keys"
    secure_directory(folder)
    for size in (limits.KEY_FILE_BYTES_MAX, limits.KEY_FILE_BYTES_MAX + 1):
        create_secret(folder / str(size), bytes(size))
    n = limits.KEY_FILE_BYTES_MAX
    assert len(read_secret(folder / str(n), n)) == n
    with pytest.raises(KeyFileError):
        read_secret(folder / str(n + 1), n)


@bounds("VAULT_MEMORY_BYTES_MIN", "VAULT_MEMORY_BYTES_MAX", "VAULT_OPS_MAX")
def test_a_vault_costs_within_bounds() -> None:
    """What a vault says it costs is compared before any memory is taken."""
    Cost(1, limits.VAULT_MEMORY_BYTES_MIN)
    Cost(limits.VAULT_OPS_MAX, limits.VAULT_MEMORY_BYTES_MAX)
    for ops, memory in (
        (0, limits.VAULT_MEMORY_BYTES_MIN),
        (limits.VAULT_OPS_MAX + 1, limits.VAULT_MEMORY_BYTES_MIN),
        (1, limits.VAULT_MEMORY_BYTES_MIN - 1),
        (1, limits.VAULT_MEMORY_BYTES_MAX + 1),
    ):
        with pytest.raises(UsageError):
            Cost(ops, memory)


@bounds("PASSPHRASE_CHARS_MIN")
def test_a_passphrase_has_so_many_characters_at_least() -> None:
    """Characters as they are composed, not bytes."""
    cheap = Cost(1, limits.VAULT_MEMORY_BYTES_MIN)
    key = OwnerKey(bytes(32))
    assert seal_owner(key, "\u00e9" * limits.PASSPHRASE_CHARS_MIN, cost=cheap)
    with pytest.raises(UsageError):
        seal_owner(key, "e\u0301" * (limits.PASSPHRASE_CHARS_MIN - 1), cost=cheap)


@bounds("RECOVERY_BYTES", "RECOVERY_TEXT_CHARS_MAX")
def test_a_recovery_code_is_of_16_bytes_and_typed_in_256_characters() -> None:
    """However many separators somebody puts in."""
    secret = bytes(range(limits.RECOVERY_BYTES))
    code = format_code(secret)
    padded = code + " " * (limits.RECOVERY_TEXT_CHARS_MAX - len(code))
    assert parse_code(padded) == secret
    assert len(parse_code(new_code())) == limits.RECOVERY_BYTES
    with pytest.raises(UsageError):
        parse_code(padded + " ")
    with pytest.raises(AssertionError):
        format_code(secret + b"\0")


# -- between peers, where no other test does -------------------------------------------------------


@bounds("ERROR_CODE_BYTES_MAX")
def test_a_code_of_an_error_has_so_many_bytes_at_most() -> None:
    """It goes into the journal."""
    code = "a" * limits.ERROR_CODE_BYTES_MAX
    assert parse(pack(Failure(code))[4:]) == Failure(code)
    with pytest.raises(BadEncoding):
        parse(codec.encode(["error", code + "a"]))


@bounds("WATCH_OUTBOX_MAX")
def test_a_slow_watcher_costs_so_many_frames_at_most() -> None:
    """The next one marks it to be cut off, and is not kept."""
    box = Outbox()
    for n in range(limits.WATCH_OUTBOX_MAX):
        box.put(StatementsChanged(AgentId(n.to_bytes(32, "big")), bytes(32)))
    before = box.overrun
    box.put(StatementsChanged(AgentId(b"\xff" * 32), bytes(32)))
    assert (before, box.overrun, len(box)) == (False, True, limits.WATCH_OUTBOX_MAX)


@bounds("RESOLVES_MAX", "RESOLVE_S")
async def test_so_many_adverts_are_asked_after_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next ones wait their turn, and each is asked for so long."""
    asked: list[int] = []

    class Info:
        def __init__(self, *_: object) -> None:
            pass

        async def async_request(self, _: object, timeout_ms: int) -> bool:
            asked.append(timeout_ms)
            return False

    monkeypatch.setattr(sync.discovery, "AsyncServiceInfo", Info)
    discovery = Discovery.__new__(Discovery)
    discovery._pending = {f"name {n}": None for n in range(limits.RESOLVES_MAX + 1)}
    discovery._zeroconf = SimpleNamespace(zeroconf=None)  # type: ignore[assignment]
    await discovery._ask_pending()
    assert asked == [limits.RESOLVE_S * 1_000] * limits.RESOLVES_MAX
    assert len(discovery._pending) == 1
