"""``make eval``: how much of the evidence for LoCoMo's questions search finds, as one JSON object.

One row per turn in a real store, one store per conversation, searched inside it; categories 1-4.
The data set is not part of this repository: name it with ``LOCOMO=FILE`` or ``$ROOST_LOCOMO``.

1. An evidence id is read as ``D<session>:<turn>``. Ids that are written otherwise are repaired:
   several in one string are taken apart, zeros in front and a colon after the D are dropped. One
   that names no turn is left out, and so is a question with none left: 1,536 of 1,540 remain.
2. recall@k: the share of a question's evidence among the first k. hit@k: whether any is.
   MRR: one by the place of the first. session recall@k: the share of the sessions with evidence
   among the first k different sessions. All are means over questions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from crdt.entry import Via
from memory import ranking, terms, turns
from memory.notes import Note
from memory.query import Filters, search
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import remember_batch
from tests.bench.world import BATCH, World

DATA_VARIABLE: Final = "ROOST_LOCOMO"
CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "inference", 4: "single-hop"}
RANKED: Final = 200  # deep enough for ten different sessions
_EVIDENCE: Final = re.compile(r"D:?(\d+):(\d+)")
_WHEN: Final = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its id in the data set, its session, and what was said."""

    id: str
    session: int
    speaker: str
    text: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, and the questions about them."""

    turns: list[Turn]
    questions: list[Question]


def load(path: Path) -> list[Conversation]:
    """The conversations of the data set."""
    return [_conversation(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def repaired(evidence: Iterable[str]) -> set[str]:
    """Evidence ids as they should have been written."""
    return {f"D{int(s)}:{int(t)}" for e in evidence for s, t in _EVIDENCE.findall(e)}


def _conversation(sample: dict[str, Any]) -> Conversation:
    held = sample["conversation"]
    numbers = sorted(
        int(key.removeprefix("session_")) for key, v in held.items() if isinstance(v, list)
    )
    said: list[Turn] = []
    for number in numbers:
        when = datetime.strptime(held[f"session_{number}_date_time"], _WHEN).replace(tzinfo=UTC)
        at_us = int(when.timestamp()) * 1_000_000
        said += [
            Turn(t["dia_id"], number, t["speaker"], t["text"], at_us)
            for t in held[f"session_{number}"]
        ]
    known = {turn.id for turn in said}
    asked = [
        Question(q["question"], q["category"], frozenset(repaired(q["evidence"]) & known))
        for q in sample["qa"]
        if q["category"] in CATEGORIES
    ]
    return Conversation(said, [q for q in asked if q.evidence])


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question gave: measures by name, and how long it took."""

    category: int
    measures: dict[str, float]
    took_ms: float


def run(conversation: Conversation) -> list[Answer]:
    """Store a conversation and ask its questions."""
    with tempfile.TemporaryDirectory() as folder:
        store, author = World(Path(folder)).open(0)
        store.connection.execute("PRAGMA synchronous=OFF")
        by_record: dict[bytes, Turn] = {}
        for i in range(0, len(conversation.turns), BATCH):
            part = conversation.turns[i : i + BATCH]
            notes = [
                Note(t.text, kind="turn", session=f"session {t.session}", speaker=t.speaker)
                for t in part
            ]
            done = remember_batch(author, notes, Via.LOCAL, part[-1].at_us)
            assert not done.refused, "a turn was refused"
            by_record |= {bytes(w.record): t for w, t in zip(done.written, part, strict=True)}
        answers = [_ask(store, q, by_record) for q in conversation.questions]
        store.connection.close()
    return answers


def _ask(store: AgentStore, question: Question, by_record: dict[bytes, Turn]) -> Answer:
    scope = Scope(store.agent, every_state=False)
    start = time.perf_counter()
    search(store, scope, question.text, Filters(), limit=10, now_us=2**50)
    took_ms = (time.perf_counter() - start) * 1000
    found = search(store, scope, question.text, Filters(), limit=RANKED, now_us=2**50)
    ranked = [by_record[bytes(seen.record)] for seen in found]
    return Answer(question.category, measures_of(ranked, question.evidence), took_ms)


def measures_of(ranked: Sequence[Turn], evidence: frozenset[str]) -> dict[str, float]:
    """Every measure of one ranking."""
    ids = [turn.id for turn in ranked]
    sessions = list(dict.fromkeys(turn.session for turn in ranked))
    wanted = {int(e[1:].partition(":")[0]) for e in evidence}
    first = next((i for i, turn in enumerate(ids, 1) if turn in evidence), None)
    out = {f"recall@{k}": len(evidence & set(ids[:k])) / len(evidence) for k in (1, 5, 10, 20)}
    out["hit@10"] = float(not evidence.isdisjoint(ids[:10]))
    out["mrr"] = 1 / first if first else 0.0
    for k in (5, 10):
        out[f"session_recall@{k}"] = len(wanted & set(sessions[:k])) / len(wanted)
    return out


def summary(answers: Sequence[Answer]) -> dict[str, Any]:
    """The means of all measures, and the 95th percentile of the time, in milliseconds."""
    names = answers[0].measures
    took = sorted(a.took_ms for a in answers)
    means = {name: round(fmean(a.measures[name] for a in answers), 4) for name in names}
    return {"questions": len(answers), **means, "p95_ms": round(took[int(len(took) * 0.95)], 1)}


def parameters() -> dict[str, Any]:
    """Everything that was chosen about ranking and could have been chosen otherwise."""
    return {
        "weights": {str(distance): weight for distance, weight in turns.WEIGHTS.items()},
        "k1": turns.K1,
        "candidates": ranking.CANDIDATES,
        "common": [ranking.COMMON_MATCHES, ranking.COMMON_SCORE],
        "about_equal": ranking.ABOUT_EQUAL,
        "floor": [ranking.FLOOR_FREE, ranking.FLOOR_SHARE],
        "stop_words": sorted(terms.STOP_WORDS),
        "recency_words": sorted(terms.RECENCY_WORDS),
    }


def report(chosen: Sequence[Answer], reported: Sequence[Answer]) -> dict[str, Any]:
    """Both halves and all of it, each as a whole and per category."""
    packed = json.dumps(parameters(), sort_keys=True).encode()
    out: dict[str, Any] = {
        "parameters": parameters(),
        "parameters_hash": blake2b(packed, digest_size=8).hexdigest(),
    }
    halves = {"chosen_on": chosen, "reported": reported, "all": [*chosen, *reported]}
    for name, answers in halves.items():
        if answers:
            out[name] = summary(answers) | {
                word: summary(part)
                for category, word in CATEGORIES.items()
                if (part := [a for a in answers if a.category == category])
            }
    return out


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where the data set is not there."""
    parser = argparse.ArgumentParser(prog="make eval")
    parser.add_argument("--data", default=os.environ.get(DATA_VARIABLE, ""))
    parser.add_argument("--choose", type=_numbers, default=[0, 2, 4, 6, 8])
    parser.add_argument("--report", type=_numbers, default=[1, 3, 5, 7, 9])
    wanted = parser.parse_args(arguments)
    path = Path(wanted.data)
    if not path.is_file():
        print(
            f"no LoCoMo data set at {wanted.data!r}\nhint: it is not part of this repository;"
            f" make eval LOCOMO=/path/to/locomo10.json, or set {DATA_VARIABLE}",
            file=sys.stderr,
        )
        return 2
    conversations = load(path)
    halves = [
        [answer for i in chosen for answer in run(conversations[i])]
        for chosen in (wanted.choose, wanted.report)
    ]
    print(json.dumps(report(*halves), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
