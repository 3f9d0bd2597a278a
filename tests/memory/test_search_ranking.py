"""Ranking: turns with their surroundings, recency, quotas, and no score from withheld text."""

from collections.abc import Callable

import pytest

from keys.errors import UsageError
from keys.ids import RecordId
from keys.limits import QUERY_BYTES_MAX
from memory.notes import Note
from memory.query import Filters, explain, misses, search
from memory.words import INDEXES
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World

SAID = (
    "where did you put the sextant",
    "it hangs in the hall",
    "thank you so much",
    "shall we go sailing",
    "on sunday with the boys",
    "fine by me",
)


def turns(
    node: Node, *texts: str, session: str = "s1", channel: str | None = None
) -> list[RecordId]:
    extra = () if channel is None else (("body.channel", channel),)
    return [
        node.write(Note(text, kind="turn", session=session, extra=extra)).record for text in texts
    ]


def scores(node: Node, query: str) -> dict[RecordId, float]:
    found = search(node.store, node.readers, query, Filters(), limit=50, now_us=node.now_us)
    return {seen.record: seen.score for seen in found}


def test_a_turn_is_found_by_what_was_said_around_it(world: World, a: Node) -> None:
    """Two turns away and not three; the turn that holds the word comes first."""
    said = turns(a, *SAID)
    other = turns(a, "an entirely different talk", session="s2")
    for node in world.everywhere():
        assert node.search("sextant") == [said[0], said[1], said[2]]
        assert node.search("sunday") == [said[4], said[5], said[3], said[2]]
        assert node.search("entirely") == other, "another session lends nothing"


@pytest.mark.parametrize("end", [Node.retire, Node.forget])
def test_a_withheld_turn_lends_nothing(
    world: World, a: Node, end: Callable[[Node, RecordId], object]
) -> None:
    """Nor is its word in any index that readers search."""
    said = turns(a, *SAID)
    assert a.search("sextant") == said[:3]
    end(a, said[0])
    for node in world.everywhere():
        assert node.search("sextant") == []
        assert node.search("hall") == [said[1], said[2], said[3]], "the others still lend"
        assert_sound(node)


def test_an_erased_turn_leaves_no_bytes_in_the_files(a: Node) -> None:
    """Neither its own nor what its neighbours are ranked with."""
    said = turns(a, "we met zyzzogeton there", "and then", "we left for quuxville")
    a.forget(said[0])
    assert a.clean()
    a.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert found_in(a.home, "zyzzogeton") == []
    assert found_in(a.home, "quuxville") != []


def test_a_turn_of_another_channel_lends_nothing(world: World, a: Node) -> None:
    """Though it is of the same session; a filter by channel is inside the query."""
    mine = turns(a, "the sextant hangs there", "in the hall", channel="mail")
    theirs = turns(a, "what hangs there", "nothing at all", channel="chat")
    for node in world.everywhere():
        assert node.search("sextant") == mine
        assert node.search("hangs", channel="chat") == theirs
        assert node.search("hangs", channel="none") == []


def test_turns_rank_alike_whatever_the_order_of_arrival(world: World, a: Node, b: Node) -> None:
    """Written on two devices into one session, interleaved, then joined; and after a rebuild."""
    for i in range(6):
        turns(a, f"the heron stood at pond {i}", f"and left {i}")
        turns(b, f"a pond is no place {i}", f"said the heron {i}")
    assert a.search("heron pond") != b.search("heron pond")
    nodes = world.everywhere()
    assert_equal_nodes(*nodes)
    wanted = scores(a, "heron pond")
    assert len(wanted) == 24
    for node in nodes:
        assert list(scores(node, "heron pond").items()) == list(wanted.items())
        node.store.rebuild()
        assert list(scores(node, "heron pond").items()) == list(wanted.items())


@pytest.mark.parametrize("word", ["latest", "newest", "current", "now"])
def test_of_ten_versions_the_latest_is_the_newest(world: World, a: Node, word: str) -> None:
    """Whatever else they say, and though an old one holds the very word; another fact does not."""
    texts = [f"the harbour code is {i}00 {'indeed ' * (i % 3)}" for i in range(9)]
    old = a.remember(f"the {word} harbour code was 7")
    versions = [old, *(a.remember(text) for text in texts)]
    other = a.remember("the harbour was busy")
    for node in world.everywhere():
        assert node.search(f"{word} harbour code")[:10] == versions[::-1]
        assert other in node.search(f"{word} harbour code")
        assert node.search("harbour code")[0] != versions[-1], "without the word it is not so"


def test_a_recency_word_is_still_a_word(a: Node) -> None:
    """What holds it alone is found, last when others hold more, and by itself."""
    only, fact = a.remember("the current is strong"), a.remember("the boat is blue")
    assert a.search("current boat") == [fact, only]
    assert a.search("current") == [only]


def test_talk_does_not_crowd_out_facts(a: Node) -> None:
    """Turns take half of the places, and all that facts do not fill."""
    facts = [
        a.remember(f"a boat was seen from the window on day {i} by the neighbour") for i in range(4)
    ]
    said = [turn for i in range(12) for turn in turns(a, f"boat boat {i}", session=f"s{i}")]
    found = a.search("boat", limit=6)
    assert len(set(found) & set(facts)) == 3
    assert len(set(found) & set(said)) == 3
    found = a.search("boat", limit=12)
    assert set(facts) < set(found), "four facts, and turns in the other places"
    assert len(found) == 12
    assert len(a.search("boat", limit=5, kinds=("turn",))) == 5


def test_facts_are_looked_for_past_all_turns(a: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more turns than candidates."""
    monkeypatch.setattr("memory.ranking.CANDIDATES", 4)
    fact = a.remember("a boat was seen from the window, and a cart, and a dog, and two mules")
    for i in range(12):
        turns(a, f"boat boat {i}", session=f"s{i}")
    assert fact in a.search("boat", limit=2)


@pytest.mark.parametrize("withhold", ["retire", "revise", "propose", "forget"])
def test_no_score_depends_on_a_withheld_text(a: Node, withhold: str) -> None:
    """The same words in withheld records change no score; in live ones they do."""
    for i in range(5):
        a.remember(f"a heron stood by pond {i}")
    before = scores(a, "heron pond visitor")
    extra = a.remember(
        "heron heron of the north visitor", provenance="web" if withhold == "propose" else "user"
    )
    if withhold == "propose":
        assert scores(a, "heron pond visitor") == before
        a.approve(extra)
        assert scores(a, "heron pond visitor") != before
        return
    assert scores(a, "heron pond visitor") != before
    if withhold == "revise":
        a.forget(a.revise(extra, "quite another matter"))
    else:
        (a.retire if withhold == "retire" else a.forget)(extra)
    assert scores(a, "heron pond visitor") == before


def test_what_was_believed_once_is_found_by_its_words(a: Node) -> None:
    """``as_of`` looks into what is withheld now; the present does not."""
    old = a.remember("the meeting is on tuesday")
    then = a.now_us
    new = a.revise(old, "the meeting is on wednesday")
    assert a.search("tuesday", as_of_us=then) == [old]
    assert a.search("wednesday", as_of_us=then) == []
    assert a.search("tuesday") == []
    assert a.search("meeting") == [new]


def test_misses_are_the_words_that_nobody_may_find(world: World, a: Node) -> None:
    """A withheld word is as absent as one that was never there."""
    a.remember("bees swarm in may")
    gone = a.remember("wasps nest in june")
    a.retire(gone)
    for node in world.everywhere():
        found = misses(
            node.store, node.readers, "bees wasps gnats swarming", Filters(), now_us=node.now_us
        )
        assert found == ["wasps", "gnats"]


def test_the_tail_that_says_next_to_nothing_is_left_out(a: Node) -> None:
    """After the first ten, what scores next to nothing beside the best is not returned."""
    both = a.remember("the heron of the visitor")
    for i in range(20):
        a.remember(f"the visitor came on day {i}")
    found = a.search("visitor heron")
    assert found[0] == both
    assert len(found) == 10
    assert len(a.search("visitor")) == 21, "a word alone is no tail"


def test_explain_and_misses_refuse_what_search_refuses(a: Node) -> None:
    """The bound on a query is one for all."""
    for ask in (search, explain):
        with pytest.raises(UsageError):
            ask(a.store, a.readers, "x" * (QUERY_BYTES_MAX + 1), Filters(), limit=1, now_us=0)
    with pytest.raises(UsageError):
        misses(a.store, a.readers, "x" * (QUERY_BYTES_MAX + 1), Filters(), now_us=0)


def test_identifiers_are_found_in_any_width(a: Node) -> None:
    """A query is normalised before identifiers are looked for, as a text is."""
    record = a.remember("set chat-send off")
    wide = "".join(chr(ord(c) + 0xFEE0) for c in "chat-send")
    assert a.search(wide) == [record]


def test_names_of_speakers_and_titles_are_words(world: World, a: Node) -> None:
    """A turn is found by who said it, and no index keeps the name once it is erased."""
    said = a.write(Note("good morning", kind="turn", session="s", speaker="Zerubabel")).record
    assert a.search("zerubabel") == [said]
    a.forget(said)
    for node in world.everywhere():
        assert node.search("zerubabel") == []
        assert_sound(node)
        for index in INDEXES:
            assert node.rows(f"SELECT rowid FROM {index} WHERE {index} MATCH 'zerubabel'") == []
