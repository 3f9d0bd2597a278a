"""Imports of what an export wrote."""

from crdt.entry import Via
from keys.ids import RecordId
from memory.moving import ImportRow, import_rows
from memory.notes import Note
from tests.support.memory_world import Node


def test_what_was_derived_keeps_its_source_though_an_export_lists_it_first(a: Node) -> None:
    """Else a forget of the source would leave the derived words (R31)."""
    older, newer = RecordId(b"\x01" + bytes(15)), RecordId(b"\x02" + bytes(15))
    rows = [
        ImportRow(2, Note("there is a code"), origin=newer, sources=(older,)),
        ImportRow(3, Note("the code is 4711"), origin=older),
    ]
    done = import_rows(a.author, rows, a.now_us)
    assert (len(done.records), done.skipped, done.problems) == (2, 0, [])
    source = next(r for r in done.records if a.seen(r).text == "the code is 4711")
    derived = next(r for r in done.records if r != source)
    assert a.seen(derived).detail["sources"] == [bytes(source)]
    assert a.seen(derived).via == Via.IMPORTER
