"""Which memories say nearly what a new text says: retired and replaced ones first, then live ones.

1. They are listed, by id and state, and nothing is refused for it: a value that may not return is
   decided by its fingerprint alone (R27).
2. Of an erased value only a keyed fingerprint is left, which knows no nearness: erased records are
   never among them. Nor is what waits for a person, or is withheld.
3. Another number, another name or a negation makes it another statement, however near the words.
4. The word indexes find the candidates, by the words that few memories hold. Where every
   word is common nothing is listed, and a write costs no more for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from keys.ids import RecordId
from memory.shapes import COMPARED_KINDS
from memory.store import AgentStore
from memory.terms import STOP_WORDS, match_expression, query_terms

NEAR_MAX: Final = 3
NEAR_STATES: Final = ("deprecated", "superseded", "new", "current")
LIKE_MIN: Final = 0.6  # of the words of both texts together, as Dice counts them
WORDS_MAX: Final = 64  # a longer text says too much to be nearly another
_INDEXES: Final = ("withheld_words", "words")  # what was retired, and what is live
_LOOKED_AT: Final = 8
_ASKED: Final = 6  # words, the longest ones
_TOO_COMMON: Final = 50  # records with a word beyond which it finds nothing in particular

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_END: Final = re.compile(r"[.!?\n]")
_ENDING: Final = re.compile(r"(?:ing|ies|ed|es|en|er|ly|em|et|st|s|e|t|n)$")
_STEM_MIN: Final = 3
_NUMERALS: Final = frozenset({
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "hundred", "thousand", "first", "second", "third", "monday", "tuesday", "wednesday",
    "thursday", "friday", "saturday", "sunday", "eins", "zwei", "drei", "vier", "fünf", "sechs",
    "sieben", "acht", "neun", "zehn", "elf", "zwölf", "montag", "dienstag", "mittwoch",
    "donnerstag", "freitag", "samstag", "sonntag",
})  # fmt: skip
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot",
    "longer", "stopped", "nicht", "kein", "keine", "keinen", "keinem", "nie", "niemals", "niemand",
    "ohne", "nichts", "pas", "jamais", "nunca",
})  # fmt: skip
_OPPOSITES: Final = tuple(
    frozenset(pair)
    for pair in (
        ("hate", "like"), ("hate", "love"), ("dislike", "like"), ("open", "close"),
        ("before", "after"), ("always", "never"), ("left", "right"), ("on", "off"),
        ("morning", "evening"), ("more", "less"),
    )
)  # fmt: skip
_LITTLE: Final = STOP_WORDS | frozenset(
    ("der", "die", "das", "ein", "eine", "einen", "und", "in", "im", "ist", "sind", "hat", "mit")
)


@dataclass(frozen=True, slots=True)
class Near:
    """A memory that says nearly the same, and the state it is in."""

    record: RecordId
    state: str


@dataclass(frozen=True, slots=True)
class Gist:
    """What a text says, as nearness compares it."""

    words: frozenset[str]
    names: frozenset[str]
    opening: str | None  # the first word, whose capital says nothing
    numbers: frozenset[str]
    negated: bool


def near_records(
    store: AgentStore, text: str, *, but: RecordId, kind: str, now_us: int
) -> list[Near]:
    """At most ``NEAR_MAX`` memories of a kind that say nearly what ``text`` says."""
    gist = gist_of(text)
    if kind not in COMPARED_KINDS or not 2 <= len(gist.words) <= WORDS_MAX:
        return []
    found: list[tuple[int, float, RecordId, str]] = []
    for record, state, held in _candidates(store, text, kind, now_us):
        likeness = like(gist, gist_of(held)) if record != but else 0.0
        if likeness >= LIKE_MIN:
            found.append((NEAR_STATES.index(state) // 2, -likeness, record, state))
    return [Near(record, state) for _, _, record, state in sorted(found)[:NEAR_MAX]]


def _candidates(
    store: AgentStore, text: str, kind: str, now_us: int
) -> list[tuple[RecordId, str, str]]:
    """``(record, state, text)`` of those that share most of the rarer words of a text."""
    shared: Counter[int] = Counter()
    for term in sorted(query_terms(text), key=len, reverse=True)[:_ASKED]:
        for index in _INDEXES:
            holders = store.connection.execute(
                f"SELECT rowid FROM {index} WHERE {index} MATCH ? LIMIT ?",  # noqa: S608 - constants
                (match_expression([term]), _TOO_COMMON + 1),
            ).fetchall()
            if len(holders) <= _TOO_COMMON:
                shared.update(n for (n,) in holders)
    best = sorted(shared, key=lambda n: (-shared[n], n))[:_LOOKED_AT]
    rows = store.connection.execute(
        "SELECT record, state, text FROM record"  # noqa: S608 - numbers
        f" WHERE n IN ({', '.join(map(str, best))})"
        " AND kind = ? AND duplicate IS NULL AND (expires IS NULL OR expires > ?)",
        (kind, now_us),
    )
    return [(RecordId(r), state, held) for r, state, held in rows if state in NEAR_STATES]


def gist_of(text: str) -> Gist:
    """The words, names and numbers of a text, and whether it denies."""
    words: set[str] = set()
    names: set[str] = set()
    numbers = set(_NUMBER.findall(text))
    opening: str | None = None
    negated, before = False, 0
    for place, match in enumerate(_WORD.finditer(text)):
        word = match.group().casefold().replace("\u2019", "'")
        negated = negated or word in _NEGATIONS or word.endswith("n't")
        starts = place == 0 or _END.search(text, before, match.start()) is not None
        before = match.end()
        if word in _NUMERALS:
            numbers.add(word)
        if word in _LITTLE:
            continue
        stem = _stem(word)
        words.add(stem)
        if place == 0:
            opening = stem
        elif not starts and match.group()[0].isupper():
            names.add(stem)
    return Gist(frozenset(words), frozenset(names), opening, frozenset(numbers), negated)


@lru_cache(4096)
def _stem(word: str) -> str:
    """A word without its commonest endings, English or German."""
    word = word.removesuffix("'s")
    for _ in range(2):
        shorter = _ENDING.sub("", word)
        if len(shorter) < _STEM_MIN:
            break
        word = shorter
    return word


def like(one: Gist, other: Gist) -> float:
    """From 0 to 1: how much two texts say the same; 0 where a number, name or negation differs."""
    if one.numbers != other.numbers or one.negated != other.negated:
        return 0.0
    both = one.words & other.words
    if _names_differ(one, other) or _opposed(one.words - both, other.words - both):
        return 0.0
    return 2 * len(both) / max(1, len(one.words) + len(other.words))


def _names_differ(one: Gist, other: Gist) -> bool:
    if one.names - other.words and other.names - one.words:
        return True
    mine, its = one.opening, other.opening  # Ines likes tea, Bruno likes tea
    if mine is None or its is None or mine == its:
        return False
    return mine not in other.words and its not in one.words


def _opposed(mine: frozenset[str], its: frozenset[str]) -> bool:
    stems: Sequence[frozenset[str]] = [frozenset(map(_stem, pair)) for pair in _OPPOSITES]
    return any(pair & mine and pair & its and pair & mine != pair & its for pair in stems)
