"""Files: verbatim text in sections, each a record of its own, so that one can be forgotten (R13).

1. The text of a file is its sections one after the other, to the byte.
2. A file says how it may change: ``mutable``, ``append`` (what is there stays), ``fixed``.
3. Sections that stay the same keep their records; a changed one is superseded by the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import Op, put
from keys.errors import RefusedError, UsageError
from keys.ids import RecordId
from keys.limits import RECORD_BYTES, TEXT_BYTES_MAX
from keys.signing import random_bytes
from memory.authoring import Author, Commit
from memory.kinds import check_name, live_named, of_kind
from memory.notes import Note, check_note, check_reason, clean, creation_ops
from memory.parts import all_of
from memory.query import Filters, Seen
from memory.scope import Scope
from memory.shapes import MUTABILITIES
from memory.store import AgentStore
from memory.writing import MARK_ID_BYTES, Written

SECTION_CHARS_MAX: Final = 16_384
SECTIONS_MAX: Final = 8_192


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds for a reader.

    ``gone``: sections that are listed and not there for him. ``apart``: live sections that the list
    does not name, since two devices changed it at once.
    """

    text: str
    sections: tuple[Seen, ...]
    gone: int
    apart: tuple[Seen, ...]

    @property
    def hash(self) -> str:
        """What a change of the file names as its base: BLAKE2b-128 of the text, in hex."""
        return blake2b(self.text.encode(), digest_size=16).hexdigest()


def split(text: str) -> list[str]:
    """A text as sections: at headings, and at lines where one grows too long. ``"".join`` is it."""
    out: list[str] = []
    part, fenced = "", False
    for line in text.splitlines(keepends=True):
        starts = line.startswith("#") and not fenced
        if part.strip() and (starts or len(part) + len(line) > SECTION_CHARS_MAX):
            out.append(part)
            part = ""
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        part += line
    if part:
        if out and not part.strip():
            out[-1] += part
        else:
            out.append(part)
    return out


def content_of(store: AgentStore, scope: Scope, file: Seen, now_us: int) -> Content:
    """What a file holds, as ``scope`` sees it."""
    held = {
        s.record: s
        for s in all_of(store, scope, Filters(kinds=("section",), owner=file.record), now_us)
        if s.state_at(now_us) in ("new", "current")
    }
    listed = _listed(file)
    sections = [held[r] for r in listed if r in held]
    apart = sorted((s for r, s in held.items() if r not in set(listed)), key=lambda s: s.record)
    text = "".join(s.text for s in sections)
    return Content(text, tuple(sections), len(listed) - len(sections), tuple(apart))


def _listed(file: Seen) -> list[RecordId]:
    packed = file.detail.get("fields", {}).get("sections")
    if not isinstance(packed, bytes) or len(packed) % RECORD_BYTES:
        return []
    return [RecordId(packed[i : i + RECORD_BYTES]) for i in range(0, len(packed), RECORD_BYTES)]


def add_file(
    author: Author, note: Note, name: str, mutability: str, via: Via, now_us: int
) -> Written:
    """Store a text verbatim under a name; raises ``UsageError`` where the name is taken."""
    if mutability not in MUTABILITIES:
        raise UsageError(f"no mutability {mutability[:32]!r}", hint=", ".join(MUTABILITIES))
    title = check_name("file", name)
    if live_named(author.store, "file", title, now_us):
        raise UsageError("a file of this name is here", hint="roost file set AGENT FILE …")
    text = _check_text(note.text)
    extra = (("body.mutability", mutability),)
    head = check_note(replace(note, text=title, kind="file", extra=extra))
    with author.commit(via, now_us) as commit:
        file = commit.create(creation_ops(head))
        made = [_section(commit, file, part, note) for part in split(text)]
        commit.edit(file, [put("field.sections", b"".join(made))])
    return Written(file, created=True)


def set_file(  # noqa: PLR0913 - what a change of a file is made of
    author: Author,
    file: RecordId,
    note: Note,
    base: str | None,
    reason: str,
    *,
    via: Via,
    now_us: int,
) -> int:
    """Give a file another text; how many sections changed.

    ``base`` is the hash of the text that the writer had read: of another, nothing is written
    (M-H7). Raises ``RefusedError`` where the file may not change so.
    """
    store = author.store
    seen = of_kind(store, file, ("file",), now_us)
    held = content_of(store, Scope(store.agent, every_state=True), seen, now_us)
    text = _check_text(note.text)
    _may_become(seen, held, text, base)
    reason = check_reason(reason)
    parts = split(text)
    kept: dict[str, list[RecordId]] = {}
    for section in reversed(held.sections):
        kept.setdefault(section.text, []).append(section.record)
    with author.commit(via, now_us) as commit:
        placed: list[RecordId] = []
        for part in parts:
            same = kept.get(part)
            placed.append(same.pop() if same else _section(commit, file, part, note))
        stays = set(placed)
        gone = [s.record for s in (*held.sections, *held.apart) if s.record not in stays]
        made = [record for record in placed if record not in {s.record for s in held.sections}]
        for i, record in enumerate(gone):
            commit.edit(record, [_ends(made[i] if i < len(made) else None, reason)])
        commit.edit(file, [put("field.sections", b"".join(placed))])
    return len(made) + max(0, len(gone) - len(made))


def _may_become(seen: Seen, held: Content, text: str, base: str | None) -> None:
    if base is not None and base != held.hash:
        raise RefusedError(
            "the file has changed since it was read",
            hint="read it again and make the change there: roost file show AGENT FILE",
            record=str(seen.record),
            hash=held.hash,
        )
    mutability = seen.detail["body"].get("mutability")
    if mutability == "fixed" or (mutability == "append" and not text.startswith(held.text)):
        raise RefusedError(f"this file is {mutability}", record=str(seen.record))


def _ends(successor: RecordId | None, reason: str) -> Op:
    if successor is not None:
        return put(next_key(successor), reason)
    return put(f"mark.{random_bytes(MARK_ID_BYTES).hex()}", f"deprecated {reason}")


def _section(commit: Commit, file: RecordId, part: str, note: Note) -> RecordId:
    made = Note(
        part,
        kind="section",
        provenance=note.provenance,
        source=note.source,
        extra=(("body.file", bytes(file)),),
    )
    return commit.create(creation_ops(made))


def _check_text(text: str) -> str:
    text = clean(text)
    if not text.strip():
        raise UsageError("the file is empty")
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise UsageError(f"a file has at most {TEXT_BYTES_MAX} bytes")
    if len(split(text)) > SECTIONS_MAX:
        raise UsageError(f"a file has at most {SECTIONS_MAX} sections")
    return text
