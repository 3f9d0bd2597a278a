"""No secret is written: what a commit takes is screened first (M-H24).

1. ``screen`` stands where a commit takes operations, so that every way of writing passes it: texts,
   titles, names, tags, reasons, of whatever kind. What arrives from a peer is the peer's, and the
   fold looks at nothing.
2. A detector that cannot be loaded, or fails, refuses the write.
3. An error says which type of secret stands where, and never what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from crdt.facts import TAG
from crdt.payload import Op, Verb
from keys.errors import RefusedError

if TYPE_CHECKING:
    from memory.detector import Finding
    from memory.notes import Note

_REASONS: Final = ("mark.", "next.")
# Words of this program's own and names of hex digits, at most so long, hold no secret.
_SHORT: Final = 3


class SecretError(RefusedError):
    """The text holds what looks like a secret; it was not stored."""

    code = "secret"


def screen(ops: Iterable[Op]) -> None:
    """Raise ``SecretError`` when an operation would store a secret."""
    puts = [op for op in ops if op.verb == Verb.PUT]
    texts = [op.value for op in puts if isinstance(op.value, str) and len(op.value) > _SHORT]
    texts += [op.key for op in puts if op.key.startswith(TAG)]
    if texts and _found("\n\n".join(texts)):
        for op in puts:
            if isinstance(op.value, str):
                refuse_secret(op.value, _place(op.key))
            if op.key.startswith(TAG):
                refuse_secret(op.key.removeprefix(TAG), "tag")


def refuse_secret(text: str, place: str) -> None:
    """Raise ``SecretError`` when a text holds a secret; ``place`` is what the text is."""
    found = _found(text)
    if found:
        kinds = ", ".join(dict.fromkeys(f.kind for f in found))
        where = f"{place}, from character {found[0].start + 1}"
        raise SecretError(
            f"this holds what looks like a secret: {kinds} ({where})",
            hint="leave it out; remember and import can replace it by a marker: --redact",
            secret=found[0].kind,
            place=where,
        )


def redacted_text(text: str) -> tuple[str, list[str]]:
    """The text with every secret replaced by a marker, and the types of those replaced."""
    found = _found(text)
    for finding in reversed(found):
        text = f"{text[: finding.start]}[redacted: {finding.kind}]{text[finding.end :]}"
    return text, [f.kind for f in found]


def redacted(note: Note) -> tuple[Note, list[str]]:
    """A note without secrets in its texts and tags, and the types of those replaced."""
    kinds: list[str] = []

    def clean(value: str) -> str:
        text, found = redacted_text(value)
        kinds.extend(found)
        return text

    texts = {k: clean(v) for k in _TEXTS if isinstance(v := getattr(note, k), str)}
    tags = tuple(clean(tag) for tag in note.tags)
    return (replace(note, **texts, tags=tags) if kinds else note), kinds  # type: ignore[arg-type]


_TEXTS: Final = ("text", "title", "source", "speaker", "session")


def _found(text: str) -> list[Finding]:
    try:
        # Loaded by the first write: what only reads does not compile its patterns.
        from memory.detector import find_secrets

        return find_secrets(text)
    except Exception as exc:
        raise SecretError(
            "the text could not be screened for secrets, so it is not stored",
            hint="the installation is damaged: roost doctor",
        ) from exc


def _place(key: str) -> str:
    """What a key's value is called: ``text``, ``title``; of a mark it is the reason."""
    return "reason" if key.startswith(_REASONS) else key.partition(".")[2] or key
