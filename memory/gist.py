"""What of a text is worth remembering, by rules: offline, deterministic, in any language.

1. Questions, greetings, thanks and exclamations say nothing that lasts; a sentence is kept when it
   says something about somebody: names, numbers, dates, first-person acts, and enough content.
2. What is kept is kept as it was said: sentences are chosen, never rewritten.
"""

from __future__ import annotations

import re
from typing import Final

from memory.terms import STOP_WORDS

SCORE_MIN: Final = 4
_SENTENCE: Final = re.compile(r"(?<=[.!?…。！？])[\s\u3000]+|(?<=[。！？])|\n+")  # noqa: RUF001
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")  # noqa: RUF001
_SMALL_TALK: Final = """
hi hey hello wow thanks thank yeah yes no ok okay sure bye goodbye great cool awesome nice
amazing congrats congratulations lol haha hmm oh glad agree totally definitely sounds
welcome sorry hope absolutely exactly right true love good luck fun fantastic wonderful
"""
_SELF: Final = """
i i'm i've i'll i'd my mine me we we're we've our us ours myself ich mein meine wir unser
je mon ma mes nous notre yo mi mis nosotros nuestro
"""
_ACTS: Final = """
went got bought started joined made met visited moved lost found took gave saw won signed
finished began planned painted ran read wrote learned decided called named lives live
works work born married adopted likes prefers hates wants plans planning used going taking
doing yesterday today tomorrow week weekend month year last next ago since monday tuesday
wednesday thursday friday saturday sunday january february march april june july august
september october november december
"""
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

SMALL_TALK: Final = frozenset(_SMALL_TALK.split())
SELF: Final = frozenset(_SELF.split())
ACTS: Final = frozenset(_ACTS.split())


def sentences(text: str) -> list[str]:
    """A text in its sentences, as they stand."""
    return [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]


def score(sentence: str) -> int:
    """How much a sentence tells; ``SCORE_MIN`` and more is worth keeping."""
    words = _WORD.findall(sentence)
    lower = [w.lower().replace("\u2019", "'") for w in words]
    content = {w for w in lower if w not in STOP_WORDS and w not in SMALL_TALK and len(w) > 2}
    total: int = min(len(content), 6) // 2
    total += sum(w[0].isupper() and lower[i] not in SELF for i, w in enumerate(words) if i) > 0
    total += any(c.isdigit() for c in sentence) * 2
    total += bool(SELF.intersection(lower))
    total += min(2, len(ACTS.intersection(lower)))
    if len(_UNSPACED.findall(sentence)) >= 8:
        total += 3
    if sentence.rstrip().endswith(("?", "？")):  # noqa: RUF001
        total -= 3
    return total


def gist(text: str) -> str:
    """The sentences of a text that are worth remembering, in their order; empty where none is."""
    return " ".join(s for s in sentences(text) if score(s) >= SCORE_MIN)
