"""What must hold of a file after its process, or its machine, has died."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memory.audit import quick_check, verify_log
from tests.crash.program import open_author, text_of
from tests.support.byte_scan import found_in


class Held:
    """What one file has acknowledged so far."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.places: set[tuple[int, bytes]] = set()
        self.forgotten: set[int] = set()
        self.written: set[int] = set()

    def acknowledge(self, lines: Iterable[str]) -> None:
        """Take what the process said: ``ack SEQ HASH WHAT NUMBER``."""
        for line in lines:
            word, seq, entry, what, *number = line.split()
            assert word == "ack", line
            self.places.add((int(seq), bytes.fromhex(entry)))
            if what == "wrote":
                self.written.add(int(number[0]))
            elif what == "forgot":
                self.forgotten.add(int(number[0]))

    def check(self, why: str, *, deep: bool = True) -> set[tuple[int, bytes]]:
        """No acknowledged write lost, no place signed twice, no half forget; what is held."""
        author = open_author(self.folder, self.name)
        store = author.store
        try:
            if deep:
                assert quick_check(store) == "ok", why
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
            states = store.connection.execute("SELECT text, state FROM record").fetchall()
            live = {int(text.rsplit(" ", 1)[1]) for text, state in states if state != "erased"}
            assert not live & self.forgotten, why
            assert self.written - self.forgotten - live <= self._doomed(states), why
            assert store.clean(), why
            assert all(text == "" for text, state in states if state == "erased"), why
        finally:
            store.connection.close()
        return held

    @staticmethod
    def _doomed(states: list[tuple[str, str]]) -> set[int]:
        """An unacknowledged forget may have been done: as many may be missing as are erased."""
        erased = sum(state == "erased" for _, state in states)
        return set(range(10**6)) if erased else set()

    def bytes_gone(self, why: str) -> None:
        """Nothing of what was forgotten is in any file."""
        texts = [text_of(number) for number in self.forgotten]
        assert found_in(self.folder, *(text.split()[2] for text in texts)) == [], why
