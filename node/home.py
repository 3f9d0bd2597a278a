"""The data directory: what may be one, where things are in it.

1. Only ``make_home`` makes one, with mode 0700. Opening makes nothing.
2. A home is a directory of this account that nobody else can enter; it is not a link (X-98).
3. SQLite's write-ahead log and our lock need one machine's local disk: a network file system or a
   folder that a cloud client copies is refused with the reason (S-G5). ``ROOST_FORCE_HOME=1``
   lifts this rule alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keys.durable import sync_directory
from keys.errors import NotFoundError, RefusedError, StoreError
from memory.mounts import MOUNTS, mount_of
from node.paths import resolve_home

FORCE_VARIABLE: Final = "ROOST_FORCE_HOME"
HOME_MODE: Final = 0o700

_OTHERS: Final = 0o077
_NAMES: Final = ("agents", "incarnation", "journal.log", "keys", "lock", "node.", "reserve")
_INIT_HINT: Final = "roost init --name NAME"
_MOVE_HINT: Final = f"use a folder on a local disk, or set {FORCE_VARIABLE}=1 if you know better"
_REMOTE_TYPES: Final = re.compile(
    r"nfs4?|cifs|smb\w*|ncpfs|afs|9p|vboxsf|ceph|glusterfs|davfs|"
    r"fuse\.(sshfs|rclone|s3fs|glusterfs|gvfsd-fuse|davfs2?|onedriver|google-drive-ocamlfuse)"
)
# What a synchronising client leaves in the folder that it copies.
_CLOUD_FILES: Final = {
    ".dropbox.cache": "Dropbox",
    ".stfolder": "Syncthing",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
    ".tmp.drivedownload": "Google Drive",
}
_CLOUD_NAMES: Final = re.compile(
    r"(?P<name>Dropbox|OneDrive|iCloud|com~apple~CloudDocs|Mobile Documents|Google ?Drive)"
    r"($| .*|Drive)"
)


@dataclass(frozen=True, slots=True)
class Home:
    """A data directory, by its absolute path."""

    path: Path

    @property
    def keys_dir(self) -> Path:
        """Private keys; 0700."""
        return self.path / "keys"

    @property
    def vault_path(self) -> Path:
        """The owner's key under the passphrase."""
        return self.keys_dir / "owner.vault"

    @property
    def agents_dir(self) -> Path:
        """One database per agent."""
        return self.path / "agents"

    @property
    def database_path(self) -> Path:
        """Peers, pairing and this node's settings."""
        return self.path / "node.db"

    @property
    def marker_path(self) -> Path:
        """The incarnation marker (R38)."""
        return self.path / "incarnation"

    @property
    def lock_path(self) -> Path:
        """Locked by the one process that holds the home."""
        return self.path / "lock"

    @property
    def reserve_path(self) -> Path:
        """Room that is kept for erasing and closing on a full disk."""
        return self.path / "reserve"

    @property
    def journal_path(self) -> Path:
        """What a node in the background says about itself."""
        return self.path / "journal.log"


def open_home(path: Path, environ: Mapping[str, str] = os.environ) -> Home:
    """The home at ``path``, after ``roost init`` made it.

    Raises ``NotFoundError`` when there is none, ``RefusedError`` when it is not safe to use.
    """
    home = Home(_absolute(path))
    if not os.path.lexists(home.path):
        raise NotFoundError(f"there is no home at {home.path}", hint=_INIT_HINT)
    check_directory(home.path)
    check_place(home.path, environ)
    if not home.database_path.exists():
        raise NotFoundError(f"{home.path} is not set up", hint=_INIT_HINT)
    return home


def make_home(path: Path, environ: Mapping[str, str] = os.environ) -> Home:
    """The home at ``path``: made, or a directory of this account with nothing foreign in it.

    Raises ``RefusedError`` where a home must not be, ``StoreError`` when it cannot be made.
    """
    home = Home(_absolute(path))
    check_place(home.path, environ)
    try:
        made = [home.path, *(p for p in home.path.parents if not p.exists())]
        home.path.parent.mkdir(parents=True, exist_ok=True)
        home.path.mkdir(HOME_MODE, exist_ok=True)
        for path in reversed(made):  # an init that was cut off may have made it, and not synced it
            with contextlib.suppress(PermissionError):
                sync_directory(path.parent)
        if home.path.is_dir() and not home.path.is_symlink():
            names = os.listdir(home.path)
            if not all(name.startswith(_NAMES) for name in names):
                raise RefusedError(
                    f"{home.path} holds other files", hint="name a directory of its own for Roost"
                )
            if not names and home.path.stat().st_uid == os.geteuid():
                home.path.chmod(HOME_MODE)
    except OSError as exc:
        raise StoreError(f"cannot make {home.path}: {exc.strerror or exc}") from exc
    check_directory(home.path)
    return home


def check_directory(path: Path) -> None:
    """Raise ``RefusedError`` unless ``path`` is rule 2's directory."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise RefusedError(
            f"{path} is a link", hint=f"name the directory itself: --home {path.resolve()}"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"{path} is not a directory")
    if found.st_uid != os.geteuid():
        raise RefusedError(
            f"{path} belongs to another account (uid {found.st_uid})",
            hint="run Roost as the account that owns it",
        )
    if found.st_mode & _OTHERS:
        raise RefusedError(
            f"{path} is open to others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod 700 {path}",
        )


def check_place(path: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Raise ``RefusedError`` for a place that rule 3 forbids."""
    if environ.get(FORCE_VARIABLE) == "1":
        return
    whole = path.resolve()
    kind = file_system(whole)
    if _REMOTE_TYPES.fullmatch(kind):
        raise RefusedError(
            f"{path} is on a network file system ({kind}): a database there gets damaged",
            hint=_MOVE_HINT,
        )
    for folder in (whole, *whole.parents):
        client = _cloud_client(folder, environ)
        if client:
            raise RefusedError(
                f"{path} is in a folder that {client} copies ({folder}): a database copied while "
                "it is written gets damaged",
                hint=_MOVE_HINT,
            )


def file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system that ``path`` is or would be on; empty where unknown."""
    return mount_of(path, mounts).kind


def _cloud_client(folder: Path, environ: Mapping[str, str]) -> str:
    """The client that copies ``folder`` by what it is called or holds; empty for none."""
    named = _CLOUD_NAMES.fullmatch(folder.name)
    if named:
        return named["name"]
    for name, client in _CLOUD_FILES.items():
        if os.path.lexists(folder / name):
            return client
    # In the account's own directory `.dropbox` is the client's configuration.
    if folder != Path(environ.get("HOME", "")) and os.path.lexists(folder / ".dropbox"):
        return "Dropbox"
    return ""


def _absolute(path: Path) -> Path:
    return resolve_home(os.fspath(path))
