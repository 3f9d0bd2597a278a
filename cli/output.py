"""The only place that writes to standard output or standard error.

1. Every text passes ``visible`` on its way out; a style is added here and never comes with a text.
2. With ``--json`` standard output carries JSON and nothing else, standard error an error object.
3. Results go to standard output. Progress, notes and prompts go to standard error, progress and
   colours only where that is a terminal.
4. Both streams are UTF-8, whatever the locale says.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from cli.text import clip, json_escaped, json_line, pad, visible, visible_lines, width
from keys.errors import RoostError

_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_GAP: Final = "  "


class Span(NamedTuple):
    """A text with a style; the text is made visible like every other."""

    text: str
    style: str


Part = str | Span
Row = Sequence[Part]


def bold(text: str) -> Span:
    """What a line is about."""
    return Span(text, "bold")


def dim(text: str) -> Span:
    """What is beside the point."""
    return Span(text, "dim")


class Output:
    """What one command says, as text or as JSON."""

    def __init__(self) -> None:
        self.json = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads standard output."""
        return not self.json and sys.stdout.isatty()

    @property
    def can_ask(self) -> bool:
        """Whether a person can be asked."""
        return not self.json and sys.stdin.isatty() and sys.stderr.isatty()

    def result(self, value: Mapping[str, object], show: Callable[[], None]) -> None:
        """The result of a command: the value itself with ``--json``, else what ``show`` writes."""
        if self.json:
            self.event(value)
        else:
            show()

    def event(self, value: Mapping[str, object]) -> None:
        """One JSON object on a line of its own, at once."""
        print(json_line(value), flush=True)

    def raw(self, line: str) -> None:
        """A line of JSON that is passed on unchanged, but for a terminal, which gets escapes."""
        print(json_escaped(line) if sys.stdout.isatty() else line)

    def script(self, text: str) -> None:
        """A text of our own for another program, as it is."""
        print(text)

    def say(self, text: str) -> None:
        """What happens right now, at once; of several lines where there are line ends."""
        if not self.json:
            self.block(text, indent=0)
            sys.stdout.flush()

    def line(self, *parts: Part) -> None:
        """One line."""
        print(_join(parts, sys.stdout))

    def block(self, text: str, indent: int = 2) -> None:
        """A text of several lines, set in, so that none of it passes for ours."""
        for line in visible_lines(text):
            print(" " * indent + line)

    def fields(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and values, aligned."""
        columns = max((width(visible(name)) for name, _ in rows), default=0)
        for name, value in rows:
            self.line("  ", dim(pad(visible(name), columns)), _GAP, value)

    def table(self, header: Sequence[str], rows: Sequence[Row]) -> None:
        """Aligned columns; on a terminal the last one is cut to fit."""
        cells = [[_visible(part) for part in row] for row in rows]
        columns = [
            max([width(name), *(width(_text(row[i])) for row in cells)])
            for i, name in enumerate(header)
        ]
        if self.on_terminal:
            before = sum(columns[:-1]) + len(_GAP) * (len(columns) - 1)
            columns[-1] = max(os.get_terminal_size(sys.stdout.fileno()).columns - before, 20)
        first: list[Part] = [dim(name.upper()) for name in header]
        for row in (first, *cells):
            padded = [
                _with_text(part, pad(clip(_text(part), column), column))
                for part, column in zip(row, columns, strict=True)
            ]
            padded[-1] = _with_text(padded[-1], _text(padded[-1]).rstrip())
            self.line(*_between(padded))

    def next_steps(self, *steps: tuple[str, str]) -> None:
        """What somebody new does now: commands, each with what it is for."""
        if self.json:
            return
        columns = max(width(visible(command)) for command, _ in steps)
        self.line()
        for index, (command, purpose) in enumerate(steps):
            lead = "next: " if index == 0 else "      "
            self.line(lead, bold(pad(visible(command), columns)), _GAP, dim(purpose))

    def note(self, text: str) -> None:
        """A remark beside the result."""
        if not self.json:
            _to_stderr(Span(text, "dim"))

    def error(self, error: RoostError) -> None:
        """What went wrong and what to do, in the form that was asked for."""
        if self.json:
            print(json_line({"error": error.as_dict()}), file=sys.stderr, flush=True)
            return
        _to_stderr(Span("error: ", "red"), error.message.rstrip("."))
        candidates = error.details.get("candidates")
        if isinstance(candidates, list):
            for candidate in candidates:
                _to_stderr("  ", _candidate(candidate))
        if error.hint:
            _to_stderr(Span("hint: ", "yellow"), error.hint.rstrip("."))

    def ask(self, question: str) -> str:
        """What a person answers; empty at the end of the input."""
        print(visible(question), end=" ", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip()

    def confirm(self, question: str) -> bool:
        """Whether a person says yes."""
        return self.ask(f"{question} [y/N]").lower() in {"y", "yes"}

    def qr(self, text: str) -> None:
        """A QR code, on a terminal only."""
        if not self.on_terminal:
            return
        import segno

        segno.make(text, error="l", micro=False).terminal(out=sys.stdout, border=2, compact=True)

    @contextlib.contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar for long work; gives the function that says how much more is done."""
        if self.json or not sys.stderr.isatty():
            yield lambda advance: None
            return
        from rich import progress as rich_progress
        from rich.console import Console

        columns = (
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            *([rich_progress.BarColumn(), rich_progress.TaskProgressColumn()] if total else []),
            rich_progress.TimeElapsedColumn(),
        )
        console = Console(file=sys.stderr)
        with rich_progress.Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(visible(what), total=total)
            yield lambda advance: bar.advance(task, advance)


def silence_stdout() -> None:
    """Nobody reads any more: let what is still buffered go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def pretty_path(path: Path) -> str:
    """A path with ``~`` for the account's own directory."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except ValueError:
        return str(path)


def _to_stderr(*parts: Part) -> None:
    print(_join(parts, sys.stderr), file=sys.stderr, flush=True)


def _join(parts: Sequence[Part], stream: TextIO) -> str:
    coloured = stream.isatty() and not os.environ.get("NO_COLOR")
    return "".join(_paint(part, coloured) for part in parts)


def _paint(part: Part, coloured: bool) -> str:
    text = visible(_text(part))
    if isinstance(part, str) or not (coloured and text):
        return text
    return f"\x1b[{_STYLES[part.style]}m{text}\x1b[0m"


def _text(part: Part) -> str:
    return part if isinstance(part, str) else part.text


def _with_text(part: Part, text: str) -> Part:
    return text if isinstance(part, str) else Span(text, part.style)


def _visible(part: Part) -> Part:
    return _with_text(part, visible(_text(part)))


def _between(parts: Sequence[Part]) -> list[Part]:
    spread: list[Part] = []
    for part in parts:
        spread += [part, _GAP]
    return spread[:-1]


def _candidate(candidate: object) -> str:
    if isinstance(candidate, Mapping):
        return _GAP.join(str(value) for value in candidate.values())
    return str(candidate)
