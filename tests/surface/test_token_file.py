"""The file that a token is written to."""

import os
import stat
from pathlib import Path

import pytest

from cli.commands.agents import reserve_secret_file


def test_X_88_a_token_file_is_the_owners_alone(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask, never through a link, never over a file."""
    before = os.umask(0)
    try:
        with reserve_secret_file(tmp_path / "token") as file:
            file.write(b"secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("token", "link"):
        with pytest.raises(FileExistsError):
            reserve_secret_file(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()
