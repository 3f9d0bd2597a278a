"""Opening what somebody hands in: only plain files, bounded before they are read.

1. A link, a device, a pipe or a socket is refused, by what was opened and not by what was looked at
   before. Archives are refused: nothing is ever unpacked, so nothing can land anywhere.
2. Sizes are compared with their bound before a byte is read, and again while reading.
3. Nothing here writes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from keys.errors import UsageError
from node.jsontext import parse_json

WHOLE_BYTES_MAX: Final = 64 * 1024 * 1024  # of a file that is read whole
STREAM_BYTES_MAX: Final = 16 * 1024 * 1024 * 1024  # of a file that is read line by line
HEAD_BYTES: Final = 64 * 1024
SQLITE: Final = b"SQLite format 3\x00"
_PIECE_BYTES: Final = 1024 * 1024
# zip, gzip, bzip2, xz, zstd, 7z, rar
_ARCHIVES: Final = (
    b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c", b"Rar!",
)  # fmt: skip
_TAR: Final = (257, b"ustar")


@contextmanager
def plain_file(path: Path, bytes_max: int = STREAM_BYTES_MAX) -> Iterator[BinaryIO]:
    """The file of this name; raises ``UsageError`` for what is no plain file, or too large."""
    try:
        # Without O_NONBLOCK opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        link = path.is_symlink()
        reason = "it is a link" if link else exc.strerror
        raise UsageError(f"cannot read {path.name}: {reason}") from exc
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"cannot read {path.name}: it is no plain file")
        if about.st_size > bytes_max:
            raise UsageError(f"{path.name} is larger than {bytes_max} bytes")
        if is_archive(file.read(512)):
            raise UsageError(
                f"{path.name} is an archive", hint="unpack it yourself, then import what is in it"
            )
        file.seek(0)
        yield file


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so holds other files, or a compressed one."""
    place, word = _TAR
    return head.startswith(_ARCHIVES) or head[place : place + len(word)] == word


def read_bounded(file: BinaryIO, bytes_max: int) -> bytes:
    """All of a file; raises ``UsageError`` where it has grown past its bound."""
    parts, size = [], 0
    while part := file.read(_PIECE_BYTES):
        size += len(part)
        if size > bytes_max:
            raise UsageError(f"the file is larger than {bytes_max} bytes")
        parts.append(part)
    return b"".join(parts)


def read_json(path: Path, what: str) -> Any:
    """The one value of a JSON file of at most ``WHOLE_BYTES_MAX``; raises ``UsageError``."""
    with plain_file(path, WHOLE_BYTES_MAX) as file:
        data = read_bounded(file, WHOLE_BYTES_MAX)
    try:
        return parse_json(data.removeprefix(b"\xef\xbb\xbf"), halves=True)
    except ValueError as exc:
        raise UsageError(f"not {what}: {exc}") from exc
