"""The published vectors, through every function that takes such values or bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgpack
import pytest

from crdt.chain import RawEntry, verify_run, verify_single
from crdt.document import RecordDocument
from crdt.entry import (
    LogId,
    actor_id,
    author_bound_id,
    decode_header,
    derived_id,
    is_author_bound,
    make_header,
    tombstone_id,
)
from crdt.fingerprint import FingerprintKey, fingerprints, normalise
from crdt.payload import (
    Fingerprint,
    Op,
    Type,
    Verb,
    decode_open,
    decode_ops,
    decode_tombstone,
    encode_open,
    encode_ops,
    encode_tombstone,
    engine_of,
)
from crdt.vector import rows_of, statements_digest, vector_digest, vector_of
from keys import codec, statements
from keys.errors import BadEncoding, BadInput
from keys.ids import (
    AgentId,
    DeviceId,
    EntryHash,
    Id,
    Incarnation,
    OwnerId,
    RecordId,
    StatementId,
)
from keys.recovery import format_code, parse_code, recovery_hash, recovery_key
from keys.signing import SigningKey, verify
from tests.support.vectors import FOLDER, invalid, load, refused, valid
from tests.vectors import make
from tests.vectors.forms import from_utf32, hexed, read, shown, unhexed

Case = dict[str, Any]
BYTES_MAX = 8 * 1024 * 1024
AGENT = AgentId(bytes.fromhex(load("runs")["agent"]))
KINDS: dict[str, type[Id]] = {
    kind.kind: kind
    for kind in (DeviceId, OwnerId, AgentId, StatementId, EntryHash, Incarnation, RecordId)
}
DECODERS: dict[str, Callable[[bytes], object]] = {
    "codec.decode": lambda data: codec.decode(data, BYTES_MAX),
    "decode_header": decode_header,
    "decode_ops": decode_ops,
    "decode_open": decode_open,
    "decode_tombstone": decode_tombstone,
    "engine_of": engine_of,
    "statements.parse": lambda data: statements.parse(data, bytes(64)),
    "statements.parse_stored": lambda data: statements.parse_stored(data, bytes(64)),
    "verify_run": lambda data: verify_run(AGENT, [RawEntry(data, b"", bytes(64))]),
    "verify_single": lambda data: verify_single(AGENT, RawEntry(data, b"", bytes(64))),
}


def log_of(case: Case) -> LogId:
    """The log that a case names."""
    device, incarnation = (bytes.fromhex(case[name]) for name in ("device", "incarnation"))
    return LogId(DeviceId(device), Incarnation(incarnation))


def ops_of(rows: Any) -> list[Op]:
    """Operations as they stand in a case."""
    return [Op(k, Verb(verb), Type(kind), value) for k, verb, kind, value in read(rows)]


def test_the_committed_files_are_what_the_generator_writes() -> None:
    """Nobody changes a vector, or a format, without the other."""
    written = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert written == make.files()


@pytest.mark.parametrize("case", valid("codec"))
def test_a_value_has_one_encoding(case: Case) -> None:
    """Both ways, and as MessagePack's own library reads it."""
    data, value = unhexed(case["bytes"]), read(case["value"])
    assert codec.encode(value) == data
    assert shown(codec.decode(data, BYTES_MAX)) == case["value"]
    assert shown(msgpack.unpackb(data)) == case["value"]
    assert hexed(data) == case["bytes"]


@pytest.mark.parametrize("case", invalid("codec"))
def test_X_42_bytes_that_are_nobodys_encoding_are_refused_everywhere(case: Case) -> None:
    """Every decoder refuses them, whatever else it would have asked of the value."""
    for decode in DECODERS.values():
        with refused(case):
            decode(unhexed(case["bytes"]))


@pytest.mark.parametrize("case", [p for p in valid("ids") if "text" in p.values[0]])
def test_an_id_has_one_text_form(case: Case) -> None:
    """The form that is written is read back."""
    found = KINDS[case["kind"]](bytes.fromhex(case["bytes"]))
    assert (str(found), found.short()) == (case["text"], case["short"])
    assert KINDS[case["kind"]].parse(case["text"]) == found


@pytest.mark.parametrize("case", [p for p in valid("ids") if "reads" in p.values[0]])
def test_an_id_is_read_in_capitals_and_with_hyphens(case: Case) -> None:
    """As people write it down."""
    assert KINDS[case["kind"]].parse(case["reads"]) == bytes.fromhex(case["bytes"])


@pytest.mark.parametrize("case", invalid("ids"))
def test_a_mistyped_id_is_noticed(case: Case) -> None:
    """So is one of another kind."""
    with refused(case):
        KINDS[case["kind"]].parse(case["reads"])


@pytest.mark.parametrize("case", valid("records"))
def test_a_record_id_is_made_of_its_place_or_its_key(case: Case) -> None:
    """R9, R30: who created it and where, or what every device derives."""
    agent, record = bytes.fromhex(case["agent"]), RecordId(bytes.fromhex(case["record"]))
    match case["form"]:
        case "author-bound":
            fits = case.get("fits", True)
            log, seq = log_of(case), case["seq"]
            assert is_author_bound(record, agent, log, seq) == fits
            assert not is_author_bound(record, agent, log, seq + 1) or not fits
            if fits:
                assert author_bound_id(agent, log, seq, case["wall_ms"]) == record
        case "derived":
            assert derived_id(agent, case["kind"], bytes.fromhex(case["key"])) == record
        case _:
            assert tombstone_id(agent, RecordId(bytes.fromhex(case["of"]))) == record


@pytest.mark.parametrize("case", valid("fingerprints"))
def test_a_text_has_one_normal_form_and_one_mac(case: Case) -> None:
    """R28, on every Python that runs this."""
    key = FingerprintKey(bytes.fromhex(case["key"]))
    text = from_utf32(case["text"])
    expected = Fingerprint(case["norm"], bytes.fromhex(case["key_id"]), bytes.fromhex(case["mac"]))
    assert normalise(text) == from_utf32(case["normal"])
    assert fingerprints([key], text) == [expected]
    assert key.commitment.hex() == case["commitment"]


@pytest.mark.parametrize("case", invalid("fingerprints"))
def test_a_text_that_cannot_be_written_has_no_fingerprint(case: Case) -> None:
    """A lone surrogate is no text."""
    with refused(case):
        normalise(from_utf32(case["text"]))


@pytest.mark.parametrize("case", valid("recovery"))
def test_a_recovery_code_gives_its_key(case: Case) -> None:
    """R20: the code on paper, the key, and the hash that a founding statement holds."""
    secret = bytes.fromhex(case["secret"])
    public = recovery_key(case["code"]).public
    assert (format_code(secret), parse_code(case["code"])) == (case["code"], secret)
    assert (public.hex(), recovery_hash(public).hex()) == (case["public"], case["hash"])


@pytest.mark.parametrize("case", invalid("recovery"))
def test_a_mistyped_recovery_code_is_noticed(case: Case) -> None:
    """Before a key is made of it."""
    with refused(case):
        recovery_key(case["code"])


@pytest.mark.parametrize("case", valid("digests"))
def test_what_two_nodes_hold_has_one_digest(case: Case) -> None:
    """R8: rows, their bytes and their digest; statement ids in any order."""
    if "statements" in case:
        ids = [bytes.fromhex(i) for i in case["statements"]]
        assert statements_digest(ids).hex() == case["digest"]
        return
    vector = vector_of(codec.decode(unhexed(case["bytes"]), BYTES_MAX))
    assert rows_of(vector) == read(case["rows"])
    assert vector_digest(vector).hex() == case["digest"]


@pytest.mark.parametrize("case", invalid("digests"))
def test_a_malformed_vector_is_refused(case: Case) -> None:
    """One log twice, or out of order, would give one state two digests."""
    with refused(case):
        vector_of(codec.decode(unhexed(case["bytes"]), BYTES_MAX))


@pytest.mark.parametrize("case", valid("headers"))
def test_a_header_is_its_fields_and_has_its_hash(case: Case) -> None:
    """Field by field, and made again from what was read."""
    header = decode_header(bytes.fromhex(case["bytes"]))
    fields = {name: read(value) for name, value in case["fields"].items()}
    assert header.hash == blake2b(header.data, digest_size=32).digest()
    assert header.hash.hex() == case["hash"]
    assert fields.pop("version") == 1
    assert {name: getattr(header, name) for name in fields} | {"deps": list(header.deps)} == fields
    assert codec.encode([1, *fields.values()]) == header.data
    if fields["payload_len"] == len(b"payload"):
        again = make_header(
            header.agent,
            header.log,
            header.seq,
            header.prev,
            record=header.record,
            payload_kind=header.payload_kind,
            payload=b"payload",
            deps=list(header.deps),
            wall_ms=header.wall_ms,
            via=header.via,
            commit_left=header.commit_left,
        )
        assert again == header


@pytest.mark.parametrize("case", invalid("headers"))
def test_a_malformed_header_is_refused(case: Case) -> None:
    """Alone, in a run, and ahead of its chain."""
    data = unhexed(case["bytes"])
    with refused(case):
        decode_header(data)
    with refused(case):
        verify_run(AGENT, [RawEntry(data, b"payload", bytes(64))])
    with refused(case):
        verify_single(AGENT, RawEntry(data, b"payload", bytes(64)))


@pytest.mark.parametrize("case", valid("payloads", kind="ops"))
def test_operations_are_written_as_they_are_read(case: Case) -> None:
    """Padded, sorted, each value with its type."""
    data, ops = unhexed(case["bytes"]), ops_of(case["ops"])
    found = decode_ops(data)
    assert (engine_of(data), found.engine, list(found.ops)) == (1, 1, ops)
    assert (found.salt.hex(), found.change_hash.hex()) == (case["salt"], case["change"])
    assert encode_ops(found.salt, list(reversed(ops)), found.change_hash) == data
    assert len(codec.decode(data, BYTES_MAX)[2]) % 64 == 0


@pytest.mark.parametrize("case", valid("payloads", kind="open"))
def test_an_opening_is_written_as_it_is_read(case: Case) -> None:
    """The heads, and the versions of who wrote it."""
    found = decode_open(bytes.fromhex(case["bytes"]))
    assert [h.hex() for h in found.heads] == case["heads"]
    assert (found.protocol, found.engine) == (case["protocol"], case["engine"])
    if case["protocol"] == 1:
        assert encode_open(list(reversed(found.heads))).hex() == case["bytes"]


@pytest.mark.parametrize("case", valid("payloads", kind="tombstone"))
def test_a_tombstone_is_written_as_it_is_read(case: Case) -> None:
    """A record, a code, fingerprints; no words of anybody (R33)."""
    found = decode_tombstone(bytes.fromhex(case["bytes"]))
    assert (found.record.hex(), found.reason) == (case["record"], case["reason"])
    assert shown([[p.norm, p.key, p.mac] for p in found.prints]) == case["prints"]
    again = encode_tombstone(found.record, found.reason, list(reversed(found.prints)))
    assert again.hex() == case["bytes"]


@pytest.mark.parametrize("case", invalid("payloads"))
def test_a_malformed_payload_is_refused(case: Case) -> None:
    """By the decoder of its kind."""
    with refused(case):
        DECODERS[f"decode_{case['kind']}"](unhexed(case["bytes"]))


@pytest.mark.parametrize("case", valid("changes"))
def test_operations_make_the_same_change_everywhere(case: Case) -> None:
    """R1: actor, change hash and what the document reads, from the operations alone."""
    agent, log, document = bytes.fromhex(case["agent"]), log_of(case), RecordDocument()
    made: list[bytes] = []
    for step in case["entries"]:
        actor = actor_id(agent, log, step["seq"], bytes.fromhex(step["salt"]))
        deps = frozenset(made[d] for d in step["deps"])
        change = document.apply(deps, actor, ops_of(step["ops"]))
        assert actor.hex() == step["actor"]
        assert change is not None
        assert change.hex() == step["change"]
        made.append(change)
    assert shown(document.values()) == case["values"]


@pytest.mark.parametrize("case", valid("signatures"))
def test_a_signature_is_over_domain_and_message(case: Case) -> None:
    """The same key gives the same signature."""
    public, message = bytes.fromhex(case["public"]), bytes.fromhex(case["message"])
    domain, key = case["domain"].encode(), SigningKey(bytes.fromhex(case["seed"]))
    assert key.public == public
    assert key.sign(domain, message).hex() == case["signature"]
    verify(public, domain, message, bytes.fromhex(case["signature"]))


@pytest.mark.parametrize("case", invalid("signatures"))
def test_X_39_a_signature_of_another_domain_or_key_does_not_verify(case: Case) -> None:
    """Nor one under a key of small order, under which a signature would verify anything."""
    fields = [bytes.fromhex(case[name]) for name in ("public", "message", "signature")]
    with refused(case):
        verify(fields[0], case["domain"].encode(), fields[1], fields[2])


def test_decoders_raise_bad_input_only() -> None:
    """The bytes of every vector are refused, or taken, by the decoders of all other kinds too."""
    everything = [
        unhexed(case["bytes"] if "bytes" in case else case["data"])
        for suite in ("codec", "headers", "payloads", "statements")
        for case in load(suite)["cases"]
    ]
    for name, decode in DECODERS.items():
        signed = name.startswith(("verify", "statements"))
        for data in everything:
            with contextlib.suppress(BadInput if signed else BadEncoding):
                decode(data)
