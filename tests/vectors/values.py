"""Vectors of values: the codec, ids, record ids, fingerprints, recovery codes, digests."""

from __future__ import annotations

from typing import Any

from crdt.entry import author_bound_id, derived_id, tombstone_id
from crdt.fingerprint import FingerprintKey, normalise
from crdt.log import Tip, Vector
from crdt.vector import rows_of, statements_digest, vector_digest
from keys import codec
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
from keys.recovery import format_code, recovery_hash, recovery_key
from tests.support.author import WALL_MS, seeded
from tests.vectors.cast import AGENT, CERTIFICATES, LAPTOP, LOG, PHONE, VALUES, incarnation
from tests.vectors.forms import hexed, shown, utf32

Suite = dict[str, Any]
IDS: tuple[type[Id], ...] = (
    DeviceId, OwnerId, AgentId, StatementId, EntryHash, Incarnation, RecordId,
)  # fmt: skip

CODEC_VALUES: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("booleans", [False, True]),
    ("integers at every width", [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1]),
    ("negative integers at every width", [-1, -32, -33, -128, -129, -32768, -32769, -(2**63)]),
    ("floats", [0.0, -0.0, 1.5, 1e308, 5e-324]),
    ("texts at every width", ["", "a" * 31, "a" * 32, "a" * 255, "a" * 256, "a" * 65536]),
    ("text outside ASCII, and a NUL", ["\u00e9", "e\u0301", "\u65e5\u672c", "\U0001f41d", "a\0b"]),
    ("bytes at every width", [b"", b"\x00" * 255, b"\x00" * 256, b"\x00" * 65536]),
    ("bytes that are also text", [b"abc", "abc"]),
    ("lists at every width", [[], [0] * 15, [0] * 16]),
    ("keys in the order of their bytes", {"": 0, "B": 1, "a": 2, "aa": 3, "\u00e9": 4}),
    ("eight lists around a value", [[[[[[[[1]]]]]]]]),
)
CODEC_BAD: tuple[tuple[str, str], ...] = (
    ("long integer", "cc05"),
    ("long integer", "cd00ff"),
    ("long integer", "ce0000ffff"),
    ("long integer", "cf00000000ffffffff"),
    ("long integer", "d0ff"),
    ("long integer", "d1ff80"),
    ("long integer", "d2ffff8000"),
    ("long integer", "d3ffffffff80000000"),
    ("long integer", "d07f"),
    ("long text", "d90161"),
    ("long text", "da000161"),
    ("long text", "db0000000161"),
    ("long bytes", "c5000161"),
    ("long bytes", "c60000000161"),
    ("long list", "dc000101"),
    ("long list", "dd0000000101"),
    ("long map", "de0001a16101"),
    ("long map", "df00000001a16101"),
    ("single precision", "ca3fc00000"),
    ("duplicate keys", "82a16101a16102"),
    ("unsorted map", "82a16201a16102"),
    ("unsorted map", "81a16182a16202a16101"),
    ("key that is no text", "81c4016101"),
    ("key that is no text", "810101"),
    ("key that is no text", "81c001"),
    ("NaN", "cb7ff8000000000000"),
    ("NaN", "cbfff8000000000001"),
    ("infinity", "cb7ff0000000000000"),
    ("infinity", "cbfff0000000000000"),
    ("extension", "d40100"),
    ("extension", "d6ff5f5e1000"),
    ("extension", "c7010100"),
    ("extension", "c80001010000"),
    ("type that is not used", "c1"),
    ("trailing byte", "c0c0"),
    ("trailing byte", "9000"),
    ("nothing", ""),
    ("ends too early", "92c0"),
    ("ends too early", "c40261"),
    ("ends too early", "d9ff61"),
    ("ends too early", "cf00000000"),
    ("promises more than there is", "ddffffffff"),
    ("promises more than there is", "dfffffffff"),
    ("promises more than there is", "c6ffffffff"),
    ("promises more than there is", "dbffffffff"),
    ("not UTF-8", "a1ff"),
    ("not UTF-8", "a2c080"),
    ("surrogate", "a3eda080"),
    ("too deep", "91*9 c0"),
    ("too deep", "81a1619191919191919191c0"),
    ("too deep", "91*9 90"),
    ("too many items", "dd00010000 c0*65536"),
)


def suite(name: str, about: str, cases: list[Suite]) -> Suite:
    """A file of vectors."""
    return {"suite": name, "about": about, "cases": cases}


def codec_suite() -> Suite:
    """Canonical MessagePack."""
    good = [
        {"name": name, "bytes": hexed(codec.encode(value)), "value": shown(value)}
        for name, value in CODEC_VALUES
    ]
    bad = [{"bytes": data, "error": "BadEncoding", "why": why} for why, data in CODEC_BAD]
    return suite("codec", "values and their one encoding; bytes that are nobody's", [*good, *bad])


def ids_suite() -> Suite:
    """Text forms of ids."""
    cases: list[Suite] = []
    for kind in IDS:
        for data in (seeded("vectors, id", kind.size), bytes(kind.size), b"\xff" * kind.size):
            found = kind(data)
            cases.append({"kind": kind.kind, "bytes": data.hex(), "text": str(found)})
            cases[-1]["short"] = found.short()
        text = str(kind(seeded("vectors, id", kind.size)))
        for typed in (text.upper(), f" {text[:4]}-{text[4:]} "):
            data = seeded("vectors, id", kind.size)
            cases.append({"kind": kind.kind, "bytes": data.hex(), "reads": typed})
        wrong = {
            "mistyped": text[:-1] + ("0" if text[-1] != "0" else "1"),
            "exchanged": _exchanged(text),
            "too short": text[:-1],
            "too long": text + "0",
            "not of the alphabet": "u" + text[1:],
            **{
                f"of the kind {other.kind}": str(other(seeded("vectors, id", other.size)))
                for other in IDS
                if other is not kind and other.size == kind.size
            },
        }
        cases += [
            {"kind": kind.kind, "reads": bad, "error": "UsageError", "why": why}
            for why, bad in wrong.items()
        ]
    return suite("ids", "ids as bytes and as text with two check characters", cases)


def _exchanged(text: str) -> str:
    at = next(i for i in range(len(text) - 1) if text[i] != text[i + 1])
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def records_suite() -> Suite:
    """Author-bound and derived record ids (R9, R30)."""
    place = {
        "agent": AGENT.hex(),
        "device": LOG.device.hex(),
        "incarnation": LOG.incarnation.hex(),
    }
    cases: list[Suite] = [
        place
        | {
            "form": "author-bound",
            "seq": seq,
            "wall_ms": wall,
            "record": author_bound_id(AGENT, LOG, seq, wall).hex(),
        }
        for seq, wall in ((2, WALL_MS), (3, WALL_MS), (2**40, 0), (2, 2**48 - 1))
    ]
    cases += [
        {
            "form": "derived",
            "agent": AGENT.hex(),
            "kind": kind,
            "key": key.hex(),
            "record": derived_id(AGENT, kind, key).hex(),
        }
        for kind, key in (("layer", b"day"), ("layer", b"week"), ("summary", b"\0"))
    ]
    record = author_bound_id(AGENT, LOG, 2, WALL_MS)
    cases.append(
        {
            "form": "tombstone",
            "agent": AGENT.hex(),
            "of": record.hex(),
            "record": tombstone_id(AGENT, record).hex(),
        }
    )
    wrong = {
        "another place": author_bound_id(AGENT, LOG, 3, WALL_MS),
        "another log": author_bound_id(AGENT, type(LOG)(PHONE.device, LOG.incarnation), 2, 0),
        "version 4": RecordId(record[:6] + bytes([0x40 | record[6] & 15]) + record[7:]),
        "another variant": RecordId(record[:8] + bytes([record[8] | 0x40]) + record[9:]),
        "derived": derived_id(AGENT, "layer", b"day"),
    }
    cases += [
        place | {"form": "author-bound", "seq": 2, "record": bad.hex(), "fits": False, "why": why}
        for why, bad in wrong.items()
    ]
    return suite("records", "record ids and what they are made of", cases)


TEXTS: tuple[tuple[str, str], ...] = (
    ("plain", "the key is under the mat"),
    ("case and white space", "  The KEY\tis\nunder\u00a0the\u2003mat "),
    ("edge punctuation", "\u00ab\u2026the key is under the mat!\u00bb ."),
    ("inner punctuation stays", "the key: is under the mat"),
    ("NFC", "caf\u00e9"),
    ("NFD", "cafe\u0301"),
    ("compatibility", "\ufb01ne \uff21\u2460"),
    ("casefold", "Stra\u00dfe"),
    ("casefold to the same", "STRASSE"),
    ("zero-width space", "pass\u200bword"),
    ("zero-width joiner, soft hyphen, byte order mark", "\ufeffpa\u00ads\u200ds\u2060word"),
    ("bidirectional controls", "\u202epassword\u202c"),
    ("not folded: look-alike", "p\u0430ssword"),
    ("not folded: variation selector", "password\ufe0f"),
    ("unassigned in Unicode 14", "\U0001e030"),
    ("unassigned in Unicode 14, among letters", "A\U0001e030\u0301B"),
    ("punctuation only", "?!"),
    ("white space only", " \t\n"),
    ("empty", ""),
    ("symbols are no punctuation", "$100 + `x`"),
    ("unspaced script", "\u65e5\u672c\u8a9e\u3002"),
    ("emoji", "bees \U0001f41d\U0001f3fd"),
    ("thirty marks", "a" + "\u0301\u0323" * 15),
    ("more than thirty marks", "a" + "\u0301\u0323" * 31 + "b"),
    ("a letter that becomes a mark", "\uff76\uff9e"),
    ("final sigma", "\u039f\u03a3 \u03bf\u03c2"),
    ("dotted capital I", "\u0130stanbul"),
    ("NUL inside", "a\0b"),
    ("next line and line separator", "a\u0085b\u2028c"),
)


def fingerprints_suite() -> Suite:
    """Normalisation 1 and keyed fingerprints (R28)."""
    other = FingerprintKey(seeded("vectors, another fingerprint key"))
    cases: list[Suite] = []
    for key in (VALUES, other):
        for name, text in TEXTS if key is VALUES else TEXTS[:1]:
            normal = normalise(text)
            cases.append(
                {
                    "name": name,
                    "key": key.secret.hex(),
                    "commitment": key.commitment.hex(),
                    "text": utf32(text),
                    "normal": utf32(normal),
                    "norm": 1,
                    "key_id": key.id.hex(),
                    "mac": key.fingerprint(normal).mac.hex(),
                }
            )
    cases += [
        {"text": utf32(text), "error": "BadEncoding", "why": "surrogate"}
        for text in ("\ud800", "a\udfff", "\u00e9\ud83d")
    ]
    return suite("fingerprints", "texts as UTF-32BE, their normal form and mac", cases)


def recovery_suite() -> Suite:
    """Recovery codes, the key of each, and what a founding statement holds of it (R20)."""
    cases: list[Suite] = []
    for secret in (bytes(16), b"\xff" * 16, seeded("vectors, recovery code", 16)):
        code = format_code(secret)
        public = recovery_key(code).public
        cases.append({"secret": secret.hex(), "code": code, "public": public.hex()})
        cases[-1]["hash"] = recovery_hash(public).hex()
    groups = cases[-1]["code"].split("-")
    wrong = {
        "mistyped": "-".join([groups[0][::-1], *groups[1:]]),
        "groups exchanged": "-".join([groups[1], groups[0], *groups[2:]]),
        "too short": "-".join(groups[:-1]),
        "not of the alphabet": "-".join(["u" * 5, *groups[1:]]),
    }
    cases += [{"code": c, "error": "UsageError", "why": why} for why, c in wrong.items()]
    return suite("recovery", "recovery codes and the keys that they give", cases)


def digests_suite() -> Suite:
    """The in-sync check: canonical vectors and the digests (R8)."""
    first, second = EntryHash(seeded("one")), EntryHash(seeded("two"))
    forked: Vector = {
        LOG: [Tip(4, max(first, second)), Tip(4, min(first, second))],
        type(LOG)(LAPTOP.device, incarnation("second")): [Tip(1, first)],
        type(LOG)(PHONE.device, incarnation("first")): [Tip(2**40, second)],
    }
    cases: list[Suite] = []
    for vector in ({}, {LOG: [Tip(7, first)]}, forked):
        rows = rows_of(vector)
        cases.append({"rows": shown(rows), "bytes": hexed(codec.encode(rows))})
        cases[-1]["digest"] = vector_digest(vector).hex()
    ids = [bytes(s.id) for s in CERTIFICATES]
    for some in ([], ids, [*reversed(ids), *ids]):
        digest = statements_digest(some)
        cases.append({"statements": [i.hex() for i in some], "digest": digest.hex()})
    rows = rows_of(forked)
    device, inc, tips = rows[0]
    wrong: dict[str, Any] = {
        "unsorted": rows[::-1],
        "duplicate": [rows[0], rows[0]],
        "no tip": [[device, inc, []]],
        "unsorted tips": [[device, inc, [[4, max(first, second)], [4, min(first, second)]]]],
        "nine tips": [[device, inc, [[n, bytes(32)] for n in range(1, 10)]]],
        "seq 0": [[device, inc, [[0, bytes(32)]]]],
        "seq": [[device, inc, [[2**40 + 1, bytes(32)]]]],
        "wrong length": [[device[:-1], inc, tips]],
        "missing field": [[device, inc]],
        "no list": None,
    }
    cases += [
        {"bytes": hexed(codec.pack(bad)), "error": "BadEncoding", "why": why}
        for why, bad in wrong.items()
    ]
    return suite("digests", "version vectors and their digests", cases)
