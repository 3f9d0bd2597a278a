"""Vectors of payloads: operations, openings, tombstones."""

from __future__ import annotations

from typing import Any

from crdt.payload import (
    TOMBSTONE_REASONS,
    Op,
    Type,
    Verb,
    delete,
    encode_open,
    encode_ops,
    encode_tombstone,
    put,
)
from keys import codec
from keys.ids import RecordId
from keys.limits import OP_KEY_BYTES_MAX, OPS_MAX, OPS_PADDING_BYTES
from tests.support.author import seeded
from tests.vectors.cast import HEADS, MANY_HASHES, VALUES, observation, salt
from tests.vectors.forms import hexed, shown
from tests.vectors.values import Suite, suite

CHANGE = seeded("vectors, a change hash")


def payloads_suite() -> Suite:
    """Payloads of the three kinds."""
    cases = [*_good_ops(), *_good_opens(), *_good_tombstones()]
    for kind, found in (("ops", bad_ops()), ("open", bad_opens()), ("tombstone", bad_tombstones())):
        cases += [
            {"kind": kind, "bytes": hexed(data), "error": "BadEncoding", "why": why}
            for why, data in found
        ]
    return suite("payloads", "payloads and what is in them", cases)


def all_types() -> list[Op]:
    """Operations of every verb and type."""
    return [
        put("body.bytes", b"\x00\xff"),
        put("body.empty", b""),
        put("body.text", "caf\u00e9 \U0001f41d a\0b"),
        put("field.f64", -0.0),
        put("field.no", False),
        put("field.null", None),
        Op("field.uint", Verb.PUT, Type.UINT, 2**64 - 1),
        put("field.least", -(2**63)),
        put("field.yes", True),
        put("kind", "observation"),
        put(f"mark.{'0' * 16}", "deprecated because"),
        put(f"next.{'0' * 32}", ""),
        delete("tag.gone"),
        put("tag.\u00e9", seeded("vectors, tag", 8)),
    ]


def _good_ops() -> list[Suite]:
    long_key = "field." + "k" * (OP_KEY_BYTES_MAX - 6)
    some: tuple[tuple[str, list[Op]], ...] = (
        ("an observation", observation("the key is under the mat")),
        ("every verb and type", all_types()),
        ("one delete", [delete("tag.gone")]),
        ("the longest key", [put(long_key, None)]),
        ("as many as there may be", [put(f"field.{n:03}", n) for n in range(OPS_MAX)]),
        ("exactly 64 bytes", [put("field.a", "x" * 50)]),
        ("one byte more", [put("field.a", "x" * 51)]),
    )
    out = []
    for name, ops in some:
        data = encode_ops(salt(name), ops, CHANGE)
        rows = [[o.key, int(o.verb), int(o.type), o.value] for o in ops]
        out.append({"kind": "ops", "name": name, "bytes": hexed(data)})
        out[-1] |= {"salt": salt(name).hex(), "change": CHANGE.hex()}
        out[-1] |= {"ops": shown(sorted(rows, key=lambda row: row[0].encode()))}
    return out


def _good_opens() -> list[Suite]:
    out = []
    for heads in (HEADS, HEADS[:1], MANY_HASHES[:16]):
        out.append({"kind": "open", "bytes": encode_open(heads).hex(), "protocol": 1, "engine": 1})
        out[-1]["heads"] = [h.hex() for h in sorted(heads)]
    later = codec.pack([2, 3, HEADS])
    out.append({"kind": "open", "bytes": later.hex(), "protocol": 2, "engine": 3})
    out[-1]["heads"] = [h.hex() for h in HEADS]
    return out


def _good_tombstones() -> list[Suite]:
    prints = [VALUES.fingerprint(text) for text in ("one", "two")]
    record = RecordId(seeded("vectors, record", 16))
    out = []
    for reason in TOMBSTONE_REASONS:
        some = prints if reason == "person" else []
        data = encode_tombstone(record, reason, some)
        out.append({"kind": "tombstone", "bytes": data.hex(), "record": record.hex()})
        out[-1]["reason"] = reason
        out[-1]["prints"] = shown([[p.norm, p.key, p.mac] for p in sorted(some)])
    return out


def _padded(rows: Any) -> bytes:
    packed = codec.pack(rows)
    return packed + bytes(-len(packed) % OPS_PADDING_BYTES)


def _ops(rows: Any, padded: Any = None) -> bytes:
    return codec.pack([1, salt("bad"), _padded(rows) if padded is None else padded, CHANGE])


def bad_ops() -> list[tuple[str, bytes]]:
    """Ops payloads that are none."""
    good = ["field.a", 0, 5, "x"]
    rows: list[tuple[str, Any]] = [
        ("unsorted", [["field.b", 0, 5, "x"], good]),
        ("duplicate", [good, good]),
        ("missing field", [good[:3]]),
        ("extra field", [[*good, 0]]),
        ("no list", ["field.a"]),
        ("no list", None),
        ("no operation", []),
        ("too many", [[f"field.{n:03}", 0, 2, n] for n in range(OPS_MAX + 1)]),
        ("verb", [["field.a", 2, 0, None]]),
        ("verb", [["field.a", False, 5, "x"]]),
        ("type", [["field.a", 0, 7, None]]),
        ("type", [["field.a", 0, -1, None]]),
        ("type", [["field.a", 0, True, True]]),
        ("delete with value", [["field.a", 1, 5, "x"]]),
        ("delete with value", [["field.a", 1, 0, "x"]]),
        ("delete with type", [["field.a", 1, 5, None]]),
        *(
            ("type mismatch", [["field.a", 0, kind, value]])
            for kind, value in (
                (0, False), (1, 1), (1, None), (2, True), (2, 1.0), (2, "1"), (3, -1), (3, 1.0),
                (4, 1), (4, "1"), (5, b"x"), (5, None), (6, "x"), (6, [1]), (5, {"a": "b"}),
            )
        ),
        ("type mismatch", [["field.a", 0, 2, 2**63]]),
        ("NaN", [["field.a", 0, 4, float("nan")]]),
        ("infinity", [["field.a", 0, 4, float("-inf")]]),
        *(
            ("key prefix", [[key, 0, 5, "x"]])
            for key in ("", "text", "body", "body.", "Kind", "kind.x", "fields.a", ".a", "\u00e9.a")
        ),
        *(
            ("control character", [[f"tag.{char}", 0, 6, b"x"]])
            for char in ("\0", "a\0b", "\n", "a\x1f", "\x7f")
        ),
        ("control character", [["kind\n", 0, 5, "x"]]),
        ("key too long", [["tag." + "k" * 253, 0, 6, b"x"]]),
        ("key too long", [["tag." + "\u0301" * 127, 0, 6, b"x"]]),
        ("bin for str", [[b"field.a", 0, 5, "x"]]),
    ]  # fmt: skip
    packed, padded = codec.pack([good]), _padded([good])
    long = b"\xdc\x00\x01" + packed[1:]
    whole = _ops([good])
    return [
        *((why, _ops(value)) for why, value in rows),
        ("padding", _ops(None, padded + bytes(OPS_PADDING_BYTES))),
        ("padding", _ops(None, padded[:-1])),
        ("padding", _ops(None, packed)),
        ("padding", _ops(None, padded[:-1] + b"\x01")),
        ("padding", _ops(None, b"")),
        ("padding", _ops(None, bytes(OPS_PADDING_BYTES))),
        ("list for bin", codec.pack([1, salt("bad"), [good], CHANGE])),
        ("long list", _ops(None, long + bytes(-len(long) % OPS_PADDING_BYTES))),
        ("wrong length", codec.pack([1, salt("bad")[:-1], padded, CHANGE])),
        ("wrong length", codec.pack([1, salt("bad"), padded, CHANGE[:-1]])),
        ("missing field", codec.pack([1, salt("bad"), padded])),
        ("extra field", codec.pack([1, salt("bad"), padded, CHANGE, 0])),
        ("engine", codec.pack([0, salt("bad"), padded, CHANGE])),
        ("engine", codec.pack([True, salt("bad"), padded, CHANGE])),
        ("later engine", codec.pack([2, salt("bad"), padded, CHANGE])),
        ("later engine", codec.pack([2, "what a later version", {"has": 1}])),
        ("trailing byte", whole + b"\0"),
        ("ends too early", whole[:-1]),
        ("long integer", b"\x94\xcc\x01" + whole[2:]),
        ("nothing", b""),
    ]


def bad_opens() -> list[tuple[str, bytes]]:
    """Openings that are none."""
    values: list[tuple[str, Any]] = [
        ("no heads", [1, 1, []]),
        ("17 heads", [1, 1, MANY_HASHES[:17]]),
        ("unsorted", [1, 1, HEADS[::-1]]),
        ("duplicate", [1, 1, [HEADS[0], HEADS[0]]]),
        ("wrong length", [1, 1, [HEADS[0][:-1]]]),
        ("str for bin", [1, 1, ["h" * 32]]),
        ("version", [0, 1, HEADS]),
        ("version", [1, 65536, HEADS]),
        ("version", [True, 1, HEADS]),
        ("missing field", [1, 1]),
        ("extra field", [1, 1, HEADS, 0]),
        ("no list", {"protocol": 1}),
    ]
    good = encode_open(HEADS)
    return [
        *((why, codec.pack(value)) for why, value in values),
        ("trailing byte", good + b"\0"),
        ("long integer", b"\x93\xcc\x01" + good[2:]),
        ("too long", codec.pack([1, 1, HEADS, "x" * 1024])),
    ]


def bad_tombstones() -> list[tuple[str, bytes]]:
    """Tombstones that are none."""
    record = seeded("vectors, record", 16)
    found = sorted(map(VALUES.fingerprint, ("one", "two")))
    prints: list[list[object]] = [[p.norm, p.key, p.mac] for p in found]
    norm, key, mac = found[0].norm, found[0].key, found[0].mac
    many = [[1, bytes(8), n.to_bytes(16, "big")] for n in range(65)]
    values: list[tuple[str, Any]] = [
        ("wrong length", [record[:-1], 0, []]),
        ("wrong length", [record, 0, [[norm, key[:-1], mac]]]),
        ("wrong length", [record, 0, [[norm, key, mac[:-1]]]]),
        ("str for bin", ["r" * 16, 0, []]),
        ("reason", [record, len(TOMBSTONE_REASONS), []]),
        ("reason", [record, -1, []]),
        ("reason", [record, False, []]),
        ("reason", [record, "because", []]),
        ("unsorted", [record, 0, prints[::-1]]),
        ("duplicate", [record, 0, [prints[0], prints[0]]]),
        ("65 fingerprints", [record, 0, many]),
        ("normalisation", [record, 0, [[0, key, mac]]]),
        ("normalisation", [record, 0, [[65536, key, mac]]]),
        ("missing field", [record, 0]),
        ("missing field", [record, 0, [[norm, key]]]),
        ("extra field", [record, 0, [], 0]),
        ("no list", {"record": record}),
    ]
    good = encode_tombstone(RecordId(record), "person", found[:1])
    return [
        *((why, codec.pack(value)) for why, value in values),
        ("trailing byte", good + b"\0"),
        ("long bytes", b"\x93\xc5\x00\x10" + good[3:]),
        ("too long", codec.pack([record, 0, [], "x" * 8192])),
    ]
