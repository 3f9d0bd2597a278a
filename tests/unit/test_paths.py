"""Where a home is, and where its socket is."""

import os
from pathlib import Path

from node.paths import is_trusted_socket, resolve_home, socket_candidates, socket_path


def test_the_option_comes_before_the_environment(tmp_path: Path) -> None:
    """Then the variable, then the directory for data, then the account's own."""
    real = Path(os.path.realpath(tmp_path))
    variables = {"ROOST_HOME": str(tmp_path / "b"), "XDG_DATA_HOME": str(tmp_path / "c")}
    assert resolve_home(str(tmp_path / "a"), variables) == real / "a"
    assert resolve_home(None, variables) == real / "b"
    del variables["ROOST_HOME"]
    assert resolve_home(None, variables) == real / "c" / "roost"
    own = resolve_home(None, {"XDG_DATA_HOME": "not/absolute"})
    assert own.parts[-3:] == (".local", "share", "roost")


def test_a_home_is_absolute_and_links_before_it_are_followed(tmp_path: Path) -> None:
    """One directory, one socket; a home that is a link stays one, for its user to refuse."""
    real = Path(os.path.realpath(tmp_path))
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert resolve_home(str(tmp_path / "link" / "home"), {}) == real / "there" / "home"
    assert resolve_home(str(tmp_path / "link"), {}) == real / "link"
    assert resolve_home("x/../y", {}) == Path(os.path.realpath("y"))
    assert resolve_home("~/x", {}).is_absolute()


def test_the_socket_is_in_the_home_where_it_fits() -> None:
    """100 bytes fit, 101 do not."""
    fits = Path("/" + "h" * (100 - len("/" + "/node.sock")))
    assert socket_candidates(fits) == [fits / "node.sock"]
    assert len(str(socket_path(fits))) == 100
    longer = Path(str(fits) + "h")
    assert socket_path(longer, {}).parent == Path(f"/tmp/roost-{os.getuid()}")
    runtime = {"XDG_RUNTIME_DIR": "/run/user/7"}
    assert socket_path(longer, runtime).parent == Path("/run/user/7")
    assert socket_path(longer, {"XDG_RUNTIME_DIR": "x"}) == socket_path(longer, {})
    assert socket_path(longer, runtime) != socket_path(Path(str(longer) + "h"), runtime)


def test_what_is_no_socket_is_not_trusted(tmp_path: Path) -> None:
    """A file, or nothing."""
    (tmp_path / "node.sock").write_text("")
    assert not is_trusted_socket(tmp_path / "node.sock", tmp_path)
    assert not is_trusted_socket(tmp_path / "nothing", tmp_path)
