"""What must hold of a file after its process, or its machine, has died."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memory.audit import verify_log
from tests.crash.program import open_author, text_of
from tests.support.byte_scan import found_in
from tests.support.memory_checks import intact


class Held:
    """What one file has acknowledged so far."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.places: set[tuple[int, bytes]] = set()
        self.forgotten: set[int] = set()
        self.written: dict[bytes, int] = {}

    def acknowledge(self, lines: Iterable[str]) -> None:
        """Take what the process said: ``ack SEQ HASH WHAT``, and of what: number and record."""
        for line in lines:
            word, seq, entry, what, *of = line.split()
            assert word == "ack", line
            self.places.add((int(seq), bytes.fromhex(entry)))
            if what == "wrote":
                self.written[bytes.fromhex(of[1])] = int(of[0])
            elif what == "forgot":
                self.forgotten.add(int(of[0]))

    def check(self, why: str, *, deep: bool = True) -> set[tuple[int, bytes]]:
        """No acknowledged write lost, no place signed twice, no half forget; what is held."""
        author = open_author(self.folder, self.name)
        store = author.store
        try:
            if deep:
                assert intact(store), why
                assert verify_log(store).problems == [], why
                before, after = store.rebuild()
                assert before == after, why
            rows = store.connection.execute("SELECT log, seq, hash FROM entry").fetchall()
            assert len({(log, seq) for log, seq, _ in rows}) == len(rows), why
            logs = store.connection.execute("SELECT count(*) FROM log").fetchone()[0]
            assert logs <= 1, f"{why}: R38: a kill makes no incarnation"
            held = {(seq, bytes(entry)) for _, seq, entry in rows}
            lost = self.places - held
            assert not lost, f"{why}: lost {sorted(seq for seq, _ in lost)}"
            shown = {
                bytes(record): "" if state == "erased" else text
                for record, text, state in store.connection.execute(
                    "SELECT record, text, state FROM record"
                )
            }
            for record, number in self.written.items():
                # A forget that was done and not acknowledged may have erased it; it is there.
                assert record in shown, f"{why}: note {number} is not in the read model"
                assert shown[record] in ("", text_of(number)), f"{why}: note {number} is another"
                assert number not in self.forgotten or not shown[record], f"{why}: {number} is back"
            assert store.clean(), why
        finally:
            store.connection.close()
        return held

    def bytes_gone(self, why: str) -> None:
        """Nothing of what was forgotten is in any file."""
        texts = [text_of(number) for number in self.forgotten]
        assert found_in(self.folder, *(text.split()[2] for text in texts)) == [], why
