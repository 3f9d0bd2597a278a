"""Where a home is, and where its local socket is. Standard library only: every command reads this.

1. A home is ``--home``, else ``$ROOST_HOME``, else ``$XDG_DATA_HOME/roost``, else
   ``~/.local/share/roost``; always an absolute path. Links on the way to it are followed, so that
   one directory has one socket; the home itself must not be one, which is for its user to refuse.
2. The socket is ``node.sock`` in the home where that fits into a socket address, else a name made
   of the home's path in the account's runtime directory.
3. A socket is trusted only when whoever owns the home owns it: a passphrase goes through it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOCKET_NAME: Final = "node.sock"
SOCKET_PATH_BYTES_MAX: Final = 100  # a socket address holds 104 (macOS) or 108 (Linux)
_HASH_BYTES: Final = 6


def resolve_home(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The home that a command is about, whether or not anything is there yet."""
    chosen = option or environ.get("ROOST_HOME")
    if chosen:
        return _absolute(Path(chosen).expanduser())
    data = environ.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return _absolute(base / "roost")


def socket_path(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the node of this home listens for commands."""
    return socket_candidates(home, environ)[0]


def socket_candidates(home: Path, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Every place where the socket can be, likeliest first.

    More than one only for a long path: a service has no ``$XDG_RUNTIME_DIR``, a terminal has.
    """
    inside = _absolute(home) / SOCKET_NAME
    if len(os.fsencode(inside)) <= SOCKET_PATH_BYTES_MAX:
        return [inside]
    from hashlib import blake2b  # seldom needed, and slow to load

    name = blake2b(os.fsencode(_absolute(home)), digest_size=_HASH_BYTES).hexdigest()
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    found = [Path(runtime) / f"roost-{name}.sock"] if os.path.isabs(runtime) else []
    found.append(Path("/tmp") / f"roost-{os.getuid()}" / f"{name}.sock")  # noqa: S108 - see rule 3
    return [path for path in found if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX]


def is_trusted_socket(path: Path, home: Path) -> bool:
    """Whether this is a socket, not a link to one, and belongs to the owner of the home."""
    try:
        found = path.lstat()
        return stat.S_ISSOCK(found.st_mode) and found.st_uid == home.stat().st_uid
    except OSError:
        return False


def _absolute(path: Path) -> Path:
    whole = os.path.abspath(path)
    return Path(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
