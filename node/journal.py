"""What the node says about itself: one JSON object per line.

1. No line holds memory text: fields are numbers, ids, codes and short words of our own; of an
   error, its class, code and place, never its message; of a library's message, its place only.
2. Every character beyond printable ASCII is escaped: a line cannot move a cursor (X-90).
3. Writing never holds the event loop up: lines wait for a thread, at most ``LINES_MAX`` of them;
   what does not fit is counted, and the count is told.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Final

from keys.errors import RoostError
from keys.ids import Id
from node.clock import Clock

LINES_MAX: Final = 1_000
WORD_CHARS_MAX: Final = 600
FRAMES_MAX: Final = 12
FILE_BYTES_MAX: Final = 1024 * 1024
FLUSH_S: Final = 1.0

Field = str | int | float | bool | Id | None
Write = Callable[[bytes], None]


class Level(IntEnum):
    """How much a line matters."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class Journal:
    """Takes lines from any thread and writes them in order."""

    def __init__(self, write: Write, clock: Clock, level: Level = Level.INFO) -> None:
        self._write = write
        self._clock = clock
        self._level = level
        self._lines: queue.Queue[bytes | None] = queue.Queue(LINES_MAX)
        self._lost = 0
        self._writer = threading.Thread(target=self._run, name="journal", daemon=True)
        self._writer.start()

    def debug(self, event: str, **fields: Field) -> None:
        """What only somebody who looks for a fault wants to know."""
        self._say(Level.DEBUG, event, fields)

    def info(self, event: str, **fields: Field) -> None:
        """What happened."""
        self._say(Level.INFO, event, fields)

    def warning(self, event: str, **fields: Field) -> None:
        """What a person should look at some time."""
        self._say(Level.WARNING, event, fields)

    def error(self, event: str, exc: BaseException | None = None, **fields: Field) -> None:
        """What should not have happened; of ``exc`` its class, code and place."""
        self._say(Level.ERROR, event, fields if exc is None else fields | describe(exc))

    def close(self) -> None:
        """Write what waits, for at most ``FLUSH_S``; more than once does nothing."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=FLUSH_S)
        self._writer.join(FLUSH_S)

    def _say(self, level: Level, event: str, fields: dict[str, Field]) -> None:
        if level < self._level:
            return
        try:
            self._lines.put_nowait(self._line(level, event, fields))
        except queue.Full:
            self._lost += 1

    def _line(self, level: Level, event: str, fields: dict[str, Field]) -> bytes:
        at = datetime.fromtimestamp(self._clock.now_us() / 1_000_000, UTC)
        line: dict[str, Field] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level.name.lower(),
            "event": event,
        }
        line |= {name: _plain(value) for name, value in fields.items()}
        return json.dumps(line, ensure_ascii=True).encode() + b"\n"

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # nowhere left to say it
                self._write(line)
                if self._lost:
                    lost, self._lost = self._lost, 0
                    self._write(self._line(Level.WARNING, "journal.lost", {"lines": lost}))


class BoundedFile:
    """A file of at most ``FILE_BYTES_MAX`` bytes and one old one beside it; closed to others."""

    def __init__(self, path: Path, bytes_max: int = FILE_BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._descriptor: int | None = None
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append one line; raises ``OSError``."""
        if self._descriptor is not None and self._size + len(line) > self._bytes_max:
            os.close(self._descriptor)
            self._descriptor = None
            self._path.replace(self._path.with_name(self._path.name + ".old"))
        if self._descriptor is None:
            self._descriptor = open_log(self._path)
            self._size = os.fstat(self._descriptor).st_size
        self._size += os.write(self._descriptor, line)


class LibraryHandler(logging.Handler):
    """Puts what libraries log into the journal: who, where and how bad, not what they said."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """One record."""
        place = f"{record.module}:{record.lineno}"
        exc = record.exc_info[1] if record.exc_info else None
        if record.levelno >= logging.ERROR:
            self._journal.error("library", exc, logger=record.name, place=place)
        else:
            self._journal.warning("library", logger=record.name, place=place)


def open_log(path: Path) -> int:
    """A descriptor that appends to ``path``, mode 0600; raises ``OSError``."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def write_stderr(line: bytes) -> None:
    """Write to the process's standard error, unbuffered."""
    os.write(2, line)


def describe(exc: BaseException) -> dict[str, Field]:
    """An error without its message, which may quote what it was about (X-95)."""
    fields: dict[str, Field] = {"error": type(exc).__name__, "trace": _frames(exc.__traceback__)}
    if isinstance(exc, RoostError):
        fields["code"] = exc.code
    if exc.__cause__ is not None:
        fields["cause"] = type(exc.__cause__).__name__
    return fields


def _frames(trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)[-FRAMES_MAX:]
    return " ".join(f"{Path(f.filename).stem}.{f.name}:{f.lineno}" for f in frames)


def _plain(value: Field) -> Field:
    if isinstance(value, Id):
        return value.short()
    if isinstance(value, str):
        return value[:WORD_CHARS_MAX]
    return value
