"""The incarnation marker: what it notices, and that it notices it once (R38, S-A1 to S-A3)."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from keys.ids import AgentId, Incarnation
from node import marker as marker_module
from node.home import Home, make_home
from node.identity import FileIdentity, identity_of, machine_id
from node.marker import Doubt, DoubtKind, Marker

AGENT = AgentId(bytes([1]) * 32)
OTHER = AgentId(bytes([2]) * 32)
FIRST, SECOND, THIRD = (Incarnation(bytes([n]) * 8) for n in (1, 2, 3))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose device has written five entries for one agent."""
    made = make_home(tmp_path / "home", {})
    marker = Marker.create(made)
    marker.opening(AGENT, FIRST)
    marker.advance(AGENT, FIRST, 5)
    return made


def test_an_untouched_home_has_no_doubt(home: Home) -> None:
    """A start changes nothing."""
    before = home.marker_path.read_bytes()
    marker = Marker.load(home)
    assert marker.place_doubt is None
    assert marker.check(AGENT, {FIRST: 5}) is None
    assert home.marker_path.read_bytes() == before
    assert stat.S_IMODE(home.marker_path.stat().st_mode) == 0o600


def test_a_database_ahead_of_the_marker_is_normal(home: Home) -> None:
    """A kill between the commit and the marker is no restore."""
    assert Marker.load(home).check(AGENT, {FIRST: 9}) is None


def test_S_A2_a_database_behind_the_marker_was_restored(home: Home) -> None:
    """The doubt says how far our log is known to have reached."""
    for own in ({FIRST: 4}, {}, {SECOND: 50}):
        doubt = Marker.load(home).check(AGENT, own)
        assert doubt is not None
        assert (doubt.kind, doubt.incarnation, doubt.seq) == (DoubtKind.BEHIND, FIRST, 5)


def test_a_missing_or_damaged_marker_is_a_doubt(home: Home) -> None:
    """Not an error, and no doubt where this device never wrote."""
    whole = home.marker_path.read_bytes()
    for left in (b"", whole[:40], b"[]", b'{"version": 2}', whole.replace(b'"agents"', b'"x"')):
        home.marker_path.write_bytes(left)
        marker = Marker.load(home)
        assert marker.place_doubt is DoubtKind.MISSING
        doubt = marker.check(AGENT, {FIRST: 5})
        assert doubt is not None
        assert doubt.kind is DoubtKind.MISSING
        assert marker.check(OTHER, {}) is None
    home.marker_path.unlink()
    assert Marker.load(home).place_doubt is DoubtKind.MISSING


def test_a_copied_home_is_a_doubt_and_the_original_none(home: Home, tmp_path: Path) -> None:
    """Whatever the copy preserves."""
    copy = tmp_path / "copy"
    shutil.copytree(home.path, copy, copy_function=shutil.copy2)
    doubt = Marker.load(Home(copy)).check(AGENT, {FIRST: 5})
    assert doubt is not None
    assert doubt.kind is DoubtKind.MOVED
    assert Marker.load(home).check(AGENT, {FIRST: 5}) is None


def test_a_moved_home_stays_itself(home: Home, tmp_path: Path) -> None:
    """Renaming the directory copies nothing."""
    home.path.rename(tmp_path / "renamed")
    assert Marker.load(Home(tmp_path / "renamed")).check(AGENT, {FIRST: 5}) is None


def test_X_101_a_whole_home_restored_in_its_place_is_a_doubt(home: Home, tmp_path: Path) -> None:
    """The directory may even get the inode that it had."""
    backup = tmp_path / "backup"
    shutil.copytree(home.path, backup)
    Marker.load(home).advance(AGENT, FIRST, 9)
    shutil.rmtree(home.path)
    shutil.copytree(backup, home.path)
    doubt = Marker.load(home).check(AGENT, {FIRST: 5})
    assert doubt is not None
    assert doubt.kind is DoubtKind.MOVED


def test_X_101_files_restored_over_the_ones_there_are_a_doubt(home: Home, tmp_path: Path) -> None:
    """The directory stays, the marker's bytes come into another file than they name."""
    backup = home.marker_path.read_bytes()
    marker = Marker.load(home)
    for seq in (6, 7, 8):
        marker.advance(AGENT, FIRST, seq)
    home.marker_path.write_bytes(backup)
    doubt = Marker.load(home).check(AGENT, {FIRST: 5})
    assert doubt is not None
    assert doubt.kind is DoubtKind.MOVED


def test_another_machine_is_a_doubt(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk carried to another system; one that has no id is not held against it."""
    monkeypatch.setattr(marker_module, "machine_id", lambda: "another")
    assert Marker.load(home).place_doubt is DoubtKind.MOVED
    monkeypatch.setattr(marker_module, "machine_id", lambda: "")
    assert Marker.load(home).place_doubt is None


def test_the_machines_own_id_is_not_in_the_marker(home: Home) -> None:
    """It is not meant to be shown around."""
    if machine_id():
        assert machine_id() not in home.marker_path.read_text()


def test_S_A3_one_restore_is_noticed_once(home: Home) -> None:
    """Settled, it stays a doubt that was told, over any number of starts."""
    assert Marker.load(home).check(AGENT, {FIRST: 4}) is not None
    for _ in range(3):
        marker = Marker.load(home)
        doubt = marker.check(AGENT, {FIRST: 4})
        assert doubt == Doubt(DoubtKind.BEHIND, FIRST, 5, told=True)
        marker.settle()


def test_a_copy_settles_in_its_new_place_and_tells_once(home: Home, tmp_path: Path) -> None:
    """Agents that were checked have been told of, others are told of when they are."""
    Marker.load(home).advance(OTHER, SECOND, 3)
    copy = Home(tmp_path / "copy")
    shutil.copytree(home.path, copy.path)
    marker = Marker.load(copy)
    assert marker.check(AGENT, {FIRST: 5}) == Doubt(DoubtKind.MOVED, FIRST, 5, told=False)
    marker.settle()

    marker = Marker.load(copy)
    assert marker.place_doubt is None
    assert marker.check(AGENT, {FIRST: 5}) == Doubt(DoubtKind.MOVED, FIRST, 5, told=True)
    assert marker.check(OTHER, {SECOND: 3}) == Doubt(DoubtKind.MOVED, SECOND, 3, told=False)
    assert Marker.load(copy).doubt(OTHER) == Doubt(DoubtKind.MOVED, SECOND, 3, told=True)


def test_the_first_write_in_a_new_incarnation_ends_the_doubt(home: Home) -> None:
    """Not the start, and not the own tail that peers give back."""
    marker = Marker.load(home)
    marker.check(AGENT, {FIRST: 4})
    assert Marker.load(home).check(AGENT, {FIRST: 20}) is not None  # the tail is back

    marker = Marker.load(home)
    marker.check(AGENT, {FIRST: 20})
    marker.opening(AGENT, SECOND)
    marker.advance(AGENT, SECOND, 1)
    assert marker.doubt(AGENT) is None
    assert Marker.load(home).check(AGENT, {FIRST: 20, SECOND: 1}) is None


def test_a_kill_after_the_first_write_opens_no_further_incarnation(home: Home) -> None:
    """The new incarnation in the database is proof enough, the marker may lag."""
    marker = Marker.load(home)
    marker.check(AGENT, {FIRST: 4})
    marker.opening(AGENT, SECOND)
    assert Marker.load(home).check(AGENT, {FIRST: 4, SECOND: 2}) is None


def test_a_kill_before_the_first_write_leaves_the_doubt(home: Home) -> None:
    """An incarnation that never came into the database is none; the next write opens another."""
    marker = Marker.load(home)
    marker.check(AGENT, {FIRST: 4})
    marker.opening(AGENT, SECOND)
    marker = Marker.load(home)
    doubt = marker.check(AGENT, {FIRST: 4})
    assert doubt is not None
    assert doubt.told
    marker.opening(AGENT, THIRD)
    marker.advance(AGENT, THIRD, 1)
    assert Marker.load(home).check(AGENT, {FIRST: 4, THIRD: 1}) is None


def test_a_log_of_ours_that_the_marker_never_heard_of_is_a_doubt(home: Home) -> None:
    """Every incarnation is announced to the marker before its first commit."""
    doubt = Marker.load(home).check(OTHER, {SECOND: 1})
    assert doubt == Doubt(DoubtKind.MISSING, None, 0, told=False)
    marker = Marker.load(home)
    marker.check(OTHER, {SECOND: 1})
    marker.opening(OTHER, THIRD)
    assert Marker.load(home).check(OTHER, {SECOND: 1, THIRD: 1}) is None


def test_a_peer_that_remembers_more_is_news_once(home: Home) -> None:
    """A restored disk image, marker and all, is noticed by peers alone."""
    marker = Marker.load(home)
    assert marker.note(AGENT, FIRST, 30)
    assert not marker.note(AGENT, FIRST, 30)
    assert not marker.note(AGENT, FIRST, 31)
    doubt = Marker.load(home).check(AGENT, {FIRST: 5})
    assert doubt == Doubt(DoubtKind.PEER, FIRST, 31, told=True)


def test_the_counter_never_goes_back_and_writes_only_what_is_new(home: Home) -> None:
    """Being told of an older commit changes nothing."""
    marker = Marker.load(home)
    before = home.marker_path.stat().st_ino
    marker.advance(AGENT, FIRST, 4)
    marker.advance(AGENT, FIRST, 5)
    assert home.marker_path.stat().st_ino == before
    assert Marker.load(home).check(AGENT, {FIRST: 4}) is not None


def test_an_agent_that_was_left_leaves_no_trace(home: Home) -> None:
    """Coming back to it later is no restore."""
    marker = Marker.load(home)
    marker.drop(AGENT)
    marker.drop(AGENT)
    assert AGENT.hex() not in home.marker_path.read_text()
    assert Marker.load(home).check(AGENT, {}) is None


def test_what_a_killed_process_left_beside_the_marker_is_harmless(home: Home) -> None:
    """The marker is replaced whole."""
    (home.path / "incarnation.new").write_bytes(b"half")
    marker = Marker.load(home)
    assert marker.check(AGENT, {FIRST: 5}) is None
    marker.advance(AGENT, FIRST, 6)
    assert json.loads(home.marker_path.read_bytes())["agents"] == [[AGENT.hex(), [FIRST.hex(), 6]]]
    assert not (home.path / "incarnation.new").exists()


def test_a_marker_is_settled_before_anything_is_written(home: Home) -> None:
    """Writing first would destroy the evidence."""
    home.marker_path.unlink()
    marker = Marker.load(home)
    with pytest.raises(AssertionError):
        marker.advance(AGENT, FIRST, 6)
    assert not home.marker_path.exists()


def test_a_file_is_told_from_its_copy_and_from_one_with_its_inode(tmp_path: Path) -> None:
    """Births decide where the system keeps them, inodes elsewhere."""
    path = tmp_path / "file"
    path.touch()
    first = identity_of(path)
    assert first.same_as(identity_of(path))
    os.utime(path, (0, 0))
    path.chmod(0o600)
    path.write_bytes(b"more")
    path.rename(tmp_path / "renamed")
    assert first.same_as(identity_of(tmp_path / "renamed"))

    assert not FileIdentity(7, 100).same_as(FileIdentity(7, 200))
    assert FileIdentity(7, 100).same_as(FileIdentity(8, 100))  # numbered anew at a mount
    assert FileIdentity(7, 0).same_as(FileIdentity(7, 200))
    assert not FileIdentity(7, 0).same_as(FileIdentity(8, 0))


def test_the_machine_id_is_the_first_that_there_is(tmp_path: Path) -> None:
    """Empty files and files of other bytes count as none."""
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "id").write_text("abc\n")
    names = tuple(tmp_path / name for name in ("none", "empty", "binary", "id"))
    assert machine_id(names) == "abc"
    assert machine_id(names[:3]) == ""
