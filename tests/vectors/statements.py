"""Vectors of statements of every kind, and of signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from keys import codec
from keys.ids import hash256
from keys.limits import KEEPS_MAX
from keys.recovery import recovery_hash
from keys.signing import (
    CERTIFICATE_DOMAIN,
    ENTRY_DOMAIN,
    PAIRING_DOMAIN,
    RECOVERY_DOMAIN,
    ROTATION_DOMAIN,
    STATEMENT_DOMAIN,
    SigningKey,
)
from keys.statements import AGENTLESS_KINDS, Statement, device_proof, sign, successor_proof
from tests.support.author import WALL_MS, seeded
from tests.vectors.cast import (
    AGENT,
    FOUND,
    LAPTOP,
    MANY_HASHES,
    OTHER,
    OWNER,
    PHONE,
    RECOVERY,
    SMALL_ORDER_KEY,
    SMALL_ORDER_SIGNATURE,
    VALUES,
    incarnation,
)
from tests.vectors.forms import hexed, shown
from tests.vectors.values import Suite, suite

Body = dict[str, Any]
RECORD: Final = seeded("vectors, record", 16)
HASH: Final = seeded("vectors, a hash")
INC: Final = bytes(incarnation("first"))
PLACE: Final = {"device": LAPTOP.public, "incarnation": INC, "seq": 7, "hash": HASH}
CUT: Final = [LAPTOP.public, INC, 7, HASH]
DEVICE: Final = {"subject_kind": "device", "subject": PHONE.public}
BODIES: Final[list[tuple[str, Body]]] = [
    ("certify", {
        "owner": OWNER.public, "device": LAPTOP.public, "name": "laptop",
        "proof": device_proof(LAPTOP, OWNER.public),
    }),
    ("decertify", {
        "owner": OWNER.public, "device": PHONE.public, "cuts": [[bytes(AGENT), INC, 3, HASH]],
    }),
    ("grant", DEVICE | {
        "rights": ["read", "write"], "recovery": b"",
        "sealed": [[PHONE.public, seeded("vectors, sealed", 48)]], "until_ms": 0,
    }),
    ("grant", {
        "subject_kind": "owner", "subject": OTHER.public, "rights": ["read"],
        "recovery": HASH, "sealed": [], "until_ms": WALL_MS + 1,
    }),
    ("revoke", DEVICE | {
        "rights": ["read"], "cuts": [CUT], "keep": [HASH], "keeps": [], "replaces": [HASH],
        "key": VALUES.commitment,
    }),
    ("revoke", {
        "subject_kind": "owner", "subject": OTHER.public, "rights": ["admin", "review"],
        "cuts": [], "keep": [], "keeps": MANY_HASHES[:3], "replaces": [], "key": b"",
    }),
    ("undo", {"run": seeded("vectors, run", 16)}),
    ("approve", {"items": [[RECORD, [HASH]]]}),
    ("reject", {"items": [[RECORD, []]]}),
    ("lift", {"record": RECORD, "facts": [[HASH, "mark.0000000000000001"]], "tombstones": [HASH]}),
    ("settle", PLACE),
    ("release", PLACE),
    ("drop", {"entries": MANY_HASHES[:2]}),
    ("policy", {"settings": {"gate.rule": "open", "forget": "agent"}}),
    ("rotate", {
        "owner": OWNER.public, "new": OTHER.public,
        "recovery": recovery_hash(SigningKey(seeded("vectors, next paper")).public),
        "keeps": MANY_HASHES[:2], "proof": successor_proof(OTHER, OWNER.public),
    }),
    ("later", {"what": {"a later": ["version", "has", 1]}}),
]  # fmt: skip


def good() -> list[Statement]:
    """A statement of every kind."""
    out = [FOUND]
    for kind, body in BODIES:
        agent = b"" if kind in AGENTLESS_KINDS else bytes(AGENT)
        after = [] if kind in AGENTLESS_KINDS else [bytes(FOUND.id)]
        key = RECOVERY if kind == "rotate" else OWNER
        out.append(sign(key, kind, body | {"wall_ms": WALL_MS}, agent=agent, after=after))
    out.append(
        sign(OWNER, "undo", {"run": bytes(16), "wall_ms": 0}, agent=AGENT, after=MANY_HASHES[:16])
    )
    return out


def statements_suite() -> Suite:
    """Statements, well-formed and not."""
    cases: list[Suite] = []
    for s in good():
        cases.append({"kind": s.kind, "data": hexed(s.data), "signature": s.signature.hex()})
        cases[-1] |= {"id": s.id.hex(), "agent": s.agent.hex(), "signer": s.signer.hex()}
        cases[-1] |= {"after": [a.hex() for a in s.after], "body": shown(s.body)}
    for error, why, data, signature in bad():
        cases.append({"data": hexed(data), "signature": signature.hex()})
        cases[-1] |= {"error": error, "why": why}
    return suite("statements", "statements of every kind, with ids and signatures", cases)


def bad() -> Iterator[tuple[str, str, bytes, bytes]]:
    """(error, what is wrong, data, signature); signed as they should be where form is at fault."""
    for why, data in [*_bad_forms(), *_bad_bodies()]:
        yield "BadEncoding", why, data, OWNER.sign(STATEMENT_DOMAIN, hash256(data))
    yield from _bad_signatures()
    yield from _bad_proofs()


def _value(kind: str, body: Any = None) -> list[Any]:
    if body is None:
        body = next(b for k, b in BODIES if k == kind) | {"wall_ms": WALL_MS}
    agent = b"" if kind in AGENTLESS_KINDS else bytes(AGENT)
    return [1, agent, OWNER.public, [], kind, body]


def _packed(value: list[Any]) -> bytes:
    return codec.pack(codec._sorted(value))


def _bad_forms() -> Iterator[tuple[str, bytes]]:
    base = _value("undo")
    for why, at, value in (
        ("version", 0, 0), ("version", 0, 2), ("version", 0, True), ("version", 0, 1.0),
        ("agent length", 1, b""), ("agent length", 1, bytes(31)), ("agent length", 1, "a" * 32),
        ("signer length", 2, bytes(33)), ("str for bin", 2, "s" * 32),
        ("after unsorted", 3, MANY_HASHES[1::-1]), ("after duplicate", 3, [HASH, HASH]),
        ("17 heads", 3, MANY_HASHES[:17]), ("head length", 3, [HASH[:-1]]), ("no list", 3, None),
        ("kind", 4, ""), ("kind", 4, "k" * 33), ("bin for str", 4, b"undo"), ("kind", 4, None),
        ("body", 5, []), ("body", 5, None), ("body without stamp", 5, {"run": bytes(16)}),
    ):  # fmt: skip
        yield why, _packed([*base[:at], value, *base[at + 1 :]])
    yield "agent length", _packed([1, bytes(AGENT), *_value("certify")[2:]])
    yield "agent length", _packed([1, bytes(AGENT), *_value("rotate")[2:]])
    yield "missing field", _packed(base[:-1])
    yield "extra field", _packed([*base, 0])
    yield "no list", codec.encode({"version": 1})
    whole = _packed(base)
    yield "trailing byte", whole + b"\0"
    yield "ends too early", whole[:-1]
    yield "nothing", b""
    yield "long integer", b"\x96\xcc\x01" + whole[2:]
    yield "long list", b"\xdc\x00\x06" + whole[1:]
    body = codec.pack({"wall_ms": 1, "run": bytes(16)})
    yield "unsorted map", codec.pack(base[:5])[1:].join([b"\x96", body])
    body = (
        b"\x83" + codec.pack({"run": bytes(16), "wall_ms": 1})[1:] + codec.pack({"wall_ms": 1})[1:]
    )
    yield "duplicate keys", codec.pack(base[:5])[1:].join([b"\x96", body])
    yield "too long", _packed(_value("later", {"wall_ms": 1, "x": bytes(64 * 1024)}))


def _bad_bodies() -> Iterator[tuple[str, bytes]]:
    for kind in ("found", *dict(BODIES)):
        body = dict(FOUND.body) if kind == "found" else _value(kind)[5]
        if kind == "later":
            continue
        for name in body:
            yield "missing field", _packed(_value(kind, {k: body[k] for k in body if k != name}))
        yield "extra field", _packed(_value(kind, body | {"more": 0}))
        for stamp in (-1, 2**48, 2**62, 1.5, float("nan"), True, "1"):
            if kind in ("undo", "found"):
                yield "stamp", _packed(_value(kind, body | {"wall_ms": stamp}))
    for kind, why, name, value in _bad_fields():
        body = dict(FOUND.body) if kind == "found" else _value(kind)[5]
        yield why, _packed(_value(kind, body | {name: value}))


def _bad_fields() -> list[tuple[str, str, str, Any]]:
    seventeen = [[PHONE.public, b""]] * 17
    return [
        ("found", "wrong length", "nonce", bytes(15)),
        ("found", "wrong length", "recovery", bytes(33)),
        ("found", "str for bin", "key", "k" * 32),
        ("found", "text too long", "name", "n" * 129),
        ("found", "bin for str", "name", b"name"),
        ("certify", "wrong length", "proof", bytes(63)),
        ("certify", "wrong length", "device", bytes(31)),
        ("decertify", "cut", "cuts", [[bytes(AGENT), INC, 2**40 + 1, HASH]]),
        ("decertify", "cut", "cuts", [[bytes(AGENT), INC, -1, HASH]]),
        ("decertify", "cut", "cuts", [[bytes(AGENT), INC, 1]]),
        ("grant", "subject kind", "subject_kind", "agent"),
        ("grant", "subject kind", "subject_kind", b"device"),
        ("grant", "right", "rights", ["own"]),
        ("grant", "rights unsorted", "rights", ["write", "read"]),
        ("grant", "rights duplicate", "rights", ["read", "read"]),
        ("grant", "no rights", "rights", []),
        ("grant", "stamp", "until_ms", True),
        ("grant", "box too long", "sealed", [[PHONE.public, bytes(257)]]),
        ("grant", "too many", "sealed", seventeen),
        ("revoke", "cut", "cuts", [[LAPTOP.public, INC[:-1], 1, HASH]]),
        ("revoke", "too many", "keeps", [HASH] * (KEEPS_MAX + 1)),
        ("revoke", "too many", "replaces", MANY_HASHES[:17]),
        ("revoke", "wrong length", "keep", [bytes(31)]),
        ("undo", "wrong length", "run", bytes(17)),
        ("approve", "wrong length", "items", [[RECORD, [bytes(31)]]]),
        ("approve", "row", "items", [[RECORD]]),
        ("approve", "too many", "items", [[RECORD, MANY_HASHES]]),
        ("reject", "no list", "items", RECORD),
        ("lift", "text too long", "facts", [[HASH, "k" * 257]]),
        ("lift", "row", "facts", [[HASH, "mark.x", 0]]),
        ("lift", "wrong length", "record", bytes(15)),
        ("settle", "seq", "seq", -1),
        ("settle", "seq", "seq", 2**40 + 1),
        ("release", "seq", "seq", 1.0),
        ("drop", "too many", "entries", [HASH] * 513),
        ("policy", "setting", "settings", {"gate": 1}),
        ("policy", "setting", "settings", {"g" * 65: "x"}),
        ("policy", "too many", "settings", {f"key {n}": "x" for n in range(65)}),
        ("policy", "no map", "settings", []),
        ("rotate", "wrong length", "new", bytes(31)),
        ("rotate", "wrong length", "recovery", b""),
        ("rotate", "wrong length", "proof", b""),
    ]


def _bad_signatures() -> Iterator[tuple[str, str, bytes, bytes]]:
    s = sign(OWNER, "undo", {"run": bytes(16), "wall_ms": 1}, agent=AGENT, after=[])
    for domain in (ENTRY_DOMAIN, CERTIFICATE_DOMAIN, PAIRING_DOMAIN, RECOVERY_DOMAIN, b""):
        yield "BadSignature", "another domain", s.data, OWNER.sign(domain, s.id)
    yield "BadSignature", "of the data", s.data, OWNER.sign(STATEMENT_DOMAIN, s.data)
    yield "BadSignature", "another key", s.data, OTHER.sign(STATEMENT_DOMAIN, s.id)
    yield "BadSignature", "zeros", s.data, bytes(64)
    flipped = bytes([s.signature[0] ^ 1]) + s.signature[1:]
    yield "BadSignature", "flipped bit", s.data, flipped
    for other in (b"", s.signature[:-1], s.signature + b"\0"):
        yield "BadEncoding", "signature length", s.data, other
    value = _value("undo")
    weak = _packed([1, value[1], SMALL_ORDER_KEY, *value[3:]])
    yield "BadSignature", "small-order key", weak, SMALL_ORDER_SIGNATURE


def _bad_proofs() -> Iterator[tuple[str, str, bytes, bytes]]:
    weak = {"device": SMALL_ORDER_KEY, "proof": SMALL_ORDER_SIGNATURE}
    for kind, why, changed in (
        ("certify", "another device's proof", {"proof": device_proof(PHONE, OWNER.public)}),
        ("certify", "proof for another owner", {"proof": device_proof(LAPTOP, OTHER.public)}),
        (
            "certify",
            "proof under another domain",
            {"proof": LAPTOP.sign(STATEMENT_DOMAIN, OWNER.public + LAPTOP.public)},
        ),
        ("certify", "small-order key", weak),
        ("certify", "proof by the owner", {"proof": OWNER.sign(CERTIFICATE_DOMAIN, b"")}),
        ("rotate", "another key's proof", {"proof": successor_proof(OWNER, OWNER.public)}),
        ("rotate", "proof for another owner", {"proof": successor_proof(OTHER, OTHER.public)}),
        (
            "rotate",
            "proof under another domain",
            {"proof": OTHER.sign(CERTIFICATE_DOMAIN, OWNER.public + OTHER.public)},
        ),
    ):
        key = RECOVERY if kind == "rotate" else OWNER
        value = _value(kind, _value(kind)[5] | changed)
        data = _packed([*value[:2], key.public, *value[3:]])
        yield "BadSignature", why, data, key.sign(STATEMENT_DOMAIN, hash256(data))


DOMAINS: Final = (
    ENTRY_DOMAIN,
    STATEMENT_DOMAIN,
    CERTIFICATE_DOMAIN,
    ROTATION_DOMAIN,
    PAIRING_DOMAIN,
    RECOVERY_DOMAIN,
)


def signatures_suite() -> Suite:
    """Ed25519 over domain, a zero byte and the message; a domain stands for one kind of thing."""
    cases: list[Suite] = []
    for domain in DOMAINS:
        for message in (HASH, b""):
            cases.append({"public": LAPTOP.public.hex(), "domain": domain.decode()})
            cases[-1] |= {"message": message.hex()}
            cases[-1] |= {
                "signature": LAPTOP.sign(domain, message).hex(),
                "seed": LAPTOP.seed().hex(),
            }
    for made in DOMAINS:
        for read in DOMAINS:
            if made != read:
                cases.append({"public": LAPTOP.public.hex(), "domain": read.decode()})
                cases[-1] |= {"message": HASH.hex(), "signature": LAPTOP.sign(made, HASH).hex()}
                cases[-1] |= {"error": "BadSignature", "why": "another domain"}
    good_one = LAPTOP.sign(ENTRY_DOMAIN, HASH)
    order = 2**252 + 27742317777372353535851937790883648493
    high = (int.from_bytes(good_one[32:], "little") + order).to_bytes(32, "little")
    for why, public, signature in (
        ("another message", LAPTOP.public, LAPTOP.sign(ENTRY_DOMAIN, b"")),
        ("another key", PHONE.public, good_one),
        ("small-order key", SMALL_ORDER_KEY, SMALL_ORDER_SIGNATURE),
        ("small-order key", bytes(32), SMALL_ORDER_SIGNATURE),
        ("S not reduced", LAPTOP.public, good_one[:32] + high),
        ("short", LAPTOP.public, good_one[:-1]),
        ("long", LAPTOP.public, good_one + b"\0"),
        ("key length", LAPTOP.public[:-1], good_one),
        ("no key", b"\xff" * 32, good_one),
    ):
        cases.append(
            {"public": public.hex(), "domain": ENTRY_DOMAIN.decode(), "message": HASH.hex()}
        )
        cases[-1] |= {"signature": signature.hex(), "error": "BadSignature", "why": why}
    return suite("signatures", "signatures and the domains that keep them apart", cases)
