"""Where a node listens."""

import socket

import pytest

from keys.errors import UsageError
from node.listen import (
    AddressInUseError,
    address_of,
    is_loopback,
    join_host_port,
    open_listener,
    split_host_port,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7667", "127.0.0.1", 7667),
        ("[::1]:0", "::1", 0),
        ("node.local:65535", "node.local", 65535),
        (":7667", "", 7667),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    """Reading and writing are inverse."""
    assert split_host_port(text) == (host, port)
    assert join_host_port(host, port) == text


@pytest.mark.parametrize(
    "text", ["7667", "", "host", "host:", "host:x", "h:65536", "::1:7667", "h:-1"]
)
def test_anything_else_is_no_address(text: str) -> None:
    """The message says what one looks like."""
    with pytest.raises(UsageError, match=r"HOST:PORT|in brackets"):
        split_host_port(text)


def test_port_zero_is_last_times_port_while_it_is_free() -> None:
    """Else another free one."""
    with open_listener("127.0.0.1:0", None) as first:
        port = first.getsockname()[1]
        assert port
        with open_listener("127.0.0.1:0", port) as second:
            assert second.getsockname()[1] != port
    with open_listener("127.0.0.1:0", port) as again:
        assert again.getsockname()[1] == port


def test_a_named_port_is_taken_or_refused() -> None:
    """Nobody is moved to a port he did not name."""
    with open_listener("127.0.0.1:0", None) as taken:
        address = address_of(taken)
        with pytest.raises(AddressInUseError, match=address):
            open_listener(address, None)
    with open_listener(address, 1) as free:
        assert address_of(free) == address


def test_without_an_address_every_interface_is_served() -> None:
    """At last time's port, over IPv4 too."""
    with open_listener("127.0.0.1:0", None) as probe:
        port = probe.getsockname()[1]
    with open_listener(None, port) as listener:
        assert listener.getsockname()[1] == port
        with socket.create_connection(("127.0.0.1", port), 5):
            pass
        with open_listener(None, port) as other:
            assert other.getsockname()[1] != port


def test_a_host_that_is_not_here_is_named() -> None:
    """It is a wrong argument, not a busy port."""
    with pytest.raises(UsageError, match=r"cannot listen at 192\.0\.2\.1"):
        open_listener("192.0.2.1:0", None)


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("127.0.0.1.evil", False),
        ("10.0.0.1", False),
    ],
)
def test_loopback_is_this_machine_and_nothing_else(host: str, is_it: bool) -> None:
    """Names that merely look like it are not."""
    assert is_loopback(host) is is_it
