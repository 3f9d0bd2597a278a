"""The one door to Ed25519, sealed boxes and secretbox (PyNaCl).

Every signature is over ``domain || 0x00 || message``; each domain is a constant below and stands
for one kind of thing, so a signature of one kind never verifies as another (X-39). The one
exception is the signature inside a device's X.509 certificate, whose form is not ours: what it is
over begins with 0x30, which no domain does. libsodium refuses small-order keys. ``verify`` raises;
it never returns a verdict that could be dropped.
"""

from __future__ import annotations

import hmac
from typing import Final, Self

import nacl.bindings
import nacl.exceptions
import nacl.pwhash
import nacl.secret
import nacl.utils

from keys.errors import BadEncoding, BadSignature
from keys.ids import DeviceId, OwnerId
from keys.limits import KEY_BYTES, SIGNATURE_BYTES

ENTRY_DOMAIN: Final = b"roost entry v1"
STATEMENT_DOMAIN: Final = b"roost statement v1"
CERTIFICATE_DOMAIN: Final = b"roost device of owner v1"
ROTATION_DOMAIN: Final = b"roost key of owner v1"
PAIRING_DOMAIN: Final = b"roost pairing v1"
RECOVERY_DOMAIN: Final = b"roost recovery claim v1"
START_DOMAIN: Final = b"roost start v1"

SEED_BYTES: Final = 32


class SigningKey:
    """An Ed25519 private key. Its seed leaves only through ``seed()``, to a key file or a vault."""

    __slots__ = ("_secret", "_seed", "public")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise BadEncoding("an Ed25519 seed has 32 bytes")
        self._seed = bytes(seed)
        self.public, self._secret = nacl.bindings.crypto_sign_seed_keypair(self._seed)

    def __repr__(self) -> str:
        return f"<signing key of {self.public.hex()[:8]}>"

    @classmethod
    def generate(cls) -> Self:
        """A new random key."""
        return cls(random_bytes(SEED_BYTES))

    def seed(self) -> bytes:
        """The 32 secret bytes."""
        return self._seed

    def sign(self, domain: bytes, message: bytes) -> bytes:
        """The 64-byte signature of ``message`` under ``domain``."""
        signed: bytes = nacl.bindings.crypto_sign(domain + b"\0" + message, self._secret)
        return signed[:SIGNATURE_BYTES]

    def open_sealed(self, sealed: bytes) -> bytes:
        """The message sealed to this key by ``seal``; raises ``BadSignature`` if it is not."""
        public = nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(self.public)
        secret = nacl.bindings.crypto_sign_ed25519_sk_to_curve25519(self._secret)
        try:
            opened: bytes = nacl.bindings.crypto_box_seal_open(sealed, public, secret)
        except (nacl.exceptions.CryptoError, TypeError, ValueError) as exc:
            raise BadSignature("a sealed message that is not for this key") from exc
        return opened


class DeviceKey(SigningKey):
    """A device's key."""

    @property
    def device(self) -> DeviceId:
        """The device this key is the identity of."""
        return DeviceId(self.public)


class OwnerKey(SigningKey):
    """An owner's key; unlocked for one command and never kept in the node."""

    @property
    def owner(self) -> OwnerId:
        """The owner this key signs for."""
        return OwnerId(self.public)


def verify(public: bytes, domain: bytes, message: bytes, signature: bytes) -> None:
    """Raise ``BadSignature`` unless ``signature`` is of ``message`` under ``domain``."""
    _verify(public, domain + b"\0" + message, signature)


def verify_certificate(public: bytes, signed: bytes, signature: bytes) -> None:
    """Raise ``BadSignature`` unless ``signature`` is of the DER ``signed``, which has no domain."""
    assert signed[:1] == b"\x30", "only a DER sequence is signed without a domain"
    _verify(public, signed, signature)


def _verify(public: bytes, signed: bytes, signature: bytes) -> None:
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        raise BadSignature("a key or signature of the wrong size")
    try:
        nacl.bindings.crypto_sign_open(signature + signed, public)
    except (nacl.exceptions.BadSignatureError, ValueError) as exc:
        raise BadSignature("the signature does not verify") from exc


def seal(public: bytes, message: bytes) -> bytes:
    """``message`` readable only by the holder of the Ed25519 key ``public`` (anonymous box).

    Raises ``BadSignature`` when ``public`` is not a usable key.
    """
    try:
        curve = nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(public)
        sealed: bytes = nacl.bindings.crypto_box_seal(message, curve)
    except (nacl.exceptions.CryptoError, RuntimeError, TypeError, ValueError) as exc:
        raise BadSignature("not a usable Ed25519 key") from exc
    return sealed


def box_seal(key: bytes, count: int, message: bytes) -> bytes:
    """``message`` encrypted and authenticated under the 32-byte ``key`` as its ``count``-th use.

    One key must not be used twice with one ``count`` (0 .. 2**64 - 1).
    """
    sealed: bytes = nacl.bindings.crypto_secretbox(message, _nonce(count), key)
    return sealed


def box_open(key: bytes, count: int, box: bytes) -> bytes:
    """The message of ``box_seal(key, count, …)``; raises ``BadSignature`` for anything else."""
    try:
        opened: bytes = nacl.bindings.crypto_secretbox_open(box, _nonce(count), key)
    except (nacl.exceptions.CryptoError, TypeError, ValueError) as exc:
        raise BadSignature("a box that is not of this key and place") from exc
    return opened


def _nonce(count: int) -> bytes:
    return count.to_bytes(nacl.bindings.crypto_secretbox_NONCEBYTES, "big")


def random_bytes(size: int) -> bytes:
    """``size`` bytes from the operating system's generator."""
    return bytes(nacl.utils.random(size))


def same(left: bytes, right: bytes) -> bool:
    """Constant-time equality."""
    return hmac.compare_digest(left, right)
