"""The lock of a home, within one process; tests/e2e has those between processes."""

import errno
import json
import os
from pathlib import Path

import pytest

from keys.errors import InUseError, StoreError
from node.home import Home, make_home
from node.lock import UNKNOWN, Holder, HomeLock, Role, acquire, holder, in_use
from tests.support.clock import VirtualClock

PATIENCE = {Role.NODE: 0.0, Role.BACKGROUND: 0.0, Role.COMMAND: 10.0, None: 2.0}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home", {})


def test_one_holds_it_and_says_who(home: Home) -> None:
    """A second lock is refused until the first is released; releasing twice is fine."""
    first, second = HomeLock(home), HomeLock(home)
    assert first.try_acquire(Role.BACKGROUND)
    assert not second.try_acquire(Role.NODE)
    assert holder(home) == Holder(os.getpid(), Role.BACKGROUND)
    first.release()
    first.release()
    assert (first.held, holder(home)) == (False, UNKNOWN)
    assert second.try_acquire(Role.NODE)
    second.release()


def test_a_full_disk_does_not_keep_anybody_out(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there can still be read; only who holds it is not said."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    first = HomeLock(home)
    assert first.try_acquire(Role.COMMAND)
    assert not HomeLock(home).try_acquire(Role.COMMAND)
    assert holder(home) == UNKNOWN
    first.release()


@pytest.mark.parametrize(
    "said", [b"", b"{", b"[]", b'{"pid": "x", "role": "node"}', b'{"pid": 1, "role": "king"}']
)
def test_a_holder_that_said_nothing_of_use_is_unknown(home: Home, said: bytes) -> None:
    """What the file says is never believed for the exclusion, and never fails a command."""
    home.lock_path.write_bytes(said)
    assert holder(home) == UNKNOWN


def test_the_role_of_a_dead_process_is_not_believed(home: Home) -> None:
    """Its successor has not written yet; the pid may still help a person."""
    home.lock_path.write_text(json.dumps({"pid": 2**22 + 1, "role": "node"}))
    assert holder(home) == Holder(2**22 + 1, None)


@pytest.mark.parametrize("role", [*Role, None])
def test_the_error_names_the_pid_and_a_way_out(home: Home, role: Role | None) -> None:
    """Exit code 5 and a hint, whoever it is."""
    error = in_use(home, Holder(4711, role))
    assert error.exit_code == 5
    assert error.details == {"pid": 4711}
    assert "pid 4711" in error.message
    assert error.hint
    assert "another process" in in_use(home, UNKNOWN).message


async def test_a_command_is_waited_for_as_long_as_patience_lasts(home: Home) -> None:
    """Not shorter, not longer; and no wait where the holder will not go."""
    clock = VirtualClock()
    first = HomeLock(home)
    assert first.try_acquire(Role.COMMAND)
    with pytest.raises(InUseError):
        await acquire(home, Role.COMMAND, _Rushing(clock), PATIENCE)
    assert 10.0 <= clock.monotonic_s() < 10.1
    first.release()

    assert first.try_acquire(Role.NODE)
    with pytest.raises(InUseError):
        await acquire(home, Role.COMMAND, _Rushing(clock), PATIENCE)
    assert clock.monotonic_s() < 10.1
    first.release()


async def test_the_one_who_waits_has_it_when_it_is_free(home: Home) -> None:
    """What is done meanwhile can make the holder go."""
    first = HomeLock(home)
    assert first.try_acquire(Role.COMMAND)
    seen = []

    async def meanwhile(by: Holder) -> None:
        seen.append(by.role)
        if len(seen) == 3:
            first.release()

    lock = await acquire(home, Role.NODE, _Rushing(VirtualClock()), PATIENCE, meanwhile)
    assert lock.held
    assert seen == [Role.COMMAND] * 3
    lock.release()


def test_a_home_that_cannot_be_locked_is_an_error_of_its_own(home: Home) -> None:
    """A link in the lock's place, or no directory any more."""
    home.lock_path.symlink_to("/dev/null")
    with pytest.raises(StoreError):
        HomeLock(home).try_acquire(Role.NODE)
    with pytest.raises(StoreError):
        HomeLock(Home(home.path / "gone")).try_acquire(Role.NODE)


class _Rushing(VirtualClock):
    """Moves another clock on by every sleep, at once."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._clock.advance(seconds)
