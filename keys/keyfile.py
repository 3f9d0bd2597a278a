"""Files that hold secrets, and the one file that holds the device's key.

1. A secret file is a regular file of this account with mode 0600, in a directory with mode 0700.
   Anything wider is refused, with the command that repairs it.
2. A secret file appears whole or not at all, and creating one never replaces another.
3. Loading never creates. A second identity comes into being only through ``create_device_key``, and
   only where there is no file of that name, readable or not.

The device key file: the ASCII line ``roost device key 1`` with its newline (19 bytes), the 32-byte
Ed25519 seed, and the first 8 bytes of the BLAKE2b-256 of all that. So damage is noticed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from keys.durable import sync_directory
from keys.errors import KeyFileError
from keys.ids import hash256
from keys.limits import KEY_FILE_BYTES_MAX
from keys.signing import SEED_BYTES, DeviceKey, random_bytes, same

DEVICE_KEY_NAME: Final = "device.key"
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600

_MAGIC: Final = b"roost device key 1\n"
_CHECK_BYTES: Final = 8
_DEVICE_KEY_BYTES: Final = len(_MAGIC) + SEED_BYTES + _CHECK_BYTES
_OTHERS: Final = 0o077
_PARTIAL: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_RESTORE_HINT: Final = (
    "a new key would be a new device: restore the keys directory from a backup, "
    "or set up a new home with `roost init` and pair it"
)


def secure_directory(path: Path) -> None:
    """Make the directory ``path`` with mode 0700, or check that the one there is ours and closed.

    Its parent must exist. Raises ``KeyFileError``.
    """
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(DIRECTORY_MODE)
            path.chmod(DIRECTORY_MODE)
            sync_directory(path.parent)
    except OSError as exc:
        raise _failed("make", path, exc) from exc
    check_directory(path)


def check_directory(path: Path) -> None:
    """Raise ``KeyFileError`` unless ``path`` is a directory of this account with mode 0700."""
    try:
        found = path.lstat()
    except OSError as exc:
        raise _failed("read", path, exc) from exc
    if not stat.S_ISDIR(found.st_mode):
        raise KeyFileError(f"{path} is not a directory")
    _check_owner_and_mode(path, found, "700")


def create_secret(path: Path, data: bytes) -> None:
    """Write a new secret file, durably. Raises ``KeyFileError`` if anything has that name."""
    with _temporary(path, data) as temporary:
        _publish(os.link, temporary, path)


def replace_secret(path: Path, data: bytes) -> None:
    """Write a secret file, durably, in place of the one there; the old one stays until then."""
    with _temporary(path, data) as temporary:
        _publish(os.replace, temporary, path)


def remove_secret(path: Path) -> None:
    """Remove a secret file, durably; one that is not there is removed. Raises ``KeyFileError``."""
    try:
        path.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as exc:
        raise _failed("remove", path, exc) from exc


def remove_partial(keys_dir: Path) -> None:
    """Remove what a process that was killed left half written: it has secrets in it.

    Only for who holds the home alone. Raises ``KeyFileError``.
    """
    for left in keys_dir.iterdir():
        if _PARTIAL.fullmatch(left.name):
            remove_secret(left)


def read_secret(path: Path, size_max: int) -> bytes:
    """The 1 to ``size_max`` bytes of a secret file.

    Raises ``KeyFileError`` for a link, another account's file, a mode wider than 0600 or another
    size.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise _failed("read", path, exc) from exc
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise KeyFileError(f"{path} is not a regular file")
        _check_owner_and_mode(path, found, "600")
        if not 0 < found.st_size <= size_max:
            raise KeyFileError(f"{path} has {found.st_size} bytes, expected 1 to {size_max}")
        data = os.read(descriptor, size_max + 1)
    except OSError as exc:
        raise _failed("read", path, exc) from exc
    finally:
        os.close(descriptor)
    if len(data) != found.st_size:
        raise KeyFileError(f"{path} changed while it was read")
    return data


def load_device_key(keys_dir: Path) -> DeviceKey:
    """The key this device is known by.

    Raises ``KeyFileError`` when it is missing, unreadable, damaged or open to others: the key then
    exists elsewhere, and nothing here makes another in its place.
    """
    path = keys_dir / DEVICE_KEY_NAME
    check_directory(keys_dir)
    if not os.path.lexists(path):
        raise KeyFileError(f"this home's device key is missing: {path}", hint=_RESTORE_HINT)
    data = read_secret(path, KEY_FILE_BYTES_MAX)
    body, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    if (
        len(data) != _DEVICE_KEY_BYTES
        or not data.startswith(_MAGIC)
        or not same(check, hash256(body)[:_CHECK_BYTES])
    ):
        raise KeyFileError(f"the device key is damaged: {path}", hint=_RESTORE_HINT)
    return DeviceKey(body[len(_MAGIC) :])


def create_device_key(keys_dir: Path) -> DeviceKey:
    """A new device key, written to ``keys_dir`` (made if missing) and read back.

    Raises ``KeyFileError`` when anything has the key's name there.
    """
    secure_directory(keys_dir)
    create_secret(keys_dir / DEVICE_KEY_NAME, _encoded(random_bytes(SEED_BYTES)))
    return load_device_key(keys_dir)


def replace_device_key(keys_dir: Path, key: DeviceKey) -> None:
    """Put ``key`` in the place of the one in ``keys_dir``, which is gone then.

    Raises ``KeyFileError``; the old one is still there then.
    """
    replace_secret(keys_dir / DEVICE_KEY_NAME, _encoded(key.seed()))


def _encoded(seed: bytes) -> bytes:
    body = _MAGIC + seed
    return body + hash256(body)[:_CHECK_BYTES]


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    """A durable 0600 file beside ``path`` that is gone afterwards, unless it was renamed."""
    assert data, "a secret file is never empty"
    temporary = path.with_name(f".{path.name}.{random_bytes(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, FILE_MODE)
    except OSError as exc:
        raise _failed("write", path, exc) from exc
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, FILE_MODE)  # the umask may have narrowed it
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield temporary
    except OSError as exc:
        raise _failed("write", path, exc) from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _publish(place: Callable[[Path, Path], None], temporary: Path, path: Path) -> None:
    try:
        place(temporary, path)
        sync_directory(path.parent)
    except FileExistsError as exc:
        raise KeyFileError(
            f"{path} is already there",
            hint="it may be the only copy of a key",
        ) from exc


def _check_owner_and_mode(path: Path, found: os.stat_result, mode: str) -> None:
    if found.st_uid != os.geteuid():
        raise KeyFileError(
            f"{path} belongs to another account (uid {found.st_uid})",
            hint="run Roost as the account that owns it",
        )
    if found.st_mode & _OTHERS:
        raise KeyFileError(
            f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod {mode} {path}",
        )


def _failed(verb: str, path: Path, exc: OSError) -> KeyFileError:
    if exc.errno == errno.ELOOP:
        return KeyFileError(f"{path} is a link; a key file must be a file")
    return KeyFileError(f"cannot {verb} {path}: {exc.strerror or exc}")
