"""The owner's vault changes hands together with the owner in ``node.db``, wherever a crash falls.

1. The vault to come is written beside the one here, under the name of the owner it is of.
2. The database says who owns the home; that commit decides.
3. ``settle_vault``, after the commit and at each start: what is of that owner takes the place of
   the vault here, which is kept as ``….before``; what is of another one, whose commit never came,
   goes. It may be interrupted and run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from keys.ids import OwnerId
from keys.keyfile import create_secret, read_secret, remove_secret, replace_secret
from keys.limits import VAULT_BYTES_MAX

_COMING: Final = ".of-"
_BEFORE: Final = ".before"


def prepare_vault(path: Path, owner: OwnerId, vault: bytes) -> None:
    """Put the vault of ``owner`` beside ``path``, durably; raises ``KeyFileError``."""
    replace_secret(_coming(path, str(owner)), vault)


def settle_vault(path: Path, owner: str | None) -> None:
    """Bring the vault at ``path`` in line with the owner of the home (rule 3).

    None where the owner is not known: everything stays. Raises ``KeyFileError``.
    """
    if owner is None:
        return
    for coming in sorted(path.parent.glob(f"{path.name}{_COMING}*")):
        if coming == _coming(path, owner):
            _put(path, read_secret(coming, VAULT_BYTES_MAX))
        remove_secret(coming)


def _coming(path: Path, owner: str) -> Path:
    return path.with_name(f"{path.name}{_COMING}{owner}")


def _put(path: Path, vault: bytes) -> None:
    if not path.exists():
        create_secret(path, vault)
        return
    here = read_secret(path, VAULT_BYTES_MAX)
    if here != vault:  # or a crash came after this step
        _keep(path, here)
        replace_secret(path, vault)


def _keep(path: Path, vault: bytes) -> None:
    """A copy of ``vault`` under the first free name beside ``path``, if there is none yet."""
    aside = path.with_name(path.name + _BEFORE)
    number = 1
    while aside.exists():
        if read_secret(aside, VAULT_BYTES_MAX) == vault:
            return
        number += 1
        aside = path.with_name(f"{path.name}{_BEFORE}-{number}")
    create_secret(aside, vault)
