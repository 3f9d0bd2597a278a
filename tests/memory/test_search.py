"""Search: every script and spelling is found, no text of a query is syntax, filters are inside."""

import random
import unicodedata
from collections.abc import Callable

import pytest

from keys.errors import UsageError
from keys.ids import RecordId
from keys.limits import LIST_LIMIT_MAX, QUERY_BYTES_MAX
from memory.query import Filters, explain, search
from memory.terms import index_terms, query_terms
from tests.support.memory_world import Node, World

RANDOM_QUERIES = 2_000
PUNCTUATED = (
    "chat-send",
    "what's",
    "C++",
    "C#",
    "https://example.org/a?b=c&d=%20#e",
    "user@example.org",
    "/etc/passwd",
    "snake_case_name",
    "fooBarBaz",
    "v1.2.3",
    "AT&T",
    "50%",
    "a:b",
    "10:30",
)
SYNTAX = (
    "",
    " ",
    "\0",
    '"',
    '""',
    '"bees',
    '" OR NEAR(',
    "NEAR(a b, 2)",
    "AND",
    "OR NOT",
    "NOT bees",
    "terms:bees",
    "{terms}: bees",
    "-bees",
    "^bees",
    "bees*",
    "*",
    "(",
    ")",
    "a AND",
    "'; DROP TABLE record; --",
    "(a+)+$",
    "\\",
    "%_",
    "\ud800",
    "\u202e",
    "\ufeff",
    "🍕" * 100,
    "a" * 4096,
)
SCRIPTS = {
    "two Han characters": ("我喜欢吃西瓜和苹果", "西瓜"),
    "one Han character": ("我喜欢吃西瓜", "瓜"),
    "kana": ("東京タワーに行きました", "タワー"),
    "Hangul": ("서울에서 김치를 먹었다", "김치"),
    "Hangul inside a word": ("대한민국만세", "민국"),
    "Thai": ("ฉันชอบกินข้าวผัดมาก", "ข้าว"),
    "Lao": ("ຂ້ອຍມັກກິນເຂົ້າ", "ເຂົ້າ"),
    "Khmer": ("ខ្ញុំចូលចិត្តបាយ", "បាយ"),
    "Devanagari with matras": ("मुझे हिन्दी किताबें पसंद हैं", "हिन्दी"),
    "Tamil": ("எனக்கு தமிழ் பிடிக்கும்", "தமிழ்"),
    "Arabic": ("أحب القهوة في الصباح", "القهوة"),
    "Hebrew": ("אני אוהב קפה", "קפה"),
    "Cyrillic": ("Я люблю чёрный кофе", "кофе"),
    "Cyrillic capitals": ("Я люблю кофе", "КОФЕ"),
    "Greek": ("Μου αρέσει ο καφές", "καφές"),  # noqa: RUF001
    "emoji": ("pizza night 🍕 on friday", "🍕"),
    "emoji with a skin tone": ("well done 👍🏽 today", "👍🏽"),
    "flag": ("holiday in 🇫🇷 soon", "🇫🇷"),
    "decomposed, composed asked": ("the café on the corner", unicodedata.normalize("NFC", "café")),
    "composed, decomposed asked": ("the caf\u00e9 here", unicodedata.normalize("NFD", "caf\u00e9")),
    "without its accent": ("the caf\u00e9 here", "cafe"),
    "full-width": ("\uff22\uff25\uff25\uff33 here", "bees"),
    "ligature": ("the o\ufb03ce", "office"),
    "mixed scripts": ("使用Python编程", "Python"),
    "astral Han": ("𠮷野家で食べた", "𠮷野"),
    "stemmed": ("the bees were swarming", "swarm"),
}


@pytest.mark.parametrize("text", PUNCTUATED)
def test_M_F1_text_with_punctuation_is_found_as_it_is_written(
    world: World, a: Node, text: str
) -> None:
    """The whole of it, and alone among others."""
    record = a.remember(f"about {text} we said this")
    a.remember("quite another matter")
    for node in world.everywhere():
        assert node.search(text) == [record]


@pytest.mark.parametrize(("text", "query"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_M_F2_M_F3_every_script_is_found(world: World, a: Node, text: str, query: str) -> None:
    """Scripts with and without spaces, emoji, both normal forms; a stranger's text is not."""
    record = a.remember(text)
    other = a.remember("entirely different words")
    for node in world.everywhere():
        assert node.search(query) == [record]
        assert node.search("entirely") == [other]


@pytest.mark.parametrize("query", SYNTAX)
def test_M_F1_nothing_that_is_typed_is_syntax(a: Node, query: str) -> None:
    """Quotes, operators, columns and control characters are words or nothing."""
    record = a.remember("bees on the roof")
    assert a.search(query) in ([], [record])
    assert a.search("bees") == [record]


@pytest.mark.parametrize("seed", range(4))
def test_M_F1_no_random_query_raises(a: Node, seed: int) -> None:
    """Random code points of every plane, with the characters of FTS5's syntax among them."""
    source = random.Random(seed)
    a.remember("bees")
    for _ in range(RANDOM_QUERIES // 4):
        query = _random_text(source)
        terms = query_terms(query)
        assert a.search(query) is not None, f"seed {seed}: {query!r}"
        assert all(term and term == term.lower() for term in terms) or not terms


@pytest.mark.parametrize("seed", range(4))
def test_every_random_text_is_found_by_itself(a: Node, seed: int) -> None:
    """A text that has a word at all is found when it is asked for as it is."""
    source = random.Random(seed)
    for _ in range(60):
        text = _random_text(source).strip() or "x"
        record = a.remember(text + " z")
        assert record in a.search(text[:60] + " z", limit=1000), f"seed {seed}: {text!r}"


PLANES = (
    (0x20, 0x7E),
    (0, 0x1F),
    (0xA0, 0x52F),
    (0x590, 0x1CFF),
    (0x2000, 0x33FF),
    (0x4E00, 0xD7FF),
    (0xE000, 0xFFFD),
    (0x10000, 0x10FFFF),
)
SIGNS = ('"', "*", "(", ")", "-", ":", "^", "'", " OR ", " NEAR(", " ")


def _random_text(source: random.Random) -> str:
    out = []
    for _ in range(source.randrange(1, 30)):
        low, high = source.choice(PLANES)
        sign = source.random() < 0.3
        out.append(source.choice(SIGNS) if sign else chr(source.randint(low, high)))
    return "".join(out)


LONG = 200_000
LONG_TEXTS = ("0.26 " + "x" * LONG, "a-" * LONG, "aB" * LONG, "a+" * LONG, "西" * LONG, "🍕" * LONG)


@pytest.mark.parametrize("text", LONG_TEXTS, ids=range(len(LONG_TEXTS)))
def test_M_F22_X_111_a_long_word_costs_its_length(text: str) -> None:
    """Not its square: each of these took minutes where the words were looked for carelessly."""
    words = index_terms(text)
    assert len(text) <= len(words) <= 10 * len(text)


def test_a_query_and_its_limits(a: Node) -> None:
    """Too long a query, and a limit out of range, are errors and not an empty answer."""
    a.remember("bees")
    assert a.search("x" * QUERY_BYTES_MAX) == []
    with pytest.raises(UsageError):
        a.search("x" * (QUERY_BYTES_MAX + 1))
    with pytest.raises(UsageError):
        a.search("é" * (QUERY_BYTES_MAX // 2 + 1))
    for limit in (0, -1, LIST_LIMIT_MAX + 1):
        with pytest.raises(UsageError):
            a.search("bees", limit=limit)


def test_more_words_found_come_first_and_equals_come_in_a_fixed_order(
    world: World, a: Node
) -> None:
    """BM25, then the id: the order is the same on every device."""
    both = a.remember("the bees and the honey")
    ones = [a.remember(f"some bees of hive number {name}") for name in ("one", "two", "six")]
    a.remember("nothing of that kind")
    for node in world.everywhere():
        assert node.search("bees honey") == [both, *sorted(ones)]
        assert node.search("bees honey", limit=2) == [both, min(ones)]


def test_M_F7_an_edit_of_the_wording_moves_the_index(world: World, a: Node) -> None:
    """After a revision the old wording is not found and the new one is."""
    old = a.remember("the meeting is on tuesday")
    new = a.revise(old, "the meeting is on wednesday")
    for node in world.everywhere():
        assert node.search("tuesday") == []
        assert node.search("wednesday meeting") == [new]


FILTERED = (
    ({"kinds": ("turn",)}, "turn"),
    ({"kinds": ("observation", "turn"), "session": "s1"}, "turn"),
    ({"tags": ("home",)}, "tagged"),
    ({"tags": ("home", "work")}, "tagged"),
    ({"layer": "year"}, "layered"),
    ({"source": "chat 7"}, "sourced"),
    ({"session": "s1"}, "turn"),
    ({"states": ("current",)}, "kept"),
)


@pytest.mark.parametrize(("filters", "name"), FILTERED)
def test_filters_are_part_of_the_question(
    world: World, a: Node, filters: dict[str, tuple[str, ...]], name: str
) -> None:
    """With a filter and a limit of one the one that fits is found, however well others match."""
    records = {
        "tagged": a.remember("bees tagged", tags=("home", "work")),
        "layered": a.remember("bees layered", layer="year"),
        "sourced": a.remember("bees sourced", source="chat 7"),
        "turn": a.remember("bees turn", kind="turn", session="s1"),
        "kept": a.remember("bees kept"),
    }
    a.keep(records["kept"])
    for i in range(5):
        a.remember(f"bees bees bees {i}")
    for node in world.everywhere():
        assert node.search("bees", limit=1, **filters) == [records[name]]
        assert len(node.search("bees")) == 10


def test_a_filter_that_nothing_can_match_is_an_error(a: Node) -> None:
    """M-C13, M-H28: an unknown state is refused, not silently nothing."""
    with pytest.raises(UsageError):
        a.search("bees", states=("deleted",))


def test_tags_are_matched_whole_and_exactly(a: Node) -> None:
    """No part of a tag, no other case and no pattern matches."""
    record = a.remember("bees", tags=("home%",))
    assert a.search("bees", tags=("home%",)) == [record]
    for tag in ("home", "HOME%", "%", "home_", "home% "):
        assert a.search("bees", tags=(tag,)) == []


def test_created_since_and_until_bound_the_first_record_time(a: Node) -> None:
    """``since`` is inside the range and ``until`` outside."""
    record = a.remember("bees")
    at = a.seen(record).created_ms * 1000
    assert a.search("bees", since_us=at, until_us=at + 1000) == [record]
    assert a.search("bees", since_us=at + 1) == []
    assert a.search("bees", until_us=at) == []


def test_what_is_withheld_is_explained_by_its_class_alone(world: World, a: Node) -> None:
    """``explain`` names ids and states of what would have matched; never a text."""
    live = a.remember("bees live")
    retired, erased = a.remember("bees retired"), a.remember("bees erased")
    waiting = a.remember("bees from the web", provenance="web")
    filtered = a.remember("bees elsewhere", layer="year")
    a.retire(retired)
    a.forget(erased)
    for node in world.everywhere():
        found = explain(
            node.store,
            node.readers,
            "bees",
            Filters(layer="day"),
            limit=50,
            now_us=node.now_us,
        )
        assert dict(found) == {retired: "deprecated", waiting: "proposed", filtered: "filtered"}
        assert node.search("bees", layer="day") == [live]


def test_the_words_of_a_text_never_change(a: Node) -> None:
    """The index must give back at a delete exactly what went in, so the words are pinned."""
    assert index_terms("plain text") == "plain text"
    assert index_terms("fooBar") == "fooBar foo Bar"
    assert index_terms("chat-send now") == "chat-send now chatx2dsend"
    assert index_terms("C++ 1") == "C++ 1 Cx2bx2b"
    assert index_terms("西瓜") == " 西 瓜 西瓜 "
    assert index_terms("a🍕b") == "a u1f355 b"


@pytest.mark.parametrize("end", [Node.retire, Node.forget])
def test_M_A15_what_is_gone_is_not_found(
    world: World, a: Node, end: Callable[[Node, RecordId], object]
) -> None:
    """After each way of withholding nothing is found, by whatever clock."""
    record, control = a.remember("the gnat"), a.remember("another gnat")
    assert sorted(a.search("gnat")) == sorted([record, control])
    end(a, record)
    for node in world.everywhere():
        assert node.search("gnat") == [control]
        found = search(node.store, node.readers, "the gnat", Filters(), limit=9, now_us=0)
        assert [seen.record for seen in found] == [control]


def test_a_common_word_does_not_hide_what_holds_the_rare_one(
    a: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranked by the rarer words, each common one a little more; the same records are found."""
    monkeypatch.setattr("memory.ranking.COMMON_MATCHES", 3)
    many = [a.remember(f"the visitor came on day {i}") for i in range(8)]
    rare = a.remember("a heron stood there")
    both = a.remember("the visitor saw a heron at a pond")
    hidden = a.remember("the visitor and the heron again")
    a.retire(hidden)
    assert a.search("visitor heron", limit=2) == [both, rare], "the common word decides"
    assert a.search("heron visitor", limit=1) == [both]
    found = a.search("visitor heron", limit=20)
    assert set(found) == {*many, rare, both}, "where the rare ones are too few, all are ranked"
    assert set(a.search("visitor", limit=20)) == {*many, both}, "common words alone"
    assert hidden not in found


def test_where_words_are_common_every_node_ranks_alike(
    world: World, a: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order in which the records arrived, and their local numbers with it."""
    monkeypatch.setattr("memory.ranking.COMMON_MATCHES", 3)
    monkeypatch.setattr("memory.ranking.CANDIDATES", 4)
    b = world.join("b")
    for i in range(6):
        b.remember(f"the visitor saw a heron, a pond and number {i}")
        a.remember(f"the visitor saw a heron, a pond and number {i + 50}")
    a.remember("a heron by a pond")
    assert a.search("visitor heron pond") != b.search("visitor heron pond")
    world.settle("a", "b")
    for query in ("visitor heron pond", "heron", "visitor pond late"):
        for limit in (1, 3, 20):
            assert a.search(query, limit=limit) == b.search(query, limit=limit) != []
