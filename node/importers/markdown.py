"""Markdown: a file or a folder of them, as basic-memory writes and as coding agents keep them.

1. A note of basic-memory (front matter with a ``permalink``, or lines of the two forms below) is an
   entity of the note's title. ``- [category] text #tag (context)`` is its property ``category``;
   ``- relation [[Target]] (context)`` is a relation to the note of that title.
2. Every other bullet with what is indented below it, and every paragraph, is an observation. Its
   source is ``FILE#HEADING:LINE``. Code blocks stay with the paragraph or bullet before them.
3. Names are looked at in their order, files before folders, so that the same folder always gives
   the same rows. Links, devices and hidden folders are not followed; ``FILES_MAX`` and
   ``DEPTH_MAX`` hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keys.errors import UsageError
from keys.limits import TEXT_BYTES_MAX
from memory.notes import clean
from node.importers.opening import plain_file, read_bounded
from node.importers.rows import (
    Problem,
    Row,
    entity_row,
    moment_of,
    name_of,
    property_row,
    relation_row,
    source_of,
    tags_of,
)

FILES_MAX: Final = 10_000
DEPTH_MAX: Final = 16
SUFFIXES: Final = (".md", ".markdown")

_OBSERVATION: Final = re.compile(r"[-*] \[([^\[\]()]{2,64})\] +(\S.*)")
_RELATION: Final = re.compile(r"[-*] ([^\[\]]{0,128}?) *\[\[([^\[\]]{1,256})\]\](?: *\(.*\))? *")
_BULLET: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)]) +(\S.*)")
_HEADING: Final = re.compile(r"(#{1,6}) +(\S.*?) *#* *")
_TAG: Final = re.compile(r"(?<!\S)#([^\s#]{1,64})")
_FENCES: Final = ("```", "~~~")


@dataclass
class Page:
    """One file: its front matter, where its body begins, and the lines of it."""

    place: str
    lines: list[str]
    first: int = 1
    about: dict[str, str | list[str]] = field(default_factory=dict)

    @property
    def title(self) -> str | None:
        """The name of the note; None where it is too long to be one."""
        given = self.about.get("title")
        return name_of(given if isinstance(given, str) and given else Path(self.place).stem)

    @property
    def is_note(self) -> bool:
        """Whether basic-memory wrote it (rule 1)."""
        return "permalink" in self.about or any(
            _OBSERVATION.fullmatch(line) or _RELATION.fullmatch(line) for line in self.lines
        )


def read_markdown(path: Path) -> Iterator[Row | Problem]:
    """The rows of a file or a folder; raises ``UsageError`` where it is neither."""
    files = list(_files(path))
    count = 0
    targets: dict[str, str] = {}
    for found in files:  # first the notes themselves, so that a link finds one further on
        page = None if isinstance(found, Problem) else _read(path, found)
        if isinstance(page, Page) and page.is_note and page.title:
            count += 1
            targets[page.title] = page.place
            row = entity_row(count, page.title, page.about.get("type"), source_of(page.place, 1))
            yield row | {"tags": tags_of(page.about.get("tags"), *row["tags"])}
    for found in files:
        page = found if isinstance(found, Problem) else _read(path, found)
        for item in [page] if isinstance(page, Problem) else _rows(page, targets):
            count += 1
            if isinstance(item, Problem):
                yield Problem(count, item.message, item.item, item.code)
            else:
                yield item | {"line": count}


def _files(path: Path) -> Iterator[str | Problem]:
    """The files below a folder, as names with slashes; the file itself as the empty name."""
    if path.is_symlink():
        raise UsageError(f"cannot read {path.name}: it is a link")
    if not path.is_dir():
        yield ""
        return
    stack, found = [""], 0
    while stack:
        folder = stack.pop()
        with os.scandir(path / folder) as entries:
            inside = sorted(entries, key=lambda e: e.name, reverse=True)
        for entry in reversed(inside):
            found += 1
            if found > FILES_MAX:
                raise UsageError(f"the folder has more than {FILES_MAX} names")
            place = f"{folder}{entry.name}"
            if entry.is_symlink():
                yield Problem(0, "a link; it is not followed", clean(place), "refused")
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                if place.count("/") >= DEPTH_MAX:
                    yield Problem(0, "a folder too deep below", clean(place), "refused")
                else:
                    stack.append(place + "/")
            elif entry.name.lower().endswith(SUFFIXES):
                yield place


def _read(path: Path, place: str) -> Page | Problem:
    shown = clean(place or path.name)
    try:
        with plain_file(path / place if place else path, TEXT_BYTES_MAX) as file:
            data = read_bounded(file, TEXT_BYTES_MAX)
        text = data.decode("utf-8-sig")
    except UsageError as exc:
        if not place:
            raise
        return Problem(0, exc.message, shown, "refused")
    except UnicodeDecodeError:
        return Problem(0, "not UTF-8", shown)
    page = Page(shown, text.replace("\r\n", "\n").split("\n"))
    _front_matter(page)
    return page


def _front_matter(page: Page) -> None:
    """Take ``key: value``, ``key: [a, b]`` and lists of ``- a`` off the head of a page."""
    if page.lines[0].rstrip() != "---":
        return
    ends = [i for i, line in enumerate(page.lines[1:1000], 1) if line.rstrip() in ("---", "...")]
    if not ends:
        return
    key = ""
    for line in page.lines[1 : ends[0]]:
        item = line.strip()
        if item.startswith("- ") and key:
            held = page.about.get(key)
            page.about[key] = [*(held if isinstance(held, list) else []), _bare(item[2:])]
        elif ":" in item and not line.startswith((" ", "\t", "#")):
            key, _, value = (part.strip() for part in item.partition(":"))
            listed = value.startswith("[") and value.endswith("]")
            page.about[key] = [_bare(v) for v in value[1:-1].split(",")] if listed else _bare(value)
    page.first, page.lines = ends[0] + 2, page.lines[ends[0] + 1 :]


def _bare(value: str) -> str:
    text = value.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _rows(page: Page, targets: dict[str, str]) -> Iterator[Row | Problem]:
    title = page.title if page.is_note else None
    if page.is_note and title is None:
        yield Problem(0, "the title is too long for a name", page.place)
        return
    for heading, line, text in _blocks(page):
        source = source_of(page.place, f"{heading}:{line}" if heading else line)
        said, link = _OBSERVATION.fullmatch(text), _RELATION.fullmatch(text)
        if title and said and said[1].strip().lower() != "x":
            row = property_row(0, title, " ".join(said[1].split()), said[2], source)
            yield _dated(page, row | {"tags": tags_of(_TAG.findall(said[2]))})
        elif title and link and (target := name_of(link[2].split("|")[0])):
            if target not in targets:
                targets[target] = page.place
                yield entity_row(0, target, None, source)
            yield _dated(
                page, relation_row(0, title, link[1].strip() or "links to", target, source)
            )
        else:
            bullet = _BULLET.match(text)
            words = text[bullet.start(1) :] if bullet else text
            tags = tags_of(page.about.get("tags"), *_TAG.findall(words))
            plain: Row = {"line": 0, "text": words, "tags": tags, "source": source}
            yield _dated(page, plain | {"provenance": "import"})


def _dated(page: Page, row: Row) -> Row:
    moment = moment_of(page.about.get("created"))
    return row if moment is None else row | {"recorded_at": moment}


def _blocks(page: Page) -> Iterator[tuple[str, int, str]]:
    """Bullets and paragraphs, each with the heading above it and the line where it begins."""
    heading, held, begins, fence = "", list[str](), 0, ""
    for number, line in enumerate([*page.lines, ""], page.first):
        mark = line.lstrip()[:3]
        if fence or mark in _FENCES:
            fence = "" if mark == fence else fence or mark
            begins = begins if held else number
            held.append(line)
            continue
        title = _HEADING.fullmatch(line)
        if held and (title or _BULLET.match(line) or not line.strip()):
            yield heading, begins, "\n".join(held).strip()
            held = []
        if title:
            heading = title[2]
        elif line.strip() and line.strip() not in ("---", "***", "___"):
            begins = begins if held else number
            held.append(line)
    if held:
        yield heading, begins, "\n".join(held).strip()
