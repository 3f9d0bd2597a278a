"""The link and QR form of an open pairing: ``roost://pair?d=…&a=…&a=…&c=…``.

``d`` is the device's id in its text form, each ``a`` an address of its pairing listener (up to 16),
``c`` the code; in this order, each but ``a`` exactly once, nothing else. The characters ``[ ] %``
of IPv6 addresses are percent-encoded. At most 2,048 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from keys.address import Address
from keys.errors import UsageError
from keys.ids import DeviceId
from keys.limits import ADDRESSES_MAX, PAIR_URI_BYTES_MAX
from keys.pair_code import check_picks, parse_code

PREFIX: Final = "roost://pair?"


@dataclass(frozen=True, slots=True)
class PairLink:
    """What a pairing link says."""

    device: DeviceId
    addresses: tuple[Address, ...]
    code: str


def pair_uri(device: DeviceId, addresses: Sequence[Address], code: str) -> str:
    """The link; addresses over the bounds are left out, the last ones first."""
    for count in range(min(len(addresses), ADDRESSES_MAX), -1, -1):
        shown = [f"a={quote(str(address), safe=':')}" for address in addresses[:count]]
        uri = PREFIX + "&".join([f"d={device}", *shown, f"c={code}"])
        if len(uri) <= PAIR_URI_BYTES_MAX:
            return uri
    raise AssertionError("a link without addresses fits")


def parse_pair_uri(text: str) -> PairLink:
    """Read a link; raises ``UsageError``, or ``PairingError`` if the code is of another device."""
    text = text.strip()
    if len(text) > PAIR_URI_BYTES_MAX or not text.isascii() or not text.startswith(PREFIX):
        raise UsageError(f"a pairing link begins with {PREFIX}")
    fields = [part.partition("=")[::2] for part in text.removeprefix(PREFIX).split("&")]
    names = [name for name, _ in fields]
    values = [unquote(value, errors="replace") for _, value in fields]
    inner = len(fields) - 2
    if not 0 <= inner <= ADDRESSES_MAX or names != ["d", *["a"] * inner, "c"]:
        raise UsageError(f"a pairing link has one d, up to {ADDRESSES_MAX} a, one c, in this order")
    addresses = tuple(Address.parse(value) for value in values[1:-1])
    link = PairLink(DeviceId.parse(values[0]), addresses, parse_code(values[-1]))
    check_picks(link.code, link.device)
    return link
