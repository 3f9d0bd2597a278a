"""The LoCoMo data set: long conversations of two people, as published (``locomo10.json``).

The file is a list of conversations. Of each only ``conversation`` is read: the dialogue, in
``session_1``, ``session_2``, …, each with its ``session_N_date_time``. Questions, summaries and
observations are what a memory is measured with; they are not imported.

Each dialogue turn becomes one row:

- ``kind`` is ``turn``; ``speaker``; ``source`` is the turn's id exactly as in the file (``D1:3``);
- ``session`` is ``<sample id>/session_N``: the same ids come back in every conversation;
- ``valid_from`` is when its session began. The file names no zone; its times are read as UTC;
- ``text`` is what was said. Where a picture was sent, its caption follows on a line of its own as
  ``[image: CAPTION]``; its address and the words it was searched with are left out.

A malformed item is a ``Problem`` that names its place; everything else is imported. ``line`` counts
the dialogue items of the whole file, so it does not depend on which conversation is picked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from keys.errors import UsageError
from keys.limits import NAME_BYTES_MAX, SOURCE_BYTES_MAX, TEXT_BYTES_MAX
from node.importers.rows import Problem, Row
from node.jsontext import parse_json

FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # the published file has 2.8 MB; it is read whole

_PIECE_BYTES: Final = 64 * 1024

_SESSION: Final = re.compile(r"session_([1-9]\d{0,5})")
_MOMENT: Final = re.compile(r"(\d{1,2}):(\d\d) (am|pm) on (\d{1,2}) ([A-Za-z]+), (\d{4})")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip


def read_locomo(path: Path, conversation: str | None = None) -> Iterator[Row | Problem]:
    """The turns of one conversation (its sample id, or its place from 0), or of all.

    Raises ``UsageError`` where the file as a whole is something else, or has no such conversation.
    """
    samples = _samples(path)
    picked = None if conversation is None else _pick(samples, conversation)
    return _rows(samples, picked)


def session_moment(text: str) -> str | None:
    """``1:56 pm on 8 May, 2023`` as ISO 8601 in UTC, or None for anything else."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, half, day, month, year = match.groups()
    if not 1 <= int(hour) <= 12 or month.lower() not in _MONTHS:
        return None
    hour24 = int(hour) % 12 + (12 if half == "pm" else 0)
    try:
        moment = datetime(
            int(year), _MONTHS.index(month.lower()) + 1, int(day), hour24, int(minute), tzinfo=UTC
        )
    except ValueError:
        return None
    return moment.isoformat()


def _samples(path: Path) -> list[Any]:
    hint = "LoCoMo is one JSON list of conversations, such as locomo10.json"
    with path.open("rb") as file:
        # In pieces: ``read`` sets aside all that it may read.
        pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
        data = b"".join(islice(pieces, FILE_BYTES_MAX // _PIECE_BYTES + 1))
    if len(data) > FILE_BYTES_MAX:
        raise UsageError(f"the file is larger than {FILE_BYTES_MAX} bytes", hint=hint)
    try:
        samples = parse_json(data)
    except ValueError as exc:
        raise UsageError(f"not a LoCoMo file: {exc}", hint=hint) from exc
    if not isinstance(samples, list):
        raise UsageError("not a LoCoMo file: no list of conversations", hint=hint)
    return samples


def _pick(samples: list[Any], wanted: str) -> int:
    names = [_sample_id(sample) for sample in samples]
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and int(wanted) < len(samples):
        return int(wanted)
    raise UsageError(
        f"the file has no conversation {wanted!r}",
        hint=f"count from 0 to {len(samples) - 1}, or name its sample id",
        candidates=[name for name in names if name is not None],
    )


def _sample_id(sample: object) -> str | None:
    found = sample.get("sample_id") if isinstance(sample, dict) else None
    return found if _is_text(found, NAME_BYTES_MAX) else None


def _rows(samples: list[Any], picked: int | None) -> Iterator[Row | Problem]:
    count = 0
    for index, sample in enumerate(samples):
        for found in _conversation(index, sample, count):
            count = found.line if isinstance(found, Problem) else found["line"]
            if picked in (None, index):
                yield found


def _conversation(index: int, sample: object, count: int) -> Iterator[Row | Problem]:
    name = _sample_id(sample)
    sessions = sample.get("conversation") if isinstance(sample, dict) else None
    if name is None or not isinstance(sessions, dict):
        what = "has no sample_id" if name is None else "has no dialogue"
        yield Problem(count, f"the conversation {what}", f"[{index}]")
        return
    numbers = sorted(int(m[1]) for key in sessions if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        session, turns = f"{name}/session_{number}", sessions[f"session_{number}"]
        if not isinstance(turns, list):
            yield Problem(count, "the session is no list of turns", session)
            continue
        said_at = sessions.get(f"session_{number}_date_time")
        moment = session_moment(said_at) if isinstance(said_at, str) else None
        if moment is None and turns:
            yield Problem(count, "the session has no readable date; its turns get none", session)
        for place, turn in enumerate(turns):
            count += 1
            yield _turn(turn, session, moment, count, place)


def _turn(turn: object, session: str, moment: str | None, count: int, place: int) -> Row | Problem:
    problem = _fault(turn)
    if problem or not isinstance(turn, dict):
        return Problem(count, problem or "the turn is no object", f"{session}[{place}]")
    row: Row = {
        "line": count,
        "kind": "turn",
        "text": _text(turn["text"], turn.get("blip_caption")),
        "speaker": turn["speaker"],
        "source": turn["dia_id"],
        "session": session,
    }
    return row if moment is None else row | {"valid_from": moment}


def _fault(turn: object) -> str | None:
    """What is wrong with a turn, or None."""
    if not isinstance(turn, dict):
        return "the turn is no object"
    for key, bound in (("dia_id", SOURCE_BYTES_MAX), ("speaker", NAME_BYTES_MAX)):
        if not _is_text(turn.get(key), bound):
            return f"{key} is not a text of 1 to {bound} bytes"
    text, caption = turn.get("text"), turn.get("blip_caption")
    if not isinstance(text, str):
        return "text is missing or no text"
    if caption is not None and not isinstance(caption, str):
        return "blip_caption is no text"
    if not _is_text(_text(text, caption), TEXT_BYTES_MAX):
        return f"text is not 1 to {TEXT_BYTES_MAX} bytes"
    return None


def _text(said: str, caption: str | None) -> str:
    picture = f"[image: {caption.strip()}]" if caption and caption.strip() else ""
    return "\n".join(part for part in (said.strip() and said, picture) if part)


def _is_text(value: object, bytes_max: int) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value.encode()) <= bytes_max
