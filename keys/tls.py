"""Certificates made of device keys, and the TLS contexts that trust them.

1. A device's certificate is a function of its key: X.509 v3, Ed25519, self-signed, CA:FALSE, valid
   1970 to 9999. Issuer and subject hold the key in hex, so that no two devices share a name.
2. ``key_of_certificate`` accepts the bytes of rule 1 and nothing else. It parses no X.509: the key
   is at a fixed place, everything but the 64-byte signature must be what that key determines, and
   libsodium, which refuses small-order keys, verifies the signature.
3. TLS 1.3 only; no session tickets, no resumption, no authorities of the system.
4. A peer is trusted by its very certificate. CA:FALSE keeps out what a peer signs for others; a
   caller compares ``key_of_certificate(leaf)`` with the device it means all the same.
5. The private key reaches the TLS library through memory that has no name in any directory.

TLS 1.3 lets a client finish its handshake before the server has judged its certificate: whether a
client was let in is known on the server, or to the client when the first answer comes.
"""

from __future__ import annotations

import contextlib
import datetime
import mmap
import os
import ssl
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from keys.errors import BadEncoding, KeyFileError
from keys.ids import DeviceId
from keys.limits import CERTIFICATE_BYTES_MAX, KEY_BYTES, SIGNATURE_BYTES
from keys.signing import SEED_BYTES, DeviceKey, verify_certificate

_COMMON_NAME: Final = "roost"
_NOT_BEFORE: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NOT_AFTER: Final = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
_MARK: Final = b"\xa5" * KEY_BYTES
_OPTIONS: Final = ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION


def certificate_of(key: DeviceKey) -> bytes:
    """The DER of the certificate of ``key``: the same bytes for the same key, everywhere."""
    return _signed_by(_private(key), key.public).public_bytes(serialization.Encoding.DER)


def key_of_certificate(der: bytes) -> DeviceId:
    """The device whose certificate ``der`` is.

    Raises ``BadEncoding`` unless it has the form that ``certificate_of`` gives it, and
    ``BadSignature`` unless that device's key signed it.
    """
    if len(der) > CERTIFICATE_BYTES_MAX:
        raise BadEncoding(f"a certificate of {len(der)} bytes, over {CERTIFICATE_BYTES_MAX}")
    at = _key_position()
    public = der[at : at + KEY_BYTES]
    if len(public) != KEY_BYTES:
        raise BadEncoding("not a certificate of a Roost device")
    signed, start = _form(public)
    if der[:-SIGNATURE_BYTES] != start:
        raise BadEncoding("not a certificate of a Roost device")
    verify_certificate(public, signed, der[-SIGNATURE_BYTES:])
    return DeviceId(public)


def server_context(
    key: DeviceKey, peer_ders: Iterable[bytes], *, keys_dir: Path | None = None
) -> ssl.SSLContext:
    """For serving: the handshake fails for everybody but the holders of these certificates.

    ``keys_dir`` is where the private key passes through a file on systems without memory files.
    Raises ``BadInput`` for a certificate that is not a device's.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER, key, keys_dir)
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, peer_ders)
    return context


def client_context(
    key: DeviceKey, peer_der: bytes, *, keys_dir: Path | None = None
) -> ssl.SSLContext:
    """For calling one peer: the handshake fails unless its holder answers. Raises ``BadInput``."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, key, keys_dir)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, [peer_der])
    return context


def pairing_server_context(key: DeviceKey, *, keys_dir: Path | None = None) -> ssl.SSLContext:
    """For the pairing listener: shows our certificate and asks for none."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, key, keys_dir)
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_NONE
    return context


def pairing_client_context() -> ssl.SSLContext:
    """For joining: takes any certificate and shows none.

    Who answered is proven by the code alone: the caller hands the leaf's key to ``Joiner``.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT, None, None)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _context(protocol: int, key: DeviceKey | None, keys_dir: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= _OPTIONS
    if key is not None:
        with _readable_by_openssl(_pem_of(key), keys_dir) as path:
            context.load_cert_chain(path)
    return context


def _trust(context: ssl.SSLContext, ders: Iterable[bytes]) -> None:
    checked = []
    for der in ders:
        key_of_certificate(der)
        checked.append(der)
    if checked:
        context.load_verify_locations(cadata=b"".join(checked))


def _private(key: DeviceKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key.seed())


def _signed_by(signer: Ed25519PrivateKey, public: bytes) -> x509.Certificate:
    """The certificate of ``public``; only a signature by its own key makes it valid."""
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, _COMMON_NAME),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, public.hex()),
        ]
    )
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    purposes = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    )
    return (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, serial_number=1)
        .public_key(Ed25519PublicKey.from_public_bytes(public))
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(purposes, critical=False)
        .sign(signer, algorithm=None)
    )


def _form(public: bytes) -> tuple[bytes, bytes]:
    """What a certificate of ``public`` signs, and how its DER begins, up to its signature."""
    signed, start = _template()
    return _filled_in(signed, public), _filled_in(start, public)


def _filled_in(template: bytes, public: bytes) -> bytes:
    return template.replace(_MARK.hex().encode(), public.hex().encode()).replace(_MARK, public)


@cache
def _template() -> tuple[bytes, bytes]:
    """The two parts of ``_form`` with ``_MARK`` for the key; a key changes no length in them."""
    certificate = _signed_by(Ed25519PrivateKey.from_private_bytes(bytes(SEED_BYTES)), _MARK)
    der = certificate.public_bytes(serialization.Encoding.DER)
    return certificate.tbs_certificate_bytes, der[:-SIGNATURE_BYTES]


@cache
def _key_position() -> int:
    """Where the DER of every certificate has its 32 raw key bytes."""
    return _template()[1].index(_MARK)


def _pem_of(key: DeviceKey) -> bytes:
    """The private key and the certificate, as the TLS library wants them."""
    private = _private(key)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem + _signed_by(private, key.public).public_bytes(serialization.Encoding.PEM)


@contextlib.contextmanager
def _readable_by_openssl(pem: bytes, keys_dir: Path | None) -> Iterator[str]:
    """A path that holds ``pem`` for as long as this lasts: memory, or else a file in ``keys_dir``.

    ``ssl`` takes a key from a file only.
    """
    descriptor = _memory_file(pem)
    if descriptor is not None:
        try:
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    if keys_dir is None:
        raise KeyFileError("no memory files on this system, and no keys directory to use instead")
    try:
        with tempfile.NamedTemporaryFile(dir=keys_dir, prefix=".tls.") as file:  # mode 0600
            file.write(pem)
            file.flush()
            yield file.name
    except OSError as exc:
        raise KeyFileError(f"cannot write {keys_dir}: {exc.strerror or exc}") from exc


def _memory_file(data: bytes) -> int | None:
    """A descriptor of anonymous memory with ``data``; None where the system has no such thing."""
    if not hasattr(os, "memfd_create"):
        return None
    descriptor = os.memfd_create("roost", os.MFD_CLOEXEC)
    try:
        # Mapped rather than written, since a write call is taken for one that can block.
        os.ftruncate(descriptor, len(data))
        with mmap.mmap(descriptor, len(data)) as memory:
            memory[:] = data
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
