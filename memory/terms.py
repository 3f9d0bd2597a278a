"""The token stream of search: what is indexed of a text, and what a query asks for.

1. Text is NFKC. Words go to FTS5's ``porter unicode61`` as they are.
2. Unspaced scripts (CJK, kana, Hangul, Thai, Lao, Khmer, Myanmar) become overlapping bigrams;
   emoji and other symbols become words of their own.
3. Identifiers are indexed whole and split: ``chat-send``, ``fooBar``, ``snake_case``, ``C++``.
4. Words that ask for the newest are words like others, never stop words.
5. A query is an OR of quoted words; nothing a person types is FTS5 syntax.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from crdt.fingerprint import nfkc
from keys.limits import QUERY_TERMS_MAX

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_RUN: Final = re.compile(f"[{_UNSPACED}]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Possessive, and tried at the start of a word alone: a long word costs its length and no more.
_IDENTIFIER: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[-_./:@+#][A-Za-z0-9]++)++[+#]*+|[A-Za-z][+#]++"
)
_MAYBE: Final = re.compile(r"[A-Za-z0-9][-_./:@+#][A-Za-z0-9+#]|[A-Za-z][+#]")
_HAS_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_WORD: Final = re.compile(r"\w+")
_WHOLE: Final = {
    "-": "x2d",
    "_": "x5f",
    ".": "x2e",
    "/": "x2f",
    ":": "x3a",
    "@": "x40",
    "+": "x2b",
    "#": "x23",
}

_STOP: Final = """
a an and are as at be been but by can did do does for from had has have he her his how i if in is it
its me my of on or our she so that the their them then there they this to was we were what when
where which who whom whose why will with would you your s t
"""
STOP_WORDS: Final = frozenset(_STOP.split())
RECENCY_WORDS: Final = frozenset(
    ["latest", "newest", "current", "currently", "now", "nowadays", "recent", "recently"]
)


def index_terms(text: str) -> str:
    """The words to index of ``text``, separated by spaces; the same for the same text for ever."""
    ascii_only = text.isascii()
    if not ascii_only:
        text = nfkc(text)
    extra = _identifiers(text)
    if ascii_only:
        return text + extra if extra else text
    return _segment(text) + extra


def query_terms(query: str) -> list[str]:
    """The distinct words that a query asks for, stop words dropped unless nothing else is left."""
    text = nfkc(_drop_surrogates(query))
    terms = _WORD.findall(_segment(text)) + _identifiers(text).split()
    distinct = list(dict.fromkeys(t.lower() for t in terms))
    wanted = [t for t in distinct if t not in STOP_WORDS] or distinct
    return wanted[:QUERY_TERMS_MAX]


def match_expression(terms: list[str]) -> str:
    """The FTS5 expression for any of ``terms``; each is quoted."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def _drop_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _identifiers(text: str) -> str:
    """Whole identifiers as one word each, and the parts of camel case."""
    out: list[str] = []
    if _MAYBE.search(text):
        out = ["".join(_WHOLE.get(c, c) for c in found) for found in _IDENTIFIER.findall(text)]
    if _HAS_CAMEL.search(text):
        for word in re.findall(r"[A-Za-z0-9]+", text):
            parts = _CAMEL.split(word)
            if len(parts) > 1:
                out += parts
    return " " + " ".join(out) if out else ""


def _segment(text: str) -> str:
    """Bigrams for unspaced scripts, symbols as words; everything else unchanged."""
    if text.isascii():
        return text
    text = _RUN.sub(lambda m: " " + _bigrams(m.group()) + " ", text)
    if any(unicodedata.category(c) in ("So", "Sk", "Cn") for c in text):
        text = "".join(
            f" u{ord(c):x} " if unicodedata.category(c) in ("So", "Sk", "Cn") else c for c in text
        )
    return text


def _bigrams(run: str) -> str:
    if len(run) < 2:
        return run
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return " ".join([*run, *pairs])
