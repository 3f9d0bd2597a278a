"""The gate policy of an agent: statements, in force for old records on every node (R17, R21)."""

from dataclasses import replace

import pytest

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import put
from keys.errors import UsageError
from keys.policy import DEFAULTS, KNOWN, read_settings
from memory.gating import effect
from memory.notes import Note
from tests.support.author import owner_key
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World

SETTINGS = {
    "provenance.agent": Note("bees", provenance="agent"),
    "provenance.tool": Note("bees", provenance="tool"),
    "provenance.file": Note("bees", provenance="file"),
    "provenance.web": Note("bees", provenance="web"),
    "provenance.import": Note("bees", provenance="import"),
    "category.rule": Note("bees", category="rule", provenance="user"),
    "kind.identity": Note("bees", kind="identity"),
    "kind.skill": Note("bees", kind="skill"),
}


def set_policy(node: Node, **words: str) -> None:
    node.act("policy", {"settings": {k.replace("__", "."): w for k, w in words.items()}})


def test_every_gate_is_tested() -> None:
    assert SETTINGS.keys() == KNOWN.keys() - {"agent_forget"}


@pytest.mark.parametrize("key", SETTINGS)
def test_R21_a_policy_opens_and_closes_its_gate_for_old_records_everywhere(
    world: World, a: Node, b: Node, key: str
) -> None:
    """On the node that signs, on another one, and on one that joins late."""
    record = a.write(SETTINGS[key]).record
    other = "category.rule" if key != "category.rule" else "provenance.web"
    control = a.write(replace(SETTINGS[other], text="wasps")).record
    waits = {"review": "proposed", "open": "new"}
    assert a.state(record) == waits[DEFAULTS[key]]
    for word in ("open", "review", "open", "review"):
        was, will = a.state(record), waits[word]
        told = effect(a.store.connection, a.store.authority.policy.but({key: word}))
        assert told == (int(was > will), int(was < will))
        a.act("policy", {"settings": {key: word}})
        world.settle()
        for node in (a, b):
            assert (node.state(record), node.state(control)) == (will, "proposed")
            assert node.search("bees") == ([record] if word == "open" else [])
    for node in world.everywhere():
        assert node.state(record) == "proposed"
        assert_sound(node)


def test_R17_of_two_policies_at_once_the_stricter_counts(world: World, a: Node, b: Node) -> None:
    """Whoever set it last by the clock; one that has seen both replaces both."""
    records = [a.remember(t, provenance="web") for t in ("bees", "wasps")]
    rule = a.remember("ants", category="rule")
    world.settle()
    set_policy(a, provenance__web="review")
    set_policy(b, provenance__web="open", category__rule="open")
    world.settle()
    for node in (a, b):
        assert [node.state(r) for r in (*records, rule)] == ["proposed", "proposed", "new"]
    set_policy(b, provenance__web="open")
    for node in world.everywhere():
        assert [node.state(r) for r in (*records, rule)] == ["new"] * 3
        assert_sound(node)


@pytest.mark.parametrize("word", ["Open", " open", "opened", ""])
def test_M_D9_a_word_that_nobody_knows_is_the_strictest(world: World, a: Node, word: str) -> None:
    """So a newer version's word opens nothing here."""
    record, control = a.remember("bees", provenance="agent"), a.remember("wasps", provenance="user")
    assert a.state(record) == "new"
    a.act("policy", {"settings": {"provenance.agent": word, "unheard": "of"}})
    for node in world.everywhere():
        assert [node.state(r) for r in (record, control)] == ["proposed", "new"]


@pytest.mark.parametrize("rights", [("read",), ("write",), ("review", "write")])
def test_only_who_holds_admin_sets_a_policy(
    world: World, a: Node, b: Node, rights: tuple[str, ...]
) -> None:
    """Others' policies are kept and change nothing, also after ``admin`` is given."""
    bob = owner_key("bob")
    record = a.remember("bees", provenance="web")
    a.grant(bob, *rights)
    world.settle()
    b.act("policy", {"settings": {"provenance.web": "open"}}, signer=bob)
    a.grant(bob, "admin")
    world.settle()
    for node in world.everywhere():
        assert node.state(record) == "proposed"
    b.act("policy", {"settings": {"provenance.web": "open"}}, signer=bob)
    world.settle()
    assert {node.state(record) for node in world.nodes.values()} == {"new"}


def test_the_policy_of_an_admin_who_is_removed_is_void(world: World, a: Node, b: Node) -> None:
    """R17: what it released is withheld again, everywhere, and the policy before it holds."""
    bob = owner_key("bob")
    record = a.remember("bees", provenance="web")
    a.grant(bob, "admin")
    world.settle()
    b.act("policy", {"settings": {"provenance.web": "open"}}, signer=bob)
    world.settle()
    assert a.search("bees") == [record]
    a.revoke(bob, "admin")
    for node in world.everywhere():
        assert node.search("bees") == []
        assert node.state(record) == "proposed"
        assert_sound(node)


def test_R21_a_decision_of_a_person_stands_whatever_the_policy(world: World, a: Node) -> None:
    """What was approved goes on showing just that; what was rejected stays out."""
    kept, out, edited = (a.remember(t, provenance="web") for t in ("bees", "wasps", "moths"))
    a.approve(kept, edited)
    a.reject(out)
    a.move(edited, "year")
    set_policy(a, provenance__web="open")
    assert effect(
        a.store.connection, a.store.authority.policy.but({"provenance.web": "review"})
    ) == (0, 0)
    for node in world.everywhere():
        assert [node.state(r) for r in (kept, out, edited)] == ["current", "deprecated", "current"]
        assert node.seen(edited).layer == "day"


def test_what_a_policy_releases_counts_with_its_marks(world: World, a: Node, b: Node) -> None:
    """R11: what it replaces is superseded once it is released, and live again when it waits."""
    old, fresh = a.remember("monday"), a.remember("tuesday", provenance="agent")
    with a.author.commit(Via.LOCAL, a.now_us) as commit:
        commit.edit(old, [put(next_key(fresh), "it was moved")])
    assert [a.state(r) for r in (old, fresh)] == ["superseded", "new"]
    for word, states in {"review": ["new", "proposed"], "open": ["superseded", "new"]}.items():
        set_policy(a, provenance__agent=word)
        world.settle()
        for node in (a, b):
            assert [node.state(r) for r in (old, fresh)] == states
    assert_equal_nodes(*world.everywhere())


@pytest.mark.parametrize(
    ("pairs", "hint"),
    [
        (["gate=open"], "provenance.web"),
        (["provenance.web=OPEN"], "open, review"),
        (["provenance.web= open"], "open, review"),
        (["provenance.web"], "provenance.web=review"),
        (["agent_forget=yes"], "apply, propose"),
        (["provenance.web=open", "provenance.web=review"], None),
        ([], "provenance.web"),
    ],
)
def test_M_H28_an_unknown_setting_or_word_is_an_error(pairs: list[str], hint: str | None) -> None:
    """It names what there is; nothing is guessed."""
    assert read_settings(["provenance.web=open"]) == {"provenance.web": "open"}
    with pytest.raises(UsageError) as refused:
        read_settings(pairs)
    assert hint is None or hint in str(refused.value.hint)
