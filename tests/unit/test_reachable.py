"""Where a listener says that it may be reached."""

import socket

import pytest

from keys.address import Address
from node.exchange import merged
from node.listen import open_listener
from node.reachable import plain_host, reachable_at


def test_a_listener_at_one_address_says_that_address() -> None:
    with open_listener("127.0.0.1:0", None) as listener:
        assert reachable_at(listener) == (Address("127.0.0.1", listener.getsockname()[1]),)


def test_a_listener_everywhere_says_no_wildcard_and_no_link_local_address() -> None:
    with open_listener(":0", None) as listener:
        found = reachable_at(listener)
    assert found
    assert not any(a.host in ("::", "0.0.0.0") or a.host.startswith("fe80") for a in found)
    assert len({a.port for a in found}) == 1


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
    ],
)
def test_an_ipv4_address_that_came_over_ipv6_is_ipv4(given: str, plain: str) -> None:
    assert plain_host(given) == plain


def test_what_is_told_now_replaces_earlier_ports_of_the_same_host_and_nothing_else() -> None:
    stored = ["192.0.2.1:1", "192.0.2.9:7667", "192.0.2.1:2"]
    assert merged(["192.0.2.1:3"], stored) == ["192.0.2.1:3", "192.0.2.9:7667"]


def test_no_more_addresses_are_kept_than_fit() -> None:
    told = [f"192.0.2.{i}:7667" for i in range(1, 13)]
    stored = [f"198.51.100.{i}:7667" for i in range(1, 13)]
    assert merged(told, stored) == [*told, *stored[:4]]


def test_the_family_of_the_listener_is_kept() -> None:
    with open_listener("127.0.0.1:0", None) as listener:
        assert listener.family == socket.AF_INET
