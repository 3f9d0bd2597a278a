"""`roost init`: once, completely, and never a second identity by accident."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keys.errors import (
    InUseError,
    KeyFileError,
    PassphraseError,
    RefusedError,
    RoostError,
    UsageError,
)
from keys.keyfile import load_device_key, read_secret
from keys.limits import NAME_BYTES_MAX, VAULT_BYTES_MAX
from keys.recovery import recovery_hash, recovery_key
from keys.vault import Cost, open_owner, public_of
from memory.nodedb import open_node_db
from node import setup
from node.home import Home, open_home
from node.lock import HomeLock, Role
from node.marker import Marker
from node.names import checked_name
from node.setup import init_home

PASSPHRASE = "correct horse"
COST = Cost(ops=1, memory_bytes=8_192)


def init(path: Path, **changed: Any) -> dict[str, str]:
    """`roost init` with a vault that costs nothing."""
    given: dict[str, Any] = {
        "name": "desk",
        "owner": None,
        "recovery": True,
        "passphrase": PASSPHRASE,
        "cost": COST,
    }
    return init_home(path, **(given | changed))


def settings_of(path: Path, *keys: str) -> list[str | None]:
    with open_node_db(path / "node.db") as db:
        return [db.setting(key) for key in keys]


def test_a_new_home_has_a_device_an_owner_and_a_way_back(tmp_path: Path) -> None:
    """What is returned is what was stored; the code itself is stored nowhere."""
    path = tmp_path / "home"
    made = init(path, name=" desk ", owner="Ada")
    home = open_home(path, {})
    assert made.keys() == {"device", "owner", "home", "recovery"}
    assert made["home"] == str(path)
    assert made["device"] == str(load_device_key(home.keys_dir).device)
    key = open_owner(read_secret(home.vault_path, VAULT_BYTES_MAX), PASSPHRASE)
    assert made["owner"] == str(key.owner)
    expected = recovery_hash(recovery_key(made["recovery"]).public).hex()
    found = settings_of(path, "name", "owner", "owner_name", "recovery")
    assert found == ["desk", made["owner"], "Ada", expected]
    assert Marker.load(home).place_doubt is None
    everything = b"".join(p.read_bytes() for p in path.rglob("*") if p.is_file())
    for group in made["recovery"].split("-"):
        assert group.encode() not in everything


def test_everything_is_closed_to_others(tmp_path: Path) -> None:
    """0700 and 0600, whatever the umask."""
    before = os.umask(0)
    try:
        init(tmp_path / "home")
    finally:
        os.umask(before)
    for found in [tmp_path / "home", *(tmp_path / "home").rglob("*")]:
        assert not stat.S_IMODE(found.stat().st_mode) & 0o077, found


def test_without_recovery_there_is_no_code(tmp_path: Path) -> None:
    """Neither returned nor hashed."""
    assert "recovery" not in init(tmp_path / "home", recovery=False)
    assert settings_of(tmp_path / "home", "recovery") == [None]


def test_a_second_init_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """The identity stays."""
    path = tmp_path / "home"
    init(path)
    before = {p: p.read_bytes() for p in (path / "keys").iterdir()}
    with pytest.raises(RefusedError, match="set up already"):
        init(path, name="other")
    assert {p: p.read_bytes() for p in (path / "keys").iterdir()} == before
    assert settings_of(path, "name") == ["desk"]


@pytest.mark.parametrize(
    "changed",
    [{"name": ""}, {"name": "a\x1b[31m"}, {"owner": "x" * 129}, {"passphrase": "short"}],
)
def test_what_will_not_do_leaves_nothing_behind(tmp_path: Path, changed: dict[str, str]) -> None:
    """Names and passphrase are judged before anything is made."""
    with pytest.raises(UsageError):
        init(tmp_path / "home", **changed)
    assert not (tmp_path / "home").exists()


CRASHES: list[tuple[str, str]] = [
    ("create_device_key", "before the device key"),
    ("create_secret", "before the vault"),
    ("open_node_db", "before the database"),
]


@pytest.mark.parametrize(("step", "_when"), CRASHES)
def test_an_interrupted_init_is_completed_with_the_keys_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, _when: str
) -> None:
    """The home is not set up until it is, and no second identity is made."""
    path = tmp_path / "home"
    with monkeypatch.context() as crash:
        crash.setattr(setup, step, _crash)
        with pytest.raises(KeyboardInterrupt):
            init(path)
    with pytest.raises(RoostError):
        open_home(path, {})
    left = {p.name: p.read_bytes() for p in (path / "keys").iterdir()}

    made = init(path)
    kept = {p.name: p.read_bytes() for p in (path / "keys").iterdir()}
    assert kept.items() >= left.items()
    assert made["owner"] == str(public_of(kept["owner.vault"]))
    assert open_home(path, {}).path == path


def _crash(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


def test_half_a_database_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is built beside its place, and what a crash left of it is built anew."""
    path = tmp_path / "home"
    with monkeypatch.context() as crash:
        crash.setattr(Path, "replace", _crash_at("node.db", Path.replace))
        with pytest.raises(KeyboardInterrupt):
            init(path)
    assert (path / "node.db.new").exists()
    init(path, name="second")
    assert settings_of(path, "name") == ["second"]
    assert not list(path.glob("node.db.new*"))


def _crash_at(name: str, real: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
    def replace(source: Path, target: Path) -> Path:
        if target.name == name:
            raise KeyboardInterrupt
        return real(source, target)

    return replace


def test_an_interrupted_init_wants_the_passphrase_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than make another owner, it says what is there and what to do."""
    path = tmp_path / "home"
    with monkeypatch.context() as crash:
        crash.setattr(setup, "open_node_db", _crash)
        with pytest.raises(KeyboardInterrupt):
            init(path)
    with pytest.raises(PassphraseError, match="interrupted") as failed:
        init(path, passphrase="another one")
    assert str(path) in str(failed.value.hint)
    init(path)


def test_a_damaged_device_key_is_not_replaced(tmp_path: Path) -> None:
    """It may exist elsewhere; a person decides."""
    path = tmp_path / "home"
    init(path)
    (path / "node.db").unlink()
    (path / "keys" / "device.key").write_bytes(b"damaged")
    with pytest.raises(KeyFileError, match="damaged"):
        init(path)


def test_a_home_whose_database_is_gone_is_not_set_up_anew(tmp_path: Path) -> None:
    """Where there are memories, losing node.db is a case for a backup."""
    path = tmp_path / "home"
    init(path)
    (path / "node.db").unlink()
    (path / "agents").mkdir(mode=0o700)
    (path / "agents" / "x.db").touch()
    with pytest.raises(RefusedError, match=r"node\.db is gone"):
        init(path)


def test_two_inits_at_once_make_one_home(tmp_path: Path) -> None:
    """The one that comes second is told."""
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    lock = HomeLock(home)
    assert lock.try_acquire(Role.COMMAND)
    with pytest.raises(InUseError):
        init(home.path)
    lock.release()
    init(home.path)


def test_a_name_is_one_visible_line() -> None:
    """Trimmed, composed, bounded in bytes; letters of any script and emoji will do."""
    assert checked_name("  Zu\u0308rich \U0001f469\u200d\U0001f4bb ", "device") == (
        "Z\u00fcrich \U0001f469\u200d\U0001f4bb"
    )
    assert len(checked_name("x" * NAME_BYTES_MAX, "device")) == NAME_BYTES_MAX
    for wrong in ("", "  ", "\u202edesk", "a\nb", "a\tb", "\ud800", "x" * (NAME_BYTES_MAX + 1)):
        with pytest.raises(UsageError, match="device"):
            checked_name(wrong, "device")
