"""Vectors of headers."""

from __future__ import annotations

from typing import Any

from crdt.entry import Via, make_header
from keys import codec
from keys.ids import EntryHash, RecordId
from keys.limits import DEPS_MAX, ENTRY_BYTES_MAX
from tests.support.author import WALL_MS, seeded
from tests.vectors.cast import AGENT, LOG, MANY_HASHES, Writer
from tests.vectors.forms import hexed, shown
from tests.vectors.values import Suite, suite

FIELDS = (
    "version", "agent", "device", "incarnation", "seq", "prev", "record", "payload_kind",
    "payload_hash", "payload_len", "deps", "wall_ms", "via", "commit_left",
)  # fmt: skip


def headers_suite() -> Suite:
    """Headers and their hashes."""
    hashes = [EntryHash(h) for h in MANY_HASHES[:DEPS_MAX]]
    cases: list[Suite] = []
    for name, seq, deps, wall, via, left in (
        ("second entry", 2, [], WALL_MS, Via.AGENT, 0),
        ("two deps", 3, hashes[:2], WALL_MS, Via.PERSON, 1),
        ("largest of everything", 2**40, hashes, 2**48 - 1, Via.LOCAL, 511),
        ("smallest of everything", 1, [], 0, Via.PERSON, 0),
        ("the year 9999", 2, [], 253_402_300_799_999, Via.IMPORTER, 0),
    ):
        header = make_header(
            AGENT,
            LOG,
            seq,
            EntryHash(seeded("vectors, prev")),
            record=RecordId(seeded("vectors, record", 16)),
            payload_kind=1,
            payload=b"payload",
            deps=deps,
            wall_ms=wall,
            via=via,
            commit_left=left,
        )
        value = dict(zip(FIELDS, codec.decode(header.data, 4096), strict=True))
        cases.append({"name": name, "bytes": header.data.hex(), "hash": header.hash.hex()})
        cases[-1]["fields"] = {key: shown(field) for key, field in value.items()}
    cases += [
        {"bytes": hexed(data), "error": "BadEncoding", "why": why} for why, data in bad_headers()
    ]
    return suite("headers", "headers, their fields and hashes", cases)


def bad_headers(base: bytes | None = None) -> list[tuple[str, bytes]]:
    """Headers that are none, each with what is wrong; ``base`` is the good one they are made of."""
    if base is None:
        writer = Writer()
        writer.open()
        base = writer.create("a good one").header
    good = codec.decode(base, 4096)

    def with_field(name: str, value: Any) -> bytes:
        at = FIELDS.index(name)
        return codec.pack([*good[:at], value, *good[at + 1 :]])

    wrong: list[tuple[str, str, Any]] = [
        ("version", "version", 2),
        ("version", "version", True),
        ("version", "version", 1.0),
        *(
            ("wrong length", name, good[FIELDS.index(name)][:-1])
            for name in ("agent", "device", "incarnation", "prev", "record", "payload_hash")
        ),
        ("wrong length", "agent", good[1] + b"\0"),
        ("str for bin", "device", "d" * 32),
        ("str for bin", "record", "r" * 16),
        ("seq", "seq", 0),
        ("seq", "seq", -1),
        ("seq", "seq", 2**40 + 1),
        ("seq", "seq", 2**63),
        ("seq", "seq", 2**64 - 1),
        ("seq", "seq", 2.0),
        ("seq", "seq", True),
        ("payload kind", "payload_kind", -1),
        ("payload kind", "payload_kind", 256),
        ("payload length", "payload_len", 0),
        ("payload length", "payload_len", ENTRY_BYTES_MAX - len(base) + 1),
        ("payload length", "payload_len", 2**63),
        ("deps unsorted", "deps", MANY_HASHES[1::-1]),
        ("deps duplicate", "deps", [MANY_HASHES[0], MANY_HASHES[0]]),
        ("65 deps", "deps", MANY_HASHES),
        ("wrong length", "deps", [bytes(31)]),
        ("str for bin", "deps", ["d" * 32]),
        ("deps no list", "deps", None),
        ("stamp of the year 1900", "wall_ms", -2_208_988_800_000),
        ("stamp", "wall_ms", 2**48),
        ("stamp", "wall_ms", 2**62),
        ("stamp", "wall_ms", float("nan")),
        ("stamp", "wall_ms", 1.5),
        ("via", "via", 0),
        ("via", "via", 7),
        ("commit countdown", "commit_left", -1),
        ("commit countdown", "commit_left", 512),
    ]
    out = [(why, with_field(name, value)) for why, name, value in wrong]
    out += [
        ("missing field", codec.pack(good[:-1])),
        ("extra field", codec.pack([*good, 0])),
        ("no list", codec.pack({"version": 1})),
        ("no list", codec.pack(None)),
        ("trailing byte", base + b"\0"),
        ("ends too early", base[:-1]),
        ("long integer", base[:-1] + b"\xcc" + base[-1:]),
        ("long list", b"\xdc\x00\x0e" + base[1:]),
        ("long bytes", b"\x9e\x01\xc5\x00\x20" + base[4:]),
        ("extension", with_field("wall_ms", None).replace(b"\xc0", b"\xd4\x01\x00")),
        ("too long", with_field("via", "v" * 4096)),
        ("seq 2^64", base.replace(codec.pack(good[4:6]), b"\x92\xcf" + bytes(9))),
    ]
    return [(why, data) for why, data in out if data != base]
