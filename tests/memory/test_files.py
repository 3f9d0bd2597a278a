"""Files: kept to the byte, section by section, on every node."""

import pytest

from crdt.entry import Via
from keys.errors import RefusedError
from keys.ids import RecordId
from memory import files
from memory.notes import Note
from tests.support.author import seeded
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes
from tests.support.memory_world import Node, World

TEXT = "intro\n# One\nhello\n\n```\n# no heading\n```\n# Two\nworld"


def store_file(node: Node, text: str = TEXT, mutability: str = "mutable") -> RecordId:
    note = Note(text)
    return files.add_file(node.author, note, "notes.md", mutability, Via.LOCAL, node.now_us).record


def rewrite(node: Node, file: RecordId, text: str, base: str | None = None) -> int:
    return files.set_file(
        node.author, file, Note(text), base, "newer", via=Via.LOCAL, now_us=node.now_us
    )


def content(node: Node, file: RecordId) -> files.Content:
    return files.content_of(node.store, node.readers, node.seen(file), node.now_us)


@pytest.mark.parametrize("text", ["x", "\n\na\n", "# a\n# b\n", "é\r\n# b\r\n\x0b", "a\n" * 30_000])
def test_a_file_is_kept_to_the_byte(world: World, a: Node, text: str) -> None:
    assert "".join(files.split(text)) == text
    file = store_file(a, text)
    for node in world.everywhere():
        assert content(node, file).text == text


def test_a_changed_section_is_superseded_and_the_others_stay(world: World, a: Node) -> None:
    file = store_file(a)
    before = content(a, file)
    assert rewrite(a, file, TEXT.replace("hello", "goodbye")) == 1
    for node in world.everywhere():
        held = content(node, file)
        assert held.text == TEXT.replace("hello", "goodbye")
        assert [s.record for s in held.sections[::2]] == [s.record for s in before.sections[::2]]
        assert node.state(before.sections[1].record) == "superseded"
        assert node.search("hello") == []
        assert node.search("goodbye") == [held.sections[1].record]


def test_M_H7_a_change_of_an_older_text_is_refused(world: World, a: Node, b: Node) -> None:
    file = store_file(a)
    world.settle()
    read = content(b, file).hash
    rewrite(a, file, TEXT + "!", content(a, file).hash)
    world.settle()
    with pytest.raises(RefusedError, match="changed since"):
        rewrite(b, file, TEXT + "?", read)
    assert content(b, file).text == TEXT + "!"


def test_two_devices_change_one_file_and_nothing_is_lost(world: World, a: Node, b: Node) -> None:
    file = store_file(a)
    world.settle()
    rewrite(a, file, TEXT.replace("hello", "from A"))
    rewrite(b, file, TEXT.replace("world", "from B"))
    for node in world.everywhere():
        held = content(node, file)
        words = held.text + "".join(s.text for s in held.apart)
        assert "from A" in words, node.name
        assert "from B" in words, node.name
        assert held.apart, node.name
    assert_equal_nodes(*world.nodes.values())


def test_mutability_is_that_of_the_stored_file(world: World, a: Node, b: Node) -> None:
    file = store_file(a, "kept\n", "append")
    world.settle()
    with pytest.raises(RefusedError, match="append"):
        rewrite(b, file, "other\n")
    assert rewrite(b, file, "kept\nmore\n") == 1
    assert content(b, file).text == "kept\nmore\n"
    fixed = files.add_file(a.author, Note("x"), "f", "fixed", Via.LOCAL, a.now_us).record
    with pytest.raises(RefusedError, match="fixed"):
        rewrite(a, fixed, "xy")


def test_one_section_is_forgotten_and_the_rest_of_the_file_stays(world: World, a: Node) -> None:
    secret = seeded("a section").hex()
    file = store_file(a, f"# One\nkept\n# Two\n{secret}\n# Three\nkept too\n")
    world.settle()
    kept = [s.record for s in content(a, file).sections]
    a.forget(kept[1])
    for node in world.everywhere():
        held = content(node, file)
        assert held.text == "# One\nkept\n# Three\nkept too\n"
        assert held.gone == 1
        assert node.clean()
        assert found_in(node.home, secret) == []
    a.forget(file)
    for node in world.everywhere("d"):
        assert {node.state(record) for record in kept} == {"erased"}
