"""Addresses: one form, strictly read."""

import pytest

from keys.address import Address
from keys.errors import UsageError
from keys.limits import ADDRESS_BYTES_MAX

LABEL = "a" * 63
LONGEST = ".".join([LABEL, LABEL, LABEL, "a" * 61])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.168.1.2:7667", "192.168.1.2", 7667),
        ("kitchen.local:1", "kitchen.local", 1),
        ("my_box-2:65535", "my_box-2", 65535),
        ("[fe80::1%eth0]:7667", "fe80::1%eth0", 7667),
        ("[2001:db8::1]:7667", "2001:db8::1", 7667),
        (f"{LONGEST}:7667", LONGEST, 7667),
    ],
)
def test_what_is_read_is_written_the_same(text: str, host: str, port: int) -> None:
    """Reading and writing are inverse."""
    found = Address.parse(text)
    assert (found.host, found.port, str(found)) == (host, port, text)


@pytest.mark.parametrize(
    ("typed", "form"),
    [("Kitchen.Local:7667", "kitchen.local:7667"), ("[2001:DB8:0:0::1]:80", "[2001:db8::1]:80")],
)
def test_other_spellings_get_the_one_form(typed: str, form: str) -> None:
    """Two spellings of one address are equal."""
    assert str(Address.parse(typed)) == form


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "host",
        "host:",
        ":7667",
        "host:0",
        "host:65536",
        "host:07667",
        "host:+1",
        "host:7667 ",
        "host:\u0667",
        "ho st:1",
        "h\u00f6st:1",
        "-host:1",
        "host-:1",
        "a..b:1",
        "1.2.3:1",
        "1.2.3.256:1",
        "01.2.3.4:1",
        "::1:7667",
        "[::1]",
        "[::1:7667",
        "[1.2.3.4]:1",
        "[fe80::1%]:1",
        "[fe80::1%a/b]:1",
        "user@host:1",
        "http://host:1",
        f"{LABEL}a:1",
        f"{LONGEST}a:1",
        "a" * ADDRESS_BYTES_MAX + ":1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """Nothing is guessed."""
    Address.parse("host:1")
    with pytest.raises(UsageError):
        Address.parse(text)
