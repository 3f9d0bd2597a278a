"""A network for this process and what it forks alone: loopback, and a cable with multicast."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys

CLONE_NEWNET = 0x40000000
CABLE = "cable0"
ADDRESS = "10.77.0.1/24"
SECOND = "10.77.0.2/24"


def ip(*words: str) -> None:
    """Run iproute2."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def enter() -> bool:
    """Leave the machine's network for one of our own; False where that cannot be done."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    with contextlib.suppress(subprocess.CalledProcessError):
        ip("link", "set", "lo", "up")
        ip("link", "add", CABLE, "type", "veth", "peer", "name", "cable1")
        ip("addr", "add", ADDRESS, "dev", CABLE)
        ip("link", "set", CABLE, "up")
        ip("link", "set", "cable1", "up")
        return True
    return False


def change_address() -> None:
    """Give the cable a second address, or take it: what a laptop that moves sees."""
    try:
        ip("addr", "add", SECOND, "dev", CABLE)
    except subprocess.CalledProcessError:
        ip("addr", "del", SECOND, "dev", CABLE)
