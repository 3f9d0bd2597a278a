"""What is said again (R29), and what may not be said again on any path of writing (M-A1, M-B2)."""

from collections.abc import Callable

import pytest

from crdt.entry import Via
from keys.errors import RefusedError
from keys.ids import RecordId
from memory.lifecycle import merge
from memory.moving import ImportRow, import_rows
from memory.notes import Note
from memory.writing import also_sources
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World

VALUE, AGAIN = "the code is 4711", "The  CODE is 4711."


def test_r29_a_source_is_added_and_nothing_else_changes(world: World, a: Node, b: Node) -> None:
    first, second = (a.remember(f"turn {n}", kind="turn") for n in (1, 2))
    record = a.remember("bees", derived_from=(first,), source="book", weight=5.0, layer="year")
    world.settle()
    for _ in range(2):
        b.remember("Bees", derived_from=(second,), source="letter", weight=0.5, provenance="agent")
    entries = b.rows("SELECT count(*) FROM entry WHERE record = ?", record)
    assert entries == [(2,)], "said once more of the same source adds nothing"
    for node in world.everywhere():
        seen = node.seen(record)
        fields = seen.detail["fields"]
        assert also_sources(fields) == {bytes(second)}
        assert [v for k, v in fields.items() if k.startswith("cited.")] == ["letter"]
        assert (seen.weight, seen.layer, seen.source, seen.provenance) == (
            5.0,
            "year",
            "book",
            "user",
        )
        assert seen.detail["sources"] == [bytes(first)]
        assert_sound(node)
    assert_equal_nodes(*world.nodes.values())


def test_r29_what_repeated_a_value_is_a_source_that_an_erasure_names(world: World, a: Node) -> None:
    """It is listed and marked; when it is erased itself the value stays, since others say it."""
    first, second, other = (a.remember(f"turn {n}", kind="turn") for n in (1, 2, 3))
    record = a.remember("bees are kind", derived_from=(first,))
    a.remember("Bees are kind", derived_from=(second, other))
    a.forget(other)
    assert a.state(record) == "new"
    a.forget(record)
    for node in world.everywhere():
        assert [node.state(r) for r in (record, first, second)] == ["erased", "new", "new"]
        for source in (first, second):
            assert node.seen(source).detail["fields"] == {"no_intake": True}


def test_S_J1_who_repeats_for_ever_adds_no_more_than_so_many(
    a: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.writing.ALSO_MAX", 4)
    record = a.remember("bees")
    for n in range(6):
        a.remember("bees", source=f"letter {n}")
    assert len(a.seen(record).detail["fields"]) == 4
    assert a.rows("SELECT count(*) FROM entry WHERE record = ?", record) == [(5,)]


def _merged(node: Node, text: str) -> object:
    records = [node.remember("bees"), node.remember("wasps")]
    return merge(node.author, records, text, "one", via=Via.LOCAL, now_us=node.now_us)


def _imported(node: Node, text: str) -> object:
    found = import_rows(node.author, [ImportRow(1, Note(text))], node.now_us)
    for _line, exc in found.problems:
        raise exc
    return found


PATHS: dict[str, Callable[[Node, str], object]] = {
    "remember": lambda node, text: node.remember(text),
    "as an agent": lambda node, text: node.write(Note(text, provenance="agent"), Via.AGENT),
    "derive": lambda node, text: node.remember(text, derived_from=(node.remember("moths"),)),
    "revise": lambda node, text: node.revise(node.remember("ants"), text),
    "merge": _merged,
    "import": _imported,
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", [VALUE, AGAIN])
def test_M_B2_no_path_of_writing_brings_an_erased_value_back(
    world: World, a: Node, path: str, text: str
) -> None:
    """On the device that erased it and on one that was told; another value passes on each path."""
    record: RecordId = a.remember(VALUE)
    a.forget(record)
    for node in world.everywhere():
        before = node.rows("SELECT count(*) FROM record WHERE live = 1 AND text LIKE '%4711%'")
        with pytest.raises(RefusedError):
            PATHS[path](node, text)
        after = node.rows("SELECT count(*) FROM record WHERE live = 1 AND text LIKE '%4711%'")
        assert before == after == [(0,)]
    PATHS[path](a, "the code is 4712")
