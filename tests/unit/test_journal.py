"""The journal: structured, harmless, bounded, and silent about memories."""

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from keys.errors import StoreError
from keys.ids import AgentId
from node.journal import (
    LINES_MAX,
    WORD_CHARS_MAX,
    BoundedFile,
    Journal,
    Level,
    LibraryHandler,
)
from tests.support.clock import VirtualClock

SECRET = "zanzibar umbrella"


class Lines:
    """Where a journal writes in a test."""

    def __init__(self) -> None:
        self.raw = b""
        self.journal = Journal(self._write, VirtualClock(), Level.DEBUG)

    def _write(self, line: bytes) -> None:
        self.raw += line

    def read(self) -> list[dict[str, Any]]:
        """Everything said; the journal is closed."""
        self.journal.close()
        return [json.loads(line) for line in self.raw.splitlines()]


def test_a_line_has_a_time_a_level_an_event_and_its_fields() -> None:
    """One JSON object each, in the order they were said; ids are short."""
    lines = Lines()
    agent = AgentId(bytes(32))
    lines.journal.debug("a")
    lines.journal.info("b", agent=agent, count=3, ok=True, none=None)
    lines.journal.warning("c", word="x")
    said = lines.read()
    assert [line["level"] for line in said] == ["debug", "info", "warning"]
    assert said[1] == {
        "at": "2023-11-14T22:13:20.000Z",
        "level": "info",
        "event": "b",
        "agent": agent.short(),
        "count": 3,
        "ok": True,
        "none": None,
    }


def test_a_level_leaves_out_what_matters_less() -> None:
    """What is below it is not said."""
    lines: list[bytes] = []
    journal = Journal(lines.append, VirtualClock(), Level.WARNING)
    journal.info("no")
    journal.error("yes")
    journal.close()
    assert [json.loads(line)["event"] for line in lines] == ["yes"]


def test_X_90_control_characters_are_escaped() -> None:
    """A terminal that shows the journal does nothing but show it; a word has a bound."""
    lines = Lines()
    word = "\x1b]0;x\x07 \x9b31m \u202e \u200b \n" + "y" * WORD_CHARS_MAX
    lines.journal.info("event", word=word)
    (said,) = lines.read()
    assert said["word"] == word[:WORD_CHARS_MAX]
    raw = lines.raw
    assert raw.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in raw.rstrip(b"\n"))


def test_an_error_is_said_without_its_message() -> None:
    """Class, code, cause and place: a message may quote what it is about (X-95)."""
    lines = Lines()
    try:
        try:
            raise ValueError(SECRET)
        except ValueError as exc:
            raise StoreError(SECRET) from exc
    except StoreError as exc:
        lines.journal.error("failed", exc, verb="remember")
    (said,) = lines.read()
    assert SECRET not in json.dumps(said)
    assert (said["error"], said["code"], said["cause"]) == ("StoreError", "store", "ValueError")
    assert "test_journal.test_an_error_is_said_without_its_message:" in said["trace"]


def test_what_libraries_log_is_said_without_their_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where and how bad, nothing else."""
    lines = Lines()
    logger = logging.getLogger("library")
    monkeypatch.setattr(logger, "handlers", [LibraryHandler(lines.journal)])
    logger.info("no")
    logger.warning("about %s", SECRET)
    try:
        raise RuntimeError(SECRET)
    except RuntimeError:
        logger.exception(SECRET)
    said = lines.read()
    assert [(e["level"], e["logger"]) for e in said] == [
        ("warning", "library"),
        ("error", "library"),
    ]
    assert said[1]["error"] == "RuntimeError"
    assert SECRET not in json.dumps(said)


def test_nobody_waits_for_a_journal_that_cannot_write() -> None:
    """Lines beyond the bound are dropped, and their number is said when writing works again."""
    blocked, written = threading.Event(), []

    def write(line: bytes) -> None:
        blocked.wait(5)
        written.append(json.loads(line))

    journal = Journal(write, VirtualClock())
    for number in range(LINES_MAX + 200):
        journal.info("line", number=number)
    blocked.set()
    journal.close()
    lost = [line["lines"] for line in written if line["event"] == "journal.lost"]
    assert len(written) - len(lost) + sum(lost) == LINES_MAX + 200
    assert sum(lost) >= 199


def test_a_file_is_bounded_with_one_old_one(tmp_path: Path) -> None:
    """Nothing grows for ever; a line is never cut; what was there is continued."""
    path = tmp_path / "journal.log"
    path.write_bytes(b"before\n")
    log = BoundedFile(path, bytes_max=100)
    for number in range(50):
        log.write(b"line %04d of the log\n" % number)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal.log", "journal.log.old"]
    assert all(p.stat().st_size <= 100 for p in tmp_path.iterdir())
    assert path.read_bytes().endswith(b"line 0049 of the log\n")
    assert b"before" not in path.read_bytes()


def test_a_link_in_the_place_of_the_log_is_not_written_through(tmp_path: Path) -> None:
    """Somebody else's file stays as it is; the journal stays silent."""
    (tmp_path / "target").touch()
    (tmp_path / "journal.log").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match=r"loop|link"):
        BoundedFile(tmp_path / "journal.log").write(b"x\n")
    journal = Journal(BoundedFile(tmp_path / "journal.log").write, VirtualClock())
    journal.info("x")
    journal.close()
    assert (tmp_path / "target").read_bytes() == b""
