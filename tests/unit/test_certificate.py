"""A device's certificate: one form, a function of the key, and no other form is taken for it."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from keys import tls
from keys.errors import BadEncoding, BadInput, BadSignature
from keys.limits import CERTIFICATE_BYTES_MAX
from keys.signing import DeviceKey

KEY = DeviceKey(bytes(range(32)))
DER = tls.certificate_of(KEY)
UTC = datetime.UTC


def other_certificate(
    *,
    signer: Ed25519PrivateKey | ec.EllipticCurvePrivateKey | None = None,
    public: Ed25519PublicKey | ec.EllipticCurvePublicKey | None = None,
    ca: bool = False,
    serial: int = 1,
    last_day: datetime.datetime = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    more: bool = False,
) -> bytes:
    """A self-signed certificate of ``KEY`` but for what the arguments say."""
    own = Ed25519PrivateKey.from_private_bytes(KEY.seed())
    name = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.COMMON_NAME, "roost"),
            x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, KEY.public.hex()),
        ]
    )
    original = x509.load_der_x509_certificate(DER)
    builder = (
        x509.CertificateBuilder(name, name, public or own.public_key(), serial)
        .not_valid_before(datetime.datetime(1970, 1, 1, tzinfo=UTC))
        .not_valid_after(last_day)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    for extension in list(original.extensions)[1:]:
        builder = builder.add_extension(extension.value, extension.critical)
    if more:
        builder = builder.add_extension(x509.OCSPNoCheck(), critical=False)
    algorithm = hashes.SHA256() if isinstance(signer, ec.EllipticCurvePrivateKey) else None
    made = builder.sign(signer or own, algorithm)
    return made.public_bytes(serialization.Encoding.DER)


def test_the_certificate_of_a_key_never_changes() -> None:
    """A peer that stored it years ago still knows the device by it."""
    assert tls.certificate_of(KEY) == DER
    assert other_certificate() == DER
    assert DER[-64:].hex().startswith("8c24cfd792be49bf")


@given(st.binary(min_size=32, max_size=32))
def test_the_key_comes_back(seed: bytes) -> None:
    """Making and reading are inverse for every key."""
    key = DeviceKey(seed)
    assert tls.key_of_certificate(tls.certificate_of(key)) == key.device


def test_what_it_says() -> None:
    """Ed25519, no authority, valid for all dates, and a name that no other device has."""
    made = x509.load_der_x509_certificate(DER)
    assert made.not_valid_before_utc == datetime.datetime(1970, 1, 1, tzinfo=UTC)
    assert made.not_valid_after_utc == datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert made.subject == made.issuer
    assert made.subject.rfc4514_string() == f"2.5.4.5={KEY.public.hex()},CN=roost"
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca) == (True, False)
    made.verify_directly_issued_by(made)


def test_the_device_has_no_part_in_the_bytes_but_its_key_and_signature() -> None:
    """Nothing about a person or a machine is in it."""
    other = DeviceKey.generate()
    theirs = tls.certificate_of(other)
    assert theirs[:-64] == DER[:-64].replace(KEY.public, other.public).replace(
        KEY.public.hex().encode(), other.public.hex().encode()
    )


@pytest.mark.parametrize(
    "der",
    [
        other_certificate(ca=True),
        other_certificate(serial=2),
        other_certificate(last_day=datetime.datetime(2099, 1, 1, tzinfo=UTC)),
        other_certificate(more=True),
        other_certificate(signer=ec.generate_private_key(ec.SECP256R1())),
        other_certificate(public=ec.generate_private_key(ec.SECP256R1()).public_key()),
        other_certificate(public=Ed25519PrivateKey.generate().public_key()),
    ],
    ids=["authority", "serial", "dates", "extension", "signed by EC", "EC key", "name of another"],
)
def test_a_certificate_of_another_form_is_refused(der: bytes) -> None:
    """Whatever a certificate may say elsewhere, here it says one thing."""
    x509.load_der_x509_certificate(der)
    with pytest.raises(BadInput):
        tls.key_of_certificate(der)


def test_a_certificate_signed_by_another_key_is_refused() -> None:
    """What a device signs for another key, or another for it, is no certificate."""
    with pytest.raises(BadSignature):
        tls.key_of_certificate(other_certificate(signer=Ed25519PrivateKey.generate()))


@pytest.mark.parametrize(
    "small", [bytes([1]) + bytes(31), bytes(32), b"\xec" + b"\xff" * 30 + b"\x7f"]
)
def test_a_key_of_small_order_is_refused(small: bytes) -> None:
    """For such keys one signature fits every message."""
    forged = DER.replace(KEY.public, small).replace(KEY.public.hex().encode(), small.hex().encode())
    with pytest.raises(BadSignature):
        tls.key_of_certificate(forged[:-64] + small + bytes(32))
    with pytest.raises(BadSignature):
        tls.key_of_certificate(forged[:-64] + bytes([1]) + bytes(63))


def test_every_cut_and_every_changed_bit_is_refused() -> None:
    """No byte of a certificate is without meaning."""
    for size in range(len(DER)):
        with pytest.raises(BadInput):
            tls.key_of_certificate(DER[:size])
    for at in range(len(DER)):
        for bit in (1, 128):
            with pytest.raises(BadInput):
                tls.key_of_certificate(DER[:at] + bytes([DER[at] ^ bit]) + DER[at + 1 :])
    with pytest.raises(BadInput):
        tls.key_of_certificate(DER + b"\0")
    tls.key_of_certificate(DER)


@given(st.binary(max_size=CERTIFICATE_BYTES_MAX + 1))
def test_other_bytes_raise_bad_input_and_nothing_else(data: bytes) -> None:
    """Whatever arrives, one class of error leaves."""
    with pytest.raises(BadInput):
        tls.key_of_certificate(data)


def test_a_certificate_over_the_bound_is_not_looked_at() -> None:
    """The size decides before anything else."""
    with pytest.raises(BadEncoding, match="1025 bytes"):
        tls.key_of_certificate(DER + bytes(CERTIFICATE_BYTES_MAX + 1 - len(DER)))
