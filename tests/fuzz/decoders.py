"""Every decoder of bytes from outside, with valid inputs to start from and the errors it may raise.

What drives a store or a running node is in ``fuzz/stores.py`` and ``fuzz/nodes.py``.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from crdt.chain import RawEntry, verify_run, verify_single
from crdt.entry import decode_header
from crdt.payload import decode_open, decode_ops, decode_tombstone, engine_of
from crdt.vector import vector_of
from keys import codec, pair_messages, recovery, statements, vault
from keys.address import Address
from keys.errors import BadEncoding, BadInput, KeyFileError, PairingError, UsageError
from keys.ids import DeviceId, Incarnation, RecordId
from keys.keyfile import load_device_key
from keys.limits import SIGNATURE_BYTES
from keys.pair_code import new_code, parse_code
from keys.pair_uri import pair_uri, parse_pair_uri
from keys.signing import DeviceKey
from keys.tls import certificate_of, key_of_certificate
from node.gifts import decode_owners, encode_owners, joiner_gift, opener_gift
from node.home import make_home
from node.importers.jsonl import read_objects
from node.importers.locomo import read_locomo, session_moment
from node.importers.roost_jsonl import read_export
from node.jsontext import parse_json
from node.lock import holder
from node.marker import Marker
from sync import frames, messages
from sync.advert import read_advert, txt_of
from sync.announce import Watcher
from sync.recovery import RecoverReply, RecoverRequest
from tests.fuzz import samples
from tests.fuzz.judge import Decoder
from tests.fuzz.mutate import packed, spelled, written

MESSAGE_FREE: Final = 16 * 1024 * 1024  # 65,536 values of the dearest kind, twice
SMALL_FREE: Final = 2 * 1024 * 1024  # SMALL_BYTES of the dearest values, and their encoding
BYTES_MAX: Final = 8 * 1024 * 1024


def all_decoders(folder: Path) -> list[Decoder]:
    """All of them; those that read files write them in ``folder``."""
    return [
        *_values(),
        *_entries(),
        *_messages(),
        *_pairing(),
        *_texts(),
        *_files(folder),
        *_imports(folder),
    ]


def _values() -> Iterator[Decoder]:
    seeds = samples.everything()
    for name, read in (
        ("codec.decode", lambda data: codec.decode(data, BYTES_MAX)),
        ("codec.decode_small", codec.decode_small),
        ("codec.decode_first", codec.decode_first),
    ):
        yield Decoder(name, packed(seeds), read, (BadEncoding,), MESSAGE_FREE)


def _entries() -> Iterator[Decoder]:
    for name, read, seeds in (
        ("header", decode_header, samples.headers()),
        ("operations", decode_ops, samples.payloads("ops")),
        ("engine of operations", engine_of, samples.payloads("ops")),
        ("opening", decode_open, samples.payloads("open")),
        ("tombstone", decode_tombstone, samples.payloads("tombstone")),
        ("vector", _vector, samples.vectors()),
    ):
        yield Decoder(name, packed(seeds), read, (BadEncoding,), MESSAGE_FREE)
    for name, read, seeds in (
        ("statement", _statement, samples.signed_statements()),
        ("statement of our own", _stored_statement, samples.statements()),
        ("run", _run, samples.runs()),
        ("single entry", _single, samples.singles()),
    ):
        yield Decoder(name, packed(seeds), read, (BadInput,), MESSAGE_FREE)


def _vector(data: bytes) -> object:
    return vector_of(codec.decode(data, BYTES_MAX))


def _statement(data: bytes) -> object:
    value = codec.decode(data, BYTES_MAX)
    if not isinstance(value, list) or [type(v) for v in value] != [bytes, bytes]:
        raise BadEncoding("not a statement and its signature")
    return statements.parse(*value)


def _stored_statement(data: bytes) -> object:
    return statements.parse_stored(data, bytes(SIGNATURE_BYTES))


def _rows(data: bytes) -> list[RawEntry]:
    """Entries as a frame would bring them; the frame's own checks are those of ``frame``."""
    frame = frames.parse(b"\x92\xa3run" + data)
    assert isinstance(frame, frames.Run)
    return [entry.raw for entry in frame.entries]


def _run(data: bytes) -> object:
    return verify_run(samples.AGENT, _rows(data))


def _single(data: bytes) -> object:
    return verify_single(samples.AGENT, _rows(data)[0])


def _messages() -> Iterator[Decoder]:
    for name, read, seeds in (
        ("frame", frames.parse, samples.frames()),
        ("hello", messages.Hello.decode, samples.hellos()),
        ("statements request", messages.StatementsRequest.decode, samples.statements_requests()),
        ("statements reply", messages.StatementsReply.decode, samples.statements_replies()),
        ("pull request", messages.PullRequest.decode, samples.pull_requests()),
        ("payloads request", messages.PayloadsRequest.decode, samples.payloads_requests()),
        ("recover request", RecoverRequest.decode, samples.recover_requests()),
        ("recover reply", RecoverReply.decode, samples.recover_replies()),
        ("refusal", messages.code_of_refusal, [r.body for r in messages.REFUSALS]),
    ):
        yield Decoder(name, packed(seeds), read, (BadEncoding,), MESSAGE_FREE)
    yield Decoder(
        "watch", spelled([samples.watched()]), lambda data: Watcher().feed(data), (BadInput,)
    )


def _pairing() -> Iterator[Decoder]:
    refused = (BadInput, PairingError)
    join, answer, confirm, confirmed = samples.pairing()
    free = MESSAGE_FREE
    for name, read, seeds in (
        ("join", lambda data: pair_messages.decode_greeting(data, pair_messages.JOIN), [join]),
        (
            "answer",
            lambda data: pair_messages.decode_greeting(data, pair_messages.ANSWER),
            [answer],
        ),
        ("confirm", lambda data: pair_messages.decode_proof(data, "confirm"), [confirm]),
        ("confirmed", lambda data: pair_messages.decode_proof(data, "confirmed"), [confirmed]),
        ("gift", pair_messages.decode_gift, [pair_messages.encode_gift(bytes(80))]),
        ("owners", decode_owners, [encode_owners([samples.OWNER])]),
        ("joiner's gift", _joiner, samples.joiner_gifts()),
        ("opener's gift", _opener, samples.opener_gifts()),
    ):
        yield Decoder(name, packed(seeds), read, refused, free)
    yield Decoder(
        "certificate",
        spelled([certificate_of(DeviceKey(bytes([n]) * 32)) for n in range(3)]),
        key_of_certificate,
        (BadInput,),
    )


def _joiner(data: bytes) -> object:
    return joiner_gift(_gift(data))


def _opener(data: bytes) -> object:
    return opener_gift(_gift(data))


def _gift(data: bytes) -> list[Any]:
    value = codec.decode(data, BYTES_MAX)
    if not isinstance(value, list):
        raise BadEncoding("not a list")
    return value


def _texts() -> Iterator[Decoder]:
    device, record = DeviceId(bytes(range(32))), RecordId(bytes(16))
    link = pair_uri(
        device, [Address("10.0.0.1", 7667), Address("fe80::1%eth0", 1)], new_code(device)
    )
    spoken: tuple[tuple[str, Callable[[str], object], Sequence[str], bytes], ...] = (
        ("address", Address.parse, ["10.0.0.1:7667", "[fe80::1%eth0]:1", "a-b.local:80"],
         b":.[]%-0a_ "),
        ("pairing link", parse_pair_uri, [link], b"&=?%:[]0a"),
        ("pairing code", parse_code, ["123456", "123 456", "12-34-56"], b"0 -\xd9\xa1"),
        ("device id", DeviceId.parse, [str(device), str(device).upper()], b"-0Oil "),
        ("record id", RecordId.parse, [str(record)], b"-0Oil "),
        ("recovery code", recovery.parse_code, [recovery.format_code(bytes(range(16)))], b"-0Oi "),
        ("LoCoMo time", session_moment, ["1:56 pm on 8 May, 2023"], b"0:,\xd9\xa1 "),
    )  # fmt: skip
    for name, read, seeds, alphabet in spoken:
        yield Decoder(
            name,
            spelled([s.encode() for s in seeds], alphabet),
            partial(_spoken, read),
            (UsageError, PairingError, BadInput),
        )
    yield Decoder("path of an agent", spelled([str(samples.AGENT).encode()], b"/-%"),
                  lambda data: messages.agent_of_path(data.decode("latin-1")), ())  # fmt: skip
    txt = txt_of(bytes(8), device, 7668)
    yield Decoder(
        "advert",
        spelled(["\n".join(f"{k}={v}" for k, v in txt.items()).encode()], b"\n=vsip0\xff"),
        _advert,
        (),
    )


def _spoken(read: Callable[[str], object], data: bytes) -> object:
    return read(data.decode("utf-8", "surrogateescape"))


def _advert(data: bytes) -> object:
    fields = [line.partition(b"=") for line in data.split(b"\n")]
    txt = {key: value if equals else None for key, equals, value in fields}
    host = data[:20].decode("latin-1")
    return read_advert("instance", ["10.0.0.1", host], len(data) * 13 % 70_000, txt)


def _files(folder: Path) -> Iterator[Decoder]:
    kept = folder / "keys"
    kept.mkdir(mode=0o700, exist_ok=True)
    path = kept / "device.key"

    def load(data: bytes) -> object:
        path.write_bytes(data)
        path.chmod(0o600)
        return load_device_key(kept)

    home = make_home(folder / "home")
    marker = Marker.create(home)
    marker.opening(samples.AGENT, Incarnation(bytes(8)))
    marker.note(samples.AGENT, Incarnation(bytes(8)), 7)
    marker_path = home.marker_path
    said = json.loads(marker_path.read_bytes())

    def load_marker(data: bytes) -> object:
        marker_path.write_bytes(data)
        return Marker.load(home).place_doubt

    def read_holder(data: bytes) -> object:
        home.lock_path.write_bytes(data)
        return holder(home)

    yield Decoder("marker", written([said]), load_marker, (), MESSAGE_FREE)
    yield Decoder("lock", written([{"pid": 1, "role": "node"}]), read_holder, (), MESSAGE_FREE)
    key = samples.device_key_file()
    yield Decoder("device key file", spelled([key]), load, (KeyFileError,))
    yield Decoder("owner vault", packed([samples.owner_vault()]), vault.public_of, (KeyFileError,),
                  MESSAGE_FREE)  # fmt: skip


def _imports(folder: Path) -> Iterator[Decoder]:
    free = MESSAGE_FREE
    yield Decoder("JSON text", written(samples.rows()), parse_json, (ValueError,), free)
    yield Decoder("JSON lines", written([samples.export()], lines=True),
                  lambda data: list(read_objects(io.BytesIO(data))), (), free)  # fmt: skip
    yield Decoder("export of Roost", written([samples.export()], lines=True), _export,
                  (UsageError,), free)  # fmt: skip
    path = Path(tempfile.mkdtemp(dir=folder)) / "locomo.json"

    def locomo(data: bytes) -> object:
        path.write_bytes(data)
        return list(read_locomo(path, "conv-1" if len(data) % 2 else None))

    yield Decoder("LoCoMo", written([samples.locomo()]), locomo, (UsageError,), free)


def _export(data: bytes) -> object:
    manifest, rows = read_export(io.BytesIO(data))
    return manifest, list(rows)
