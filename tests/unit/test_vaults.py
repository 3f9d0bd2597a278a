"""The vault and the owner in the database change together, wherever a crash falls."""

from __future__ import annotations

from pathlib import Path

import pytest

from keys.keyfile import create_secret, read_secret, remove_partial, replace_secret
from keys.signing import OwnerKey
from node.vaults import prepare_vault, settle_vault

HERE, COMING = b"the vault of before", b"the vault to come"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault in a keys directory."""
    keys = tmp_path / "keys"
    keys.mkdir(0o700)
    create_secret(keys / "owner.vault", HERE)
    return keys / "owner.vault"


def names(vault: Path) -> list[str]:
    """What lies beside it."""
    return sorted(p.name for p in vault.parent.iterdir())


def test_S_D5_after_the_commit_the_vault_is_the_new_owners_and_the_old_one_is_kept(
    vault: Path,
) -> None:
    owner = OwnerKey.generate().owner
    prepare_vault(vault, owner, COMING)
    assert read_secret(vault, 100) == HERE, "nothing before the commit"
    for _ in range(2):  # a start finds nothing more to do
        settle_vault(vault, str(owner))
        assert read_secret(vault, 100) == COMING
        assert read_secret(vault.with_name("owner.vault.before"), 100) == HERE
        assert names(vault) == ["owner.vault", "owner.vault.before"]


def test_S_D5_without_the_commit_nothing_is_left_of_it(vault: Path) -> None:
    owner, other = OwnerKey.generate().owner, OwnerKey.generate().owner
    prepare_vault(vault, other, COMING)
    settle_vault(vault, None)
    assert len(names(vault)) == 2, "who owns the home is not known: everything stays"
    settle_vault(vault, str(owner))
    assert names(vault) == ["owner.vault"]
    assert read_secret(vault, 100) == HERE


@pytest.mark.parametrize("done", [1, 2])
def test_S_D5_settling_that_was_interrupted_goes_on(vault: Path, done: int) -> None:
    owner = OwnerKey.generate().owner
    prepare_vault(vault, owner, COMING)
    create_secret(vault.with_name("owner.vault.before"), HERE)
    if done == 2:
        replace_secret(vault, COMING)
    settle_vault(vault, str(owner))
    assert names(vault) == ["owner.vault", "owner.vault.before"]
    assert read_secret(vault, 100) == COMING


def test_S_D5_another_vault_that_was_kept_stays(vault: Path) -> None:
    owner = OwnerKey.generate().owner
    create_secret(vault.with_name("owner.vault.before"), b"an older one")
    prepare_vault(vault, owner, COMING)
    settle_vault(vault, str(owner))
    assert read_secret(vault.with_name("owner.vault.before"), 100) == b"an older one"
    assert read_secret(vault.with_name("owner.vault.before-2"), 100) == HERE


def test_what_was_left_half_written_goes_and_nothing_else(vault: Path) -> None:
    left = vault.with_name(".owner.vault.0123456789abcdef.tmp")
    left.write_bytes(b"half a secret")
    other = vault.with_name("notes.tmp")
    other.write_bytes(b"of the person")
    remove_partial(vault.parent)
    assert names(vault) == ["notes.tmp", "owner.vault"]
