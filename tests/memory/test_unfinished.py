"""Changes that reached the files and did not commit leave no word there that is forgotten (R34)."""

import pytest

from tests.memory.test_erasure import CONTROL, SECRET, assert_gone_and_the_rest_here, note, places
from tests.support.author import seeded
from tests.support.memory_world import Node, World


class UndoneError(Exception):
    """The end of a change that does not happen."""


def pull_half(world: World, dst: Node, src: Node, *, killed: bool) -> None:
    """A pull that reaches the files and not its commit: it fails, or its process is killed."""
    dst.store.connection.execute("PRAGMA cache_size=1")  # so that pages spill early
    as_left: dict[str, bytes] = {}

    def pull() -> None:
        with dst.store.changing():
            assert world.pull(dst, src) > 0
            as_left.update({p.name: p.read_bytes() for p in dst.home.iterdir() if p.is_file()})
            raise UndoneError

    with pytest.raises(UndoneError):
        pull()
    if killed:
        dst.close()
        for path in dst.home.iterdir():
            path.unlink()
        for name, data in as_left.items():
            if not name.endswith("-shm"):
                (dst.home / name).write_bytes(data)
        dst.reopen()
    assert dst.rows("SELECT count(*) FROM record") == [(1,)]


@pytest.mark.parametrize("killed", [True, False])
def test_S_H4_M_H3_what_a_pull_left_that_did_not_commit_leaves_the_files(
    world: World, a: Node, b: Node, killed: bool
) -> None:
    """Its words are in the WAL, and the tombstone that comes next keeps the record itself out."""
    a.write(note(CONTROL))
    world.settle()
    record = a.write(note(SECRET)).record
    for number in range(40):
        a.write(note(f"filler {number} {seeded(str(number)).hex()}"))
    pull_half(world, b, a, killed=killed)
    assert places(b), "the scan must find what was left"
    a.forget(record)
    assert world.pull_ahead(b, a) == 1
    assert_gone_and_the_rest_here(a, b)
