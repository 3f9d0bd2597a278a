"""A process whose writing system calls are counted one by one, and which dies at one of them.

The kernel tells a supervisor of each call before it is made (seccomp's user notification), of all
threads in one order, which strace's counters, one for each thread, do not give. A call goes on, or
the process is killed in its place.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import select
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

# Their first argument is a file; those that are given a path count wherever it leads.
_BY_FILE: Final = ("write", "writev", "pwrite64", "pwritev", "ftruncate", "fallocate")
_SYNCS: Final = ("fsync", "fdatasync")
_CALLS: Final = {
    "x86_64": {
        "seccomp": 317,
        "write": 1,
        "writev": 20,
        "pwrite64": 18,
        "pwritev": 296,
        "ftruncate": 77,
        "fallocate": 285,
        "fsync": 74,
        "fdatasync": 75,
        "rename": 82,
        "link": 86,
        "mkdir": 83,
        "unlink": 87,
        "mkdirat": 258,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "renameat2": 316,
    },
    "aarch64": {
        "seccomp": 277,
        "write": 64,
        "writev": 66,
        "pwrite64": 68,
        "pwritev": 70,
        "ftruncate": 46,
        "fallocate": 47,
        "fsync": 82,
        "fdatasync": 83,
        "mkdirat": 34,
        "unlinkat": 35,
        "linkat": 37,
        "renameat": 38,
        "renameat2": 276,
    },
}
_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 8
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_GO_ON: Final = 1
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
# id, thread, flags, number, machine, address, arguments
_NOTICE: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_NO_NEW_PRIVILEGES: Final = 38
_WORDS: Final = 3  # target, count, dead
_PAGE: Final = 4096


class _Step(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Step)))


class Watch:
    """The calls of one process that change files below ``home``, while it is armed."""

    def __init__(self, home: Path) -> None:
        self._home = f"{home}/"
        self._memory = mmap.mmap(-1, _PAGE)  # shared with the supervisor
        self._words = memoryview(self._memory)[: 8 * _WORDS].cast("Q")
        self._supervisor = 0

    def begin(self) -> Callable[[], None]:
        """Start the supervisor; what the watched process is to call first."""
        ours, theirs = socket.socketpair()
        self._words[2] = 0
        self._supervisor = os.fork()
        if not self._supervisor:
            try:
                theirs.close()
                self._supervise(ours)
            finally:
                os._exit(0)
        ours.close()

        def join() -> None:
            with theirs:
                listener = _listen(_table())
                socket.send_fds(theirs, [struct.pack("=Q", os.getpid())], [listener])
                os.close(listener)

        self._handed = theirs
        return join

    def handed(self) -> None:
        """The watched process has its end of the socket, or will never take it."""
        self._handed.close()

    def end(self) -> None:
        """The watched process is gone; so is the supervisor."""
        if self._supervisor:
            os.waitpid(self._supervisor, 0)
            self._supervisor = 0

    def arm(self, target: int = 0) -> None:
        """Count from now on, and die at the call of that number (1 is the first; 0: never)."""
        self._words[1] = 0
        self._words[0] = target or (1 << 63)

    def disarm(self) -> int:
        """Count no more; how many calls there were."""
        self._words[0] = 0
        return int(self._words[1])

    @property
    def dead(self) -> str:
        """At which call it was killed; empty while it lives."""
        if not self._words[2]:
            return ""
        return bytes(self._memory[8 * _WORDS :]).rstrip(b"\0").decode()

    def _supervise(self, ours: socket.socket) -> None:
        said, (listener,), _, _ = socket.recv_fds(ours, 8, 1)
        (pid,) = struct.unpack("=Q", said)
        names = {number: name for name, number in _table().items()}
        told = select.poll()
        told.register(listener, select.POLLIN)
        while not told.poll()[0][1] & select.POLLHUP:
            notice = bytearray(_NOTICE.size)
            with suppress(OSError):  # a thread that ended meanwhile
                fcntl.ioctl(listener, _RECEIVE, notice)
                number, thread, _, call, _, _, *arguments = _NOTICE.unpack(notice)
                self._met(pid, thread, names[call], arguments[0])
                fcntl.ioctl(listener, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _GO_ON)))

    def _met(self, pid: int, thread: int, name: str, argument: int) -> None:
        if not self._words[0]:
            return
        path = ""
        if name in (*_BY_FILE, *_SYNCS):
            path = os.readlink(f"/proc/{thread}/fd/{argument & 0xFFFFFFFF}")
            if not path.startswith(self._home):
                return
        self._words[1] += 1
        if self._words[1] == self._words[0]:
            where = f"{name} {path.removeprefix(self._home)}".encode()[: _PAGE - 8 * _WORDS]
            self._memory[8 * _WORDS :] = where.ljust(_PAGE - 8 * _WORDS, b"\0")
            self._words[2] = pid
            os.kill(pid, signal.SIGKILL)


def is_possible() -> bool:
    """Whether this machine's kernel tells of calls, to a process like this one."""
    if platform.system() != "Linux" or platform.machine() not in _CALLS:
        return False
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(_listen(_table()))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _table() -> dict[str, int]:
    table = dict(_CALLS[platform.machine()])
    del table["seccomp"]
    return table


def _listen(table: dict[str, int]) -> int:
    """From now on the kernel tells of these calls of ours, to who reads the descriptor."""
    numbers = sorted(table.values())
    steps = [
        _Step(0x20, 0, 0, 0),  # load the call's number
        *(_Step(0x15, len(numbers) - i, 0, n) for i, n in enumerate(numbers)),  # equal: the last
        _Step(0x06, 0, 0, _ALLOW),
        _Step(0x06, 0, 0, _NOTIFY),
    ]
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    call = _CALLS[platform.machine()]["seccomp"]
    listener = libc.syscall(call, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(listener)
