"""Statements: what only a person may do, signed by an owner's key (R16, R22). See GRANTS.md.

A statement is the canonical MessagePack of ``[1, agent, signer, after, kind, body]``. Its id is
the BLAKE2b-256 of those bytes; the signature is over the id, under ``STATEMENT_DOMAIN``.

1. ``parse`` is the only maker of a ``Statement`` from outside bytes; it checks bounds, the
   canonical form, the body's exact fields and the signature, and raises ``BadInput``.
2. ``found`` and the statements of an owner (certify, decertify, rotate) carry an empty agent; the
   id of a founding statement *is* the agent's id.
3. A kind that this version does not know is kept and forwarded, and has no effect but on record
   time: its body, too, holds ``wall_ms`` (R14).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from keys import codec
from keys.errors import BadEncoding
from keys.ids import AgentId, EntryHash, StatementId, hash256
from keys.limits import (
    APPROVALS_MAX,
    CUTS_MAX,
    DEPS_MAX,
    FACTS_PER_LIFT_MAX,
    HASH_BYTES,
    INCARNATION_BYTES,
    KEEPS_MAX,
    KEY_BYTES,
    NAME_BYTES_MAX,
    OP_KEY_BYTES_MAX,
    RECORD_BYTES,
    SEQ_MAX,
    SIGNATURE_BYTES,
    STATEMENT_AFTER_MAX,
    STATEMENT_BYTES_MAX,
    WALL_MS_MAX,
)
from keys.signing import (
    CERTIFICATE_DOMAIN,
    ROTATION_DOMAIN,
    STATEMENT_DOMAIN,
    SigningKey,
    verify,
)

VERSION: Final = 1
NONCE_BYTES: Final = 16
RIGHTS: Final = ("admin", "read", "review", "write")
OWNER_KINDS: Final = frozenset({"certify", "decertify", "rotate"})
AGENTLESS_KINDS: Final = OWNER_KINDS | {"found"}
SEALED_BYTES_MAX: Final = 256
POLICY_KEYS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Statement:
    """A verified statement. ``agent`` is empty for a founding or an owner's statement."""

    id: StatementId
    agent: bytes
    signer: bytes
    after: tuple[bytes, ...]
    kind: str
    body: dict[str, Any]
    data: bytes
    signature: bytes

    @property
    def wall_ms(self) -> int:
        """The signer's clock in milliseconds: an annotation for people and record time (R14)."""
        return int(self.body["wall_ms"])


def parse(data: bytes, signature: bytes) -> Statement:
    """The statement in ``data``; raises ``BadEncoding`` or ``BadSignature``."""
    statement = _decode(data, signature)
    verify(statement.signer, STATEMENT_DOMAIN, statement.id, signature)
    body = statement.body
    if statement.kind == "certify":
        verify(body["device"], CERTIFICATE_DOMAIN, body["owner"] + body["device"], body["proof"])
    elif statement.kind == "rotate":
        verify(body["new"], ROTATION_DOMAIN, body["owner"] + body["new"], body["proof"])
    return statement


def parse_stored(data: bytes, signature: bytes) -> Statement:
    """A statement from our own store, whose signature was verified when it entered."""
    return _decode(data, signature)


def sign(
    key: SigningKey, kind: str, body: dict[str, Any], *, agent: bytes, after: list[bytes]
) -> Statement:
    """Make and sign a statement; ``after`` are the heads the signer has seen.

    Raises ``BadEncoding`` when the body is not one that ``parse`` would accept.
    """
    heads = sorted(after)[:STATEMENT_AFTER_MAX]
    data = codec.encode([VERSION, agent, key.public, heads, kind, body])
    return _decode(data, key.sign(STATEMENT_DOMAIN, hash256(data)))


def device_proof(key: SigningKey, owner: bytes) -> bytes:
    """The device's own signature over (owner, device), which a certificate carries (R19)."""
    return key.sign(CERTIFICATE_DOMAIN, owner + key.public)


def successor_proof(key: SigningKey, owner: bytes) -> bytes:
    """The new key's own signature over (owner, new key), which a rotation carries (R20).

    So nobody can name a key that is another owner's, and speak for the two.
    """
    return key.sign(ROTATION_DOMAIN, owner + key.public)


def agent_of(statement: Statement) -> AgentId:
    """The agent that a founding statement founds."""
    return AgentId(bytes(statement.id))


def _decode(data: bytes, signature: bytes) -> Statement:
    value = codec.decode(data, STATEMENT_BYTES_MAX)
    if not isinstance(value, list) or len(value) != 6:
        raise BadEncoding("a statement is [1, agent, signer, after, kind, body]")
    version, agent, signer, after, kind, body = value
    if type(version) is not int or version != VERSION:
        raise BadEncoding("a statement of a version that is not known here")
    if not isinstance(kind, str) or not 0 < len(kind) <= 32:
        raise BadEncoding("a statement's kind is a short word")
    wanted = 0 if kind in AGENTLESS_KINDS else HASH_BYTES
    if not isinstance(agent, bytes) or len(agent) != wanted:
        raise BadEncoding(f"a {kind} statement names an agent of {wanted} bytes")
    _blob(KEY_BYTES)(signer)
    _list(_blob(HASH_BYTES), STATEMENT_AFTER_MAX)(after)
    if sorted(set(after)) != after:
        raise BadEncoding("the heads of a statement are sorted and distinct")
    _blob(SIGNATURE_BYTES)(signature)
    _check_body(kind, body)
    return Statement(
        StatementId(hash256(data)), agent, signer, tuple(after), kind, body, data, signature
    )


Check = Callable[[Any], None]


def _blob(size: int, size_max: int | None = None) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, bytes) or not size <= len(value) <= (size_max or size):
            raise BadEncoding(f"bytes of length {size} are expected in a statement")

    return check


def _text(bytes_max: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value.encode()) > bytes_max:
            raise BadEncoding(f"text of at most {bytes_max} bytes is expected in a statement")

    return check


def _number(largest: int) -> Check:
    def check(value: Any) -> None:
        if type(value) is not int or not 0 <= value <= largest:
            raise BadEncoding(f"a number from 0 to {largest} is expected in a statement")

    return check


def _list(item: Check, length_max: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, list) or len(value) > length_max:
            raise BadEncoding(f"a list of at most {length_max} is expected in a statement")
        for inner in value:
            item(inner)

    return check


def _row(*fields: Check) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, list) or len(value) != len(fields):
            raise BadEncoding(f"a row of {len(fields)} is expected in a statement")
        for field, inner in zip(fields, value, strict=True):
            field(inner)

    return check


def _choice(*allowed: str) -> Check:
    def check(value: Any) -> None:
        if value not in allowed:
            raise BadEncoding("a statement holds a word that is not one of " + ", ".join(allowed))

    return check


def _rights(value: Any) -> None:
    _list(_choice(*RIGHTS), len(RIGHTS))(value)
    if not value or sorted(set(value)) != value:
        raise BadEncoding("rights are sorted, distinct and at least one")


def _policy(value: Any) -> None:
    if not isinstance(value, dict) or len(value) > POLICY_KEYS_MAX:
        raise BadEncoding(f"a policy has at most {POLICY_KEYS_MAX} settings")
    for key, inner in value.items():
        _text(64)(key)
        _text(64)(inner)


_HASH: Final = _blob(HASH_BYTES)
_KEY: Final = _blob(KEY_BYTES)
_MAYBE_HASH: Final = _blob(0, HASH_BYTES)
_WALL: Final = _number(WALL_MS_MAX)
_INC: Final = _blob(INCARNATION_BYTES)
_RECORD: Final = _blob(RECORD_BYTES)
_CUTS: Final = _list(_row(_KEY, _INC, _number(SEQ_MAX), _HASH), CUTS_MAX)
_AGENT_CUTS: Final = _list(_row(_HASH, _INC, _number(SEQ_MAX), _HASH), CUTS_MAX)
_SUBJECT: Final = {"subject_kind": _choice("device", "owner"), "subject": _KEY, "rights": _rights}
_ITEMS: Final = _list(_row(_RECORD, _list(_HASH, DEPS_MAX)), APPROVALS_MAX)
_PLACE: Final = {"device": _KEY, "incarnation": _INC, "seq": _number(SEQ_MAX), "hash": _HASH}

# The exact fields of each kind's body; every body also has ``wall_ms``.
BODIES: Final[dict[str, dict[str, Check]]] = {
    "found": {
        "owner": _KEY,
        "name": _text(NAME_BYTES_MAX),
        "nonce": _blob(NONCE_BYTES),
        "recovery": _MAYBE_HASH,
        "key": _HASH,
    },
    "certify": {
        "owner": _KEY,
        "device": _KEY,
        "name": _text(NAME_BYTES_MAX),
        "proof": _blob(SIGNATURE_BYTES),
    },
    "decertify": {"owner": _KEY, "device": _KEY, "cuts": _AGENT_CUTS},
    "grant": _SUBJECT
    | {
        "recovery": _MAYBE_HASH,
        "sealed": _list(_row(_KEY, _blob(0, SEALED_BYTES_MAX)), 16),
        "until_ms": _WALL,
    },
    "revoke": _SUBJECT
    | {
        "cuts": _CUTS,
        "keep": _list(_HASH, CUTS_MAX),
        "keeps": _list(_HASH, KEEPS_MAX),
        "replaces": _list(_HASH, STATEMENT_AFTER_MAX),
        "key": _MAYBE_HASH,
    },
    "undo": {"run": _blob(16)},
    "approve": {"items": _ITEMS},
    "reject": {"items": _ITEMS},
    "lift": {
        "record": _RECORD,
        "facts": _list(_row(_HASH, _text(OP_KEY_BYTES_MAX)), FACTS_PER_LIFT_MAX),
        "tombstones": _list(_HASH, FACTS_PER_LIFT_MAX),
    },
    "settle": dict(_PLACE),
    "release": dict(_PLACE),
    "drop": {"entries": _list(_HASH, CUTS_MAX)},
    "policy": {"settings": _policy},
    "rotate": {
        "owner": _KEY,
        "new": _KEY,
        "recovery": _HASH,
        "keeps": _list(_HASH, KEEPS_MAX),
        "proof": _blob(SIGNATURE_BYTES),
    },
}


def _check_body(kind: str, body: Any) -> None:
    if not isinstance(body, dict) or "wall_ms" not in body:
        raise BadEncoding("a statement's body is a map that holds wall_ms")
    _WALL(body["wall_ms"])
    fields = BODIES.get(kind)
    if fields is None:
        return
    if body.keys() != fields.keys() | {"wall_ms"}:
        raise BadEncoding(f"the body of a {kind} statement does not have exactly its fields")
    for name, check in fields.items():
        check(body[name])


@dataclass(frozen=True, slots=True)
class Cut:
    """An end of a log: entries that are not ancestors of ``hash`` (or it) are past it (R18).

    ``seq`` 0 cuts the whole log; ``hash`` is then 32 zero bytes.
    """

    seq: int
    hash: EntryHash


NOTHING: Final = Cut(0, EntryHash(bytes(HASH_BYTES)))


def cut_of(statement: Statement, agent: bytes, device: bytes, incarnation: bytes) -> Cut:
    """Where ``statement`` (revoke, decertify or settle) ends one log of its subject."""
    body = statement.body
    if statement.kind == "settle":
        return Cut(body["seq"], EntryHash(body["hash"]))
    if statement.kind == "decertify":
        rows = [row[1:] for row in body["cuts"] if row[0] == agent]
    else:
        rows = [row[1:] for row in body["cuts"] if row[0] == device]
    for named, seq, entry in rows:
        if named == incarnation and seq:
            return Cut(seq, EntryHash(entry))
    return NOTHING
