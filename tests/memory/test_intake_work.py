"""Intake walks what is new, not the log: its price does not grow with what is there."""

import pytest

from crdt.entry import Via
from memory import intake
from memory.notes import Note
from memory.writing import remember_batch
from tests.support.memory_world import Node, World

RUN = bytes(16)
BATCH = 5


def steps(node: Node) -> int:
    """How much SQLite does for one run, in tens of its instructions."""
    count: list[None] = []
    node.store.connection.set_progress_handler(lambda: count.append(None), 10)
    intake.take_in(node.author, RUN, node.now_us)
    node.store.connection.set_progress_handler(None, 0)
    return len(count)


def notes(node: Node, first: int, count: int) -> None:
    """Memories that intake makes nothing of."""
    made = [Note(f"a heron at pond number {i}") for i in range(first, first + count)]
    remember_batch(node.author, made, Via.LOCAL, node.now_us)


def test_a_batch_costs_the_same_in_a_longer_log(a: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the log is neither read nor sorted for it."""
    monkeypatch.setattr(intake, "BATCH", BATCH)
    notes(a, 0, 20)
    few = steps(a)
    notes(a, 20, 200)
    assert steps(a) < 2 * few


def test_what_others_wrote_is_walked_over_once(world: World, a: Node, b: Node) -> None:
    """And what this device writes after that is still taken in."""
    notes(a, 0, 100)
    world.settle()
    first = steps(b)
    assert steps(b) < first / 2
    note = Note("I moved to Lisbon in May 2023.", kind="turn", session="s", speaker="Ada")
    source = b.write(note).record
    assert intake.take_in(b.author, RUN, b.now_us).wrote == [intake.observation_id(b.store, source)]
