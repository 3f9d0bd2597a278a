"""``roost init``: a home with a device, an owner, and a way back.

1. A home is set up when its ``node.db`` is there, which appears whole and last.
2. An init that was interrupted is completed by the next one, with the keys that it left: no second
   identity is made while the first may be anywhere (``keys.keyfile``).
3. The recovery code is returned and kept nowhere; its key's hash is kept, for founding statements.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from keys.durable import sync_directory
from keys.errors import PassphraseError, RefusedError, StoreError
from keys.keyfile import (
    DEVICE_KEY_NAME,
    create_device_key,
    create_secret,
    load_device_key,
    read_secret,
    secure_directory,
)
from keys.limits import VAULT_BYTES_MAX
from keys.recovery import new_code, recovery_hash, recovery_key
from keys.signing import DeviceKey, OwnerKey
from keys.statements import Statement, device_proof, sign
from keys.vault import DEFAULT_COST, Cost, open_owner, seal_owner
from memory.nodedb import open_node_db
from node.clock import SystemClock
from node.hardening import no_core_file
from node.home import Home, make_home
from node.lock import HomeLock, Role, holder, in_use
from node.marker import Marker
from node.names import checked_name

_NEW_DATABASE: Final = "node.db.new"


def init_home(
    path: Path,
    *,
    name: str,
    owner: str | None,
    recovery: bool,
    passphrase: str,
    cost: Cost = DEFAULT_COST,
) -> dict[str, str]:
    """Set up the home at ``path`` for the device ``name``; ``owner`` is a person's name.

    The result has ``device``, ``owner``, ``home`` and, if wanted, the ``recovery`` code. Raises
    ``RefusedError`` on a home that is set up, ``UsageError`` for a name or passphrase that will not
    do, ``InUseError`` while another process is at it.
    """
    no_core_file()
    device_name = checked_name(name, "device")
    owner_name = checked_name(owner, "owner") if owner else device_name
    owner_key = OwnerKey.generate()
    vault = seal_owner(owner_key, passphrase, cost=cost)
    code = new_code() if recovery else None

    home = make_home(path)
    lock = HomeLock(home)
    if not lock.try_acquire(Role.COMMAND):
        raise in_use(home, holder(home))
    try:
        _check_unused(home)
        secure_directory(home.keys_dir)
        key = _device_key(home)
        owner_key = _own(home, owner_key, vault, passphrase)
        Marker.create(home)
        settings = {"name": device_name, "owner": str(owner_key.owner), "owner_name": owner_name}
        if code is not None:
            settings["recovery"] = recovery_hash(recovery_key(code).public).hex()
        _make_database(home, settings, _certificate(owner_key, key, device_name))
    finally:
        lock.release()
    made = {"device": str(key.device), "owner": str(owner_key.owner), "home": str(home.path)}
    return made if code is None else made | {"recovery": code}


def _check_unused(home: Home) -> None:
    if home.database_path.exists():
        raise RefusedError(f"{home.path} is set up already", hint="roost status")
    if home.agents_dir.exists() and any(home.agents_dir.iterdir()):
        raise RefusedError(
            f"{home.path} holds memories, but its node.db is gone",
            hint="restore node.db from a backup, or name another --home",
        )


def _device_key(home: Home) -> DeviceKey:
    if os.path.lexists(home.keys_dir / DEVICE_KEY_NAME):
        return load_device_key(home.keys_dir)
    return create_device_key(home.keys_dir)


def _certificate(owner: OwnerKey, device: DeviceKey, name: str) -> Statement:
    """That the device is its owner's: what others grant to the owner reaches it from the start."""
    body = {
        "owner": owner.public,
        "device": device.public,
        "name": name,
        "proof": device_proof(device, owner.public),
        "wall_ms": SystemClock().now_us() // 1000,
    }
    return sign(owner, "certify", body, agent=b"", after=[])


def _own(home: Home, fresh: OwnerKey, vault: bytes, passphrase: str) -> OwnerKey:
    """The owner's key of this home: the fresh one, unless an interrupted init left another."""
    if not os.path.lexists(home.vault_path):
        create_secret(home.vault_path, vault)
        return fresh
    try:
        return open_owner(read_secret(home.vault_path, VAULT_BYTES_MAX), passphrase)
    except PassphraseError as exc:
        raise PassphraseError(
            "an init that was interrupted left an owner key that this passphrase does not open",
            hint=f"give the passphrase of then, or remove {home.path} if it was never used",
        ) from exc


def _make_database(home: Home, settings: dict[str, str], certificate: Statement) -> None:
    temporary = home.path / _NEW_DATABASE
    try:
        for left in home.path.glob(_NEW_DATABASE + "*"):
            left.unlink()
        with open_node_db(temporary) as database:
            database.set_settings(**settings)
            database.owner_statements.add([certificate])
        temporary.replace(home.database_path)
        sync_directory(home.path)
    except OSError as exc:
        raise StoreError(f"cannot set up {home.path}: {exc.strerror or exc}") from exc
