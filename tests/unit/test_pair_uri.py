"""Pairing links: what is shown as a QR code is read back, and nothing else is."""

import pytest
import segno

from keys.address import Address
from keys.errors import PairingError, RoostError, UsageError
from keys.limits import ADDRESSES_MAX, PAIR_URI_BYTES_MAX
from keys.pair_code import new_code, pick_digits
from keys.pair_uri import PairLink, pair_uri, parse_pair_uri
from keys.signing import DeviceKey

DEVICE = DeviceKey(bytes([1]) * 32).device
CODE = pick_digits(DEVICE) + "0042"
ADDRESSES = tuple(
    map(Address.parse, ["192.168.1.2:7668", "[fe80::1%eth0]:7668", "desk.local:7668"])
)
URI = pair_uri(DEVICE, ADDRESSES, CODE)


def test_a_link_says_device_addresses_and_code() -> None:
    """Writing and reading are inverse; the addresses keep their order."""
    assert (
        f"roost://pair?d={DEVICE}&a=192.168.1.2:7668&a=%5Bfe80::1%25eth0%5D:7668&a=desk.local:7668"
        f"&c={CODE}" == URI
    )
    assert parse_pair_uri(URI) == PairLink(DEVICE, ADDRESSES, CODE)
    assert parse_pair_uri(f" {URI}\n").code == CODE
    assert parse_pair_uri(pair_uri(DEVICE, [], CODE)).addresses == ()


def test_a_link_fits_into_a_qr_code() -> None:
    """However many and long the addresses are: what does not fit is left out, from the end."""
    many = [Address(f"host-{n}.example", 7668) for n in range(ADDRESSES_MAX + 1)]
    assert parse_pair_uri(pair_uri(DEVICE, many, CODE)).addresses == tuple(many[:ADDRESSES_MAX])
    long = [Address(f"{n}." + ".".join(["a" * 60] * 4), 7668) for n in range(ADDRESSES_MAX)]
    uri = pair_uri(DEVICE, long, CODE)
    found = parse_pair_uri(uri).addresses
    assert found == tuple(long[: len(found)])
    assert 1 < len(found) < ADDRESSES_MAX
    assert PAIR_URI_BYTES_MAX - 300 < len(uri) <= PAIR_URI_BYTES_MAX
    segno.make_qr(uri)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "roost://pair",
        "roost://pair?",
        URI.replace("roost:", "http:"),
        URI.replace("pair?", "pair/?"),
        URI.replace(f"d={DEVICE}&", ""),
        URI.replace(f"&c={CODE}", ""),
        URI + f"&c={CODE}",
        URI + "&x=1",
        URI + "&",
        f"roost://pair?c={CODE}&d={DEVICE}",
        URI.replace("a=desk", "A=desk"),
        URI.replace("desk.local", "desk local"),
        URI.replace("desk.local", "desk+local"),
        URI.replace("desk.local", "d\u00e9sk"),
        URI.replace("desk.local", "d%C3%A9sk"),
        URI.replace("desk.local", "%FF"),
        URI.replace("desk.local:7668", "desk.local"),
        URI.replace(str(DEVICE), str(DEVICE)[:-1]),
        URI.replace(CODE, CODE[:-1]),
        URI.replace("&a=desk.local:7668", "&a=desk.local:7668" * (ADDRESSES_MAX - 1)),
        URI + "0" * PAIR_URI_BYTES_MAX,
    ],
)
def test_what_is_no_link_is_a_usage_error(text: str) -> None:
    """Nothing is guessed from a link that was cut or changed."""
    assert text != URI
    with pytest.raises(UsageError):
        parse_pair_uri(text)


def test_a_link_whose_code_is_of_another_device_is_refused() -> None:
    """Somebody put two links together."""
    other = next(
        device
        for device in (DeviceKey(bytes([n]) * 32).device for n in range(2, 20))
        if pick_digits(device) != pick_digits(DEVICE)
    )
    with pytest.raises(PairingError):
        parse_pair_uri(URI.replace(CODE, new_code(other)))


def test_every_changed_character_is_noticed_in_the_device_or_changes_what_is_read() -> None:
    """No character of a link is without meaning."""
    for at, char in enumerate(URI):
        changed = URI[:at] + ("0" if char != "0" else "1") + URI[at + 1 :]
        try:
            assert parse_pair_uri(changed) != parse_pair_uri(URI)
        except RoostError:
            continue
