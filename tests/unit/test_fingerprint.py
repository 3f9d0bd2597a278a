"""Normalisation 1: what counts as the same value, in linear time, equal on every Python."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdt import fingerprint
from crdt.fingerprint import FingerprintKey, fingerprints, nfkc, normalise
from keys.errors import BadEncoding
from keys.limits import MARKS_MAX, TAG_BYTES_MAX, TEXT_BYTES_MAX
from memory.notes import check_tags
from memory.terms import index_terms
from tests.support.author import seeded

texts = st.text(max_size=60)
MIXED = "\u0301\u0323"  # two marks that NFKC has to exchange


@given(st.text(st.characters(max_codepoint=0x7F), max_size=60))
def test_ascii_goes_the_short_way_to_the_same_end(text: str) -> None:
    """The way for ASCII gives what the way for everything gives."""
    bare = fingerprint._spaces(fingerprint._fold(text))
    assert normalise(text) == (fingerprint._strip(bare) or bare)


@given(texts)
def test_spelling_case_and_edges_do_not_matter(text: str) -> None:
    """NFC, NFD, case and surrounding space give the same normal form."""
    expected = normalise(text)
    for other in (
        unicodedata.normalize("NFC", text),
        unicodedata.normalize("NFD", text),
        f" \t{text}\u2003",
    ):
        assert normalise(other) == expected


@given(st.text(MIXED + "ab\uff9e", max_size=MARKS_MAX))
def test_few_marks_are_normalised_as_unicode_says(text: str) -> None:
    """Up to thirty in a row the parts are the whole."""
    assert nfkc(text) == unicodedata.normalize("NFKC", text)
    assert nfkc(f"a{text}b") == unicodedata.normalize("NFKC", f"a{text}b")


def test_marks_beyond_thirty_are_normalised_in_parts() -> None:
    """The 31st begins a part of its own, also where the run is longer than two parts."""
    run = MIXED * MARKS_MAX
    parts = ["e" + run[:MARKS_MAX], run[MARKS_MAX:], "a"]
    assert nfkc("".join(parts)) == (
        unicodedata.normalize("NFKC", parts[0]) + unicodedata.normalize("NFKC", parts[1]) + "a"
    )


def test_every_code_point_that_becomes_marks_is_known() -> None:
    """No code point but the five starts with a mark only after it is taken apart."""
    found = {
        char
        for char in map(chr, range(0x110000))
        if unicodedata.decomposition(char)
        and not unicodedata.combining(char)
        and unicodedata.combining(unicodedata.normalize("NFKD", char)[0])
    }
    assert found == fingerprint._BECOME_MARKS


@pytest.mark.parametrize("marks", [MIXED, "\uff9e\u0301", "\u0f73\u0f71"], ids=ascii)
def test_X_48_a_text_of_marks_takes_linear_time(marks: str) -> None:
    """Marks out of order are normalised, and indexed, as fast as any text of their size.

    In the square of its size this eighth of the largest text would take minutes.
    """
    text = "a" + marks * (TEXT_BYTES_MAX // 8 // len(marks.encode()))
    start = time.process_time()
    assert normalise(text)
    assert index_terms(text)
    assert time.process_time() - start < 10


def test_an_endless_tag_is_refused_before_it_is_normalised() -> None:
    """The bound on tags comes before the work."""
    with pytest.raises(Exception, match=str(TAG_BYTES_MAX)):
        check_tags(("a" + MIXED * 100_000,))


def test_code_points_of_later_unicode_pass_unchanged() -> None:
    """CPython 3.11 does not know U+1E030, 3.12 makes a Cyrillic letter of it (R28)."""
    assert normalise("\U0001e030") == "\U0001e030"
    assert normalise("\U0001e030A\u0301") == "\U0001e030\u00e1"


def test_texts_that_differ_do_not_share_a_fingerprint() -> None:
    """What stands in FORMAT.md as not caught is not caught."""
    key = FingerprintKey(seeded("key"))
    base = "the key is under the mat"
    for other in (
        base.replace("e", "\u0435"),  # a Cyrillic look-alike
        base + "\ufe0f",  # a variation selector
        base.replace("key", "k\u034fey"),  # a grapheme joiner, which is a mark
        base.replace("mat", "doormat"),
        "mat the under is key the",
    ):
        assert key.fingerprint(normalise(other)) != key.fingerprint(normalise(base))


def test_a_fingerprint_says_nothing_without_its_key() -> None:
    """X-74: the same text under two keys has two fingerprints, and two key ids."""
    first, second = (fingerprints([FingerprintKey(seeded(n))], "a value")[0] for n in "ab")
    assert first.mac != second.mac
    assert first.key != second.key


def test_a_lone_surrogate_has_no_fingerprint() -> None:
    """Such a text cannot be stored, signed or sent either."""
    for text in ("\ud800", "a\udfffb", "\u00e9\ud83d"):
        with pytest.raises(BadEncoding):
            normalise(text)


def test_the_pinned_list_is_what_later_versions_of_unicode_assigned() -> None:
    """On Unicode 14 none of it is assigned; on 15 all of it is, and nothing else besides."""
    pinned = {c for low, high in fingerprint._AFTER_14 for c in range(low, high + 1)}
    assigned = {c for c in pinned if unicodedata.category(chr(c)) != "Cn"}
    major = int(re.match(r"\d+", unicodedata.unidata_version).group())  # type: ignore[union-attr]
    assert assigned == (pinned if major >= 15 else set())
