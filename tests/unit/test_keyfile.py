"""Secret files: whole or absent, closed to others, never a second identity by accident."""

import os
import stat
import threading
from pathlib import Path

import pytest

from keys import keyfile
from keys.errors import KeyFileError
from keys.keyfile import DEVICE_KEY_NAME


def key_path(keys_dir: Path) -> Path:
    """Where the device key of a keys directory is."""
    return keys_dir / DEVICE_KEY_NAME


@pytest.fixture
def keys_dir(tmp_path: Path) -> Path:
    """A keys directory with a device key in it."""
    path = tmp_path / "keys"
    keyfile.create_device_key(path)
    return path


def test_a_created_key_is_the_one_that_is_loaded(tmp_path: Path) -> None:
    """What was created is what comes back."""
    created = keyfile.create_device_key(tmp_path / "keys")
    assert keyfile.load_device_key(tmp_path / "keys").device == created.device


def test_a_key_and_its_directory_are_closed_to_others(keys_dir: Path) -> None:
    """The modes are 0700 and 0600 and nothing else is left behind."""
    assert stat.S_IMODE(keys_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(key_path(keys_dir).stat().st_mode) == 0o600
    assert os.listdir(keys_dir) == [DEVICE_KEY_NAME]


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_umask_does_not_change_the_modes(tmp_path: Path, umask: int) -> None:
    """A loose or absurd umask neither opens a key nor locks its owner out."""
    before = os.umask(umask)
    try:
        keyfile.create_device_key(tmp_path / "keys")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE(key_path(tmp_path / "keys").stat().st_mode) == 0o600


def test_a_second_key_is_refused(keys_dir: Path) -> None:
    """Creating where a key is keeps that key."""
    before = key_path(keys_dir).read_bytes()
    with pytest.raises(KeyFileError, match="already there"):
        keyfile.create_device_key(keys_dir)
    assert key_path(keys_dir).read_bytes() == before


def test_a_dangling_link_counts_as_a_key(keys_dir: Path) -> None:
    """A key on a medium that is not mounted is still a key that exists."""
    key_path(keys_dir).unlink()
    key_path(keys_dir).symlink_to(keys_dir / "elsewhere")
    with pytest.raises(KeyFileError, match="already there"):
        keyfile.create_device_key(keys_dir)
    assert os.listdir(keys_dir) == [DEVICE_KEY_NAME]


def test_of_two_creations_at_once_one_wins(tmp_path: Path) -> None:
    """The loser is told; the file holds the winner's key."""
    made, refused = [], []
    start = threading.Barrier(4)

    def create() -> None:
        start.wait()
        try:
            made.append(keyfile.create_device_key(tmp_path / "keys").device)
        except KeyFileError:
            refused.append(1)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 3)
    assert keyfile.load_device_key(tmp_path / "keys").device == made[0]


def test_a_missing_key_is_an_error_that_points_to_the_backup(keys_dir: Path) -> None:
    """Loading makes nothing."""
    key_path(keys_dir).unlink()
    with pytest.raises(KeyFileError, match="missing") as caught:
        keyfile.load_device_key(keys_dir)
    assert "backup" in str(caught.value.hint)
    assert os.listdir(keys_dir) == []


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    """An unmounted home is not an empty one."""
    with pytest.raises(KeyFileError, match="cannot read"):
        keyfile.load_device_key(tmp_path / "keys")
    with pytest.raises(KeyFileError, match="cannot make"):
        keyfile.create_device_key(tmp_path / "unmounted" / "keys")
    assert os.listdir(tmp_path) == []


def test_every_cut_and_every_damaged_byte_is_noticed(keys_dir: Path) -> None:
    """A key file is read whole and as written or not at all."""
    path = key_path(keys_dir)
    whole = path.read_bytes()
    damaged = [whole + b"\0", *(whole[:size] for size in range(len(whole)))]
    damaged += [whole[:i] + bytes([whole[i] ^ 16]) + whole[i + 1 :] for i in range(len(whole))]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(KeyFileError):
            keyfile.load_device_key(keys_dir)
    path.write_bytes(whole)
    keyfile.load_device_key(keys_dir)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601, 0o660, 0o644])
def test_a_key_that_others_can_reach_is_refused(keys_dir: Path, mode: int) -> None:
    """The error holds the command that repairs it, and that command does."""
    path = key_path(keys_dir)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match="open to others") as caught:
        keyfile.load_device_key(keys_dir)
    assert caught.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    keyfile.load_device_key(keys_dir)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_directory_that_others_can_reach_is_refused(keys_dir: Path, mode: int) -> None:
    """Others could put another key in the place of ours."""
    keys_dir.chmod(mode)
    with pytest.raises(KeyFileError) as caught:
        keyfile.load_device_key(keys_dir)
    assert caught.value.hint == f"chmod 700 {keys_dir}"
    with pytest.raises(KeyFileError):
        keyfile.create_device_key(keys_dir)
    keys_dir.chmod(0o700)
    keyfile.load_device_key(keys_dir)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_account_is_refused(keys_dir: Path) -> None:
    """A key that another account can replace is not ours."""
    os.chown(key_path(keys_dir), 12345, -1)
    with pytest.raises(KeyFileError, match="uid 12345"):
        keyfile.load_device_key(keys_dir)


def test_a_link_to_a_key_is_refused(keys_dir: Path, tmp_path: Path) -> None:
    """What a link points to can change under us."""
    moved = tmp_path / "moved"
    key_path(keys_dir).rename(moved)
    key_path(keys_dir).symlink_to(moved)
    with pytest.raises(KeyFileError, match="is a link"):
        keyfile.load_device_key(keys_dir)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """A pipe or a directory in a key's place is an error, not a hang."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "directory").mkdir(0o700)
    for name in ("pipe", "directory"):
        with pytest.raises(KeyFileError, match="not a regular file"):
            keyfile.read_secret(tmp_path / name, 10)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(KeyFileError, match="not a directory"):
        keyfile.secure_directory(tmp_path / "file")


def test_a_secret_has_one_byte_to_the_bound(tmp_path: Path) -> None:
    """Bound n is read, n + 1 and nothing are refused."""
    path = tmp_path / "secret"
    keyfile.create_secret(path, b"x" * 10)
    assert keyfile.read_secret(path, 10) == b"x" * 10
    with pytest.raises(KeyFileError, match="10 bytes"):
        keyfile.read_secret(path, 9)
    path.write_bytes(b"")
    with pytest.raises(KeyFileError, match="0 bytes"):
        keyfile.read_secret(path, 10)


def test_a_secret_can_be_replaced_whole(tmp_path: Path) -> None:
    """A replaced secret is the new one, closed, and nothing else is left."""
    path = tmp_path / "secret"
    keyfile.create_secret(path, b"old")
    keyfile.replace_secret(path, b"new")
    assert keyfile.read_secret(path, 10) == b"new"
    assert os.listdir(tmp_path) == ["secret"]


def test_a_failed_write_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up leaves the old secret and no half of the new one."""
    path = tmp_path / "secret"
    keyfile.create_secret(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match="No space left"):
        keyfile.replace_secret(path, b"new")
    with pytest.raises(KeyFileError, match="No space left"):
        keyfile.create_secret(tmp_path / "other", b"new")
    assert os.listdir(tmp_path) == ["secret"]
    assert path.read_bytes() == b"old"
