"""Where a home may be, and what is refused with which reason."""

import os
import stat
from pathlib import Path

import pytest

from keys.errors import NotFoundError, RefusedError
from node.home import check_place, file_system, make_home, open_home

FREE: dict[str, str] = {}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that counts as set up."""
    path = make_home(tmp_path / "home", FREE).path
    (path / "node.db").touch()
    return path


def test_a_home_is_made_closed_to_others(tmp_path: Path) -> None:
    """Its mode is 0700, whatever the umask; missing parents are made too."""
    before = os.umask(0)
    try:
        path = make_home(tmp_path / "a" / "b", FREE).path
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_an_empty_directory_becomes_a_home(tmp_path: Path) -> None:
    """It is closed to others then."""
    path = tmp_path / "empty"
    path.mkdir(mode=0o755)
    make_home(path, FREE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_directory_with_other_files_does_not(tmp_path: Path) -> None:
    """Nothing of it is touched."""
    path = tmp_path / "documents"
    path.mkdir(mode=0o755)
    (path / "letter.txt").touch()
    with pytest.raises(RefusedError, match="holds other files"):
        make_home(path, FREE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert os.listdir(path) == ["letter.txt"]


def test_a_missing_home_and_one_that_is_not_set_up_are_named(tmp_path: Path) -> None:
    """The hint is the command that makes one; opening makes nothing."""
    for path in (tmp_path / "none", make_home(tmp_path / "empty", FREE).path):
        with pytest.raises(NotFoundError) as failed:
            open_home(path, FREE)
        assert "roost init" in str(failed.value.hint)
    assert not (tmp_path / "none").exists()


def test_X_98_a_link_is_refused(home: Path) -> None:
    """Even one to a good home; the hint names the directory itself."""
    link = home.with_name("link")
    link.symlink_to(home)
    for use in (open_home, make_home):
        with pytest.raises(RefusedError, match="is a link") as failed:
            use(link, FREE)
        assert str(home) in str(failed.value.hint)


def test_a_link_on_the_way_to_the_home_is_followed(home: Path) -> None:
    """Two ways to one home are one home."""
    (home.parent / "way").symlink_to(home.parent)
    assert open_home(home.parent / "way" / home.name, FREE).path == home


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o750, 0o705])
def test_X_98_a_home_open_to_others_is_refused(home: Path, mode: int) -> None:
    """Writing would forge, reading would leak."""
    home.chmod(mode)
    with pytest.raises(RefusedError, match="open to others") as failed:
        open_home(home, FREE)
    assert f"chmod 700 {home}" in str(failed.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
def test_X_98_another_accounts_home_is_refused(home: Path) -> None:
    """Not even root uses it."""
    os.chown(home, 12_345, 12_345)
    for use in (open_home, make_home):
        with pytest.raises(RefusedError, match="another account"):
            use(home, FREE)


def test_a_file_is_no_home(tmp_path: Path) -> None:
    """What has the name must be a directory."""
    (tmp_path / "file").touch()
    with pytest.raises(RefusedError, match="not a directory"):
        open_home(tmp_path / "file", FREE)


@pytest.mark.parametrize(
    ("marker", "client"),
    [
        (".stfolder", "Syncthing"),
        (".dropbox", "Dropbox"),
        (".dropbox.cache", "Dropbox"),
        (".nextcloudsync.log", "Nextcloud"),
    ],
)
def test_S_G5_a_folder_that_a_cloud_client_copies_is_refused(
    tmp_path: Path, marker: str, client: str
) -> None:
    """The reason names the client and the folder; the variable lifts it."""
    (tmp_path / marker).mkdir()
    path = tmp_path / "deep" / "home"
    with pytest.raises(RefusedError, match=client) as failed:
        make_home(path, FREE)
    assert "ROOST_FORCE_HOME=1" in str(failed.value.hint)
    assert not path.parent.exists()
    make_home(path, {"ROOST_FORCE_HOME": "1"})


@pytest.mark.parametrize(
    "name", ["OneDrive", "OneDrive - Example", "Dropbox (Personal)", "iCloudDrive", "Google Drive"]
)
def test_S_G5_a_cloud_folder_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    """Clients that leave no mark have a name."""
    with pytest.raises(RefusedError):
        check_place(tmp_path / name / "roost", FREE)


def test_the_configuration_of_a_cloud_client_is_not_its_folder(tmp_path: Path) -> None:
    """`.dropbox` in the account's own directory does not make everything there a cloud folder."""
    (tmp_path / ".dropbox").mkdir()
    check_place(tmp_path / ".local" / "share" / "roost", {"HOME": str(tmp_path)})
    check_place(tmp_path / "dropbox-notes" / "roost", {"HOME": str(tmp_path)})


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:35 / /mnt/nas rw shared:2 - nfs4 server:/x rw
41 21 0:36 / /mnt/with\\040space rw - cifs //server/x rw
42 40 8:2 / /mnt/nas/local rw - ext4 /dev/sdb1 rw
43 21 0:37 / /mnt/remote rw - fuse.sshfs me@there: rw
44 21 0:38 / /mnt/twice rw - nfs4 server:/y rw
45 21 8:3 / /mnt/twice rw - xfs /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/mnt/nas/home", "nfs4"),
        ("/mnt/nas/local/home", "ext4"),
        ("/mnt/nasty", "ext4"),
        ("/mnt/with space/home", "cifs"),
        ("/mnt/remote", "fuse.sshfs"),
        ("/mnt/twice/home", "xfs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    """The longest mount point decides, of two on one point the later."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(Path(path), mounts) == kind


def test_S_G5_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the kind; the variable lifts it."""
    for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone"):
        monkeypatch.setattr("node.home.file_system", lambda _path, kind=kind: kind)
        with pytest.raises(RefusedError, match=rf"network file system \({kind}\)"):
            check_place(tmp_path, FREE)
        check_place(tmp_path, {"ROOST_FORCE_HOME": "1"})
    for kind in ("ext4", "xfs", "tmpfs", "fuse.mergerfs", ""):
        monkeypatch.setattr("node.home.file_system", lambda _path, kind=kind: kind)
        check_place(tmp_path, FREE)
