"""The owner's key at rest, readable only with the passphrase.

A vault is the canonical encoding of

    ["roost vault", 1, owner public key, salt, ops, mem, box, check]

``box`` is a secretbox of the 32-byte seed under Argon2id(passphrase, salt, ops, mem), ``mem`` in
bytes. The salt is new at every sealing, so no key is used twice. ``check`` is 8 bytes of a hash of
the other fields: it says whether a vault that does not open is damaged or the passphrase is wrong;
it protects against accidents only.

1. The passphrase is text, taken as the UTF-8 of its NFC, so that two keyboards agree on it.
2. The costs read from a vault are compared with their bounds before any memory is taken.
3. The opened key must be the one that the vault names.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

import nacl.exceptions
import nacl.pwhash

from keys.codec import decode, encode
from keys.errors import BadInput, KeyFileError, PassphraseError, RoostError, UsageError
from keys.ids import OwnerId, hash256
from keys.limits import (
    PASSPHRASE_BYTES_MAX,
    PASSPHRASE_CHARS_MIN,
    SALT_BYTES,
    VAULT_BYTES_MAX,
    VAULT_MEMORY_BYTES_MAX,
    VAULT_MEMORY_BYTES_MIN,
    VAULT_OPS_MAX,
)
from keys.signing import SEED_BYTES, OwnerKey, box_open, box_seal, random_bytes, same

_KIND: Final = "roost vault"
_VERSION: Final = 1
_CHECK_BYTES: Final = 8
_DAMAGED_HINT: Final = (
    "restore it from a backup or another of your devices, or use the recovery code"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one guess at the passphrase costs: passes over ``memory_bytes`` of memory.

    ``ops`` is 1 to 16, ``memory_bytes`` 8 KiB to 1 GiB; raises ``UsageError`` outside of that.
    """

    ops: int
    memory_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= self.ops <= VAULT_OPS_MAX:
            raise UsageError(f"a vault takes 1 to {VAULT_OPS_MAX} passes, not {self.ops}")
        if not VAULT_MEMORY_BYTES_MIN <= self.memory_bytes <= VAULT_MEMORY_BYTES_MAX:
            raise UsageError(
                f"a vault takes {VAULT_MEMORY_BYTES_MIN} to {VAULT_MEMORY_BYTES_MAX} bytes"
            )


DEFAULT_COST: Final = Cost(ops=3, memory_bytes=64 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class _Vault:
    owner: OwnerId
    salt: bytes
    cost: Cost
    box: bytes


def seal_owner(key: OwnerKey, passphrase: str, *, cost: Cost = DEFAULT_COST) -> bytes:
    """A vault with ``key`` in it, at most ``VAULT_BYTES_MAX`` bytes.

    Raises ``UsageError`` for a passphrase under 8 characters or over 1,024 bytes.
    """
    secret = _bytes_of(passphrase)
    if len(unicodedata.normalize("NFC", passphrase)) < PASSPHRASE_CHARS_MIN:
        raise UsageError(f"a passphrase has at least {PASSPHRASE_CHARS_MIN} characters")
    salt = random_bytes(SALT_BYTES)
    box = box_seal(_stretched(secret, salt, cost), 0, key.seed())
    fields = [_KIND, _VERSION, bytes(key.owner), salt, cost.ops, cost.memory_bytes, box]
    return encode([*fields, _check(fields)])


def open_owner(blob: bytes, passphrase: str) -> OwnerKey:
    """The key inside. Takes as long and as much memory as the vault's cost says.

    Raises ``PassphraseError`` for a wrong passphrase, ``KeyFileError`` for a damaged vault.
    """
    vault = _parse(blob)
    stretched = _stretched(_bytes_of(passphrase), vault.salt, vault.cost)
    try:
        key = OwnerKey(box_open(stretched, 0, vault.box))
    except BadInput as exc:
        raise PassphraseError("the passphrase does not open the owner key") from exc
    if not same(key.owner, vault.owner):
        raise _damaged("another key is inside than it says")
    return key


def public_of(blob: bytes) -> OwnerId:
    """The owner whose key is inside; raises ``KeyFileError`` for a damaged vault."""
    return _parse(blob).owner


def change_passphrase(blob: bytes, old: str, new: str, *, cost: Cost = DEFAULT_COST) -> bytes:
    """A new vault with the same key; raises as ``open_owner`` and ``seal_owner`` do.

    Copies of the old vault still open with the old passphrase.
    """
    return seal_owner(open_owner(blob, old), new, cost=cost)


def _parse(blob: bytes) -> _Vault:
    try:
        fields = decode(blob, VAULT_BYTES_MAX, items_max=16)
    except BadInput as exc:
        raise _damaged("not a vault") from exc
    match fields:
        case [str(kind), int(version), *_] if kind == _KIND and version > _VERSION:
            raise KeyFileError(f"the owner vault is of version {version}", hint="upgrade Roost")
        case [
            str(kind),
            int(version),
            bytes(owner),
            bytes(salt),
            int(ops),
            int(memory),
            bytes(box),
            bytes(check),
        ] if (kind, version) == (_KIND, _VERSION) and same(check, _check(fields[:-1])):
            pass
        case _:
            raise _damaged("not a vault")
    try:
        vault = _Vault(OwnerId(owner), salt, Cost(ops, memory), box)
    except RoostError as exc:
        raise _damaged(exc.message) from exc
    if len(salt) != SALT_BYTES or len(box) <= SEED_BYTES:
        raise _damaged("a field has the wrong size")
    return vault


def _check(fields: list[object]) -> bytes:
    return hash256(b"roost vault check", encode(fields))[:_CHECK_BYTES]


def _damaged(what: str) -> KeyFileError:
    return KeyFileError(f"the owner vault is damaged: {what}", hint=_DAMAGED_HINT)


def _bytes_of(passphrase: str) -> bytes:
    try:
        secret = unicodedata.normalize("NFC", passphrase).encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the passphrase is not valid text") from exc
    if len(secret) > PASSPHRASE_BYTES_MAX:
        raise UsageError(f"a passphrase has at most {PASSPHRASE_BYTES_MAX} bytes")
    return secret


def _stretched(secret: bytes, salt: bytes, cost: Cost) -> bytes:
    try:
        key: bytes = nacl.pwhash.argon2id.kdf(
            SEED_BYTES, secret, salt, opslimit=cost.ops, memlimit=cost.memory_bytes
        )
    except (nacl.exceptions.CryptoError, nacl.exceptions.RuntimeError, MemoryError) as exc:
        raise KeyFileError(
            f"this machine cannot spare the {cost.memory_bytes // 1024} KiB the owner vault needs"
        ) from exc
    return key
