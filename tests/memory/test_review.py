"""The gate: what waits for a person, what an approval shows, and who can produce one (R21)."""

from dataclasses import replace

import pytest

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import put
from keys.statements import Statement
from memory.notes import Note
from memory.query import Filters, Seen, list_records
from memory.writing import NotLiveError
from tests.support.author import certify, owner_key
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World

GATED = {
    "a rule": Note("always be kind", category="rule"),
    "a rule of the owner": Note("always be kind", category="rule", provenance="user"),
    "from a tool": Note("always be kind", provenance="tool"),
    "from a file": Note("always be kind", provenance="file"),
    "from the web": Note("always be kind", provenance="web"),
    "imported": Note("always be kind", provenance="import"),
    "of an import run": Note("always be kind", imported=b"0123456789abcdef"),
}
UNGATED = [Note("x", category=c) for c in ("fact", "preference", "context", "episode")]


@pytest.mark.parametrize("note", GATED.values(), ids=GATED.keys())
@pytest.mark.parametrize("via", [Via.AGENT, Via.LOCAL, Via.PERSON, Via.CONSOLIDATOR, Via.IMPORTER])
def test_M_D1_what_is_gated_waits_and_no_reader_sees_it(
    world: World, a: Node, note: Note, via: Via
) -> None:
    """Whatever principal an entry claims; the same text from the owner is new at once."""
    waiting = a.write(note, via).record
    control = a.remember("always be kind to bees")
    for node in world.everywhere():
        assert node.state(waiting) == "proposed"
        assert node.search("always kind") == [control]
        assert [s.record for s in listed(node)] == [control]


def listed(node: Node) -> list[Seen]:
    """What a reader's list shows."""
    page = list_records(
        node.store, node.readers, Filters(), limit=99, cursor=None, now_us=node.now_us
    )
    return page.records


@pytest.mark.parametrize("note", UNGATED, ids=lambda n: n.category)
def test_M_D3_what_an_agent_or_a_person_says_is_new(a: Node, note: Note) -> None:
    """No category but the rule waits."""
    for provenance in ("user", "agent"):
        written = replace(note, text=f"{note.category} {provenance}", provenance=provenance)
        assert a.state(a.write(written).record) == "new"


def test_an_approval_of_the_heads_shown_makes_it_current(world: World, a: Node, b: Node) -> None:
    """Signed on one device, valid on all; the one that was not approved still waits."""
    approved, control = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    world.settle()
    b.approve(approved)
    for node in world.everywhere():
        assert [node.state(r) for r in (approved, control)] == ["current", "proposed"]
        assert node.search("bees wasps") == [approved]
        assert_sound(node)
    assert_equal_nodes(*world.nodes.values())


def test_later_edits_of_an_approved_record_stay_proposals(world: World, a: Node, b: Node) -> None:
    """Readers are shown the bytes that were approved until a person approves the edit."""
    record = a.remember("bees", provenance="web", tags=("seen",), layer="day")
    a.approve(record)
    world.settle()
    b.move(record, "year")
    b.tag(record, "unseen")
    nodes = world.everywhere()
    for node in nodes:
        seen = node.seen(record)
        assert (seen.state, seen.layer, seen.tags) == ("current", "day", ("seen",))
        assert seen.detail["heads"] != seen.detail["shown_heads"]
        assert node.search("bees", tags=("unseen",)) == []
    a.approve(record)
    world.settle()
    for node in nodes:
        seen = node.seen(record)
        assert (seen.layer, seen.tags) == ("year", ("seen", "unseen"))
        assert_sound(node)


def test_an_approval_of_other_heads_shows_nothing(world: World, a: Node) -> None:
    """Heads of another record, or of an entry that does not exist, approve no bytes."""
    record, other = a.remember("bees", provenance="web"), a.remember("wasps")
    for heads in (a.seen(other).detail["heads"], [b"\7" * 32], []):
        a.act("approve", {"items": [[record, heads]]})
    for node in world.everywhere():
        assert node.search("bees") == []
        assert node.state(record) == "proposed"


def test_R21_a_mark_on_a_gated_record_is_a_proposal(world: World, a: Node, b: Node) -> None:
    """A modified node that marks or replaces it takes it out of no queue and makes it no fact."""
    waiting, approved = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    other = a.remember("moths")
    a.approve(approved)
    world.settle()
    with b.author.commit(Via.PERSON, b.now_us) as commit:
        for record in (waiting, approved):
            commit.edit(
                record,
                [
                    put("mark.aa", "deprecated by nobody"),
                    put("mark.bb", "current by nobody"),
                    put(next_key(other), "by nobody"),
                ],
            )
    for node in world.everywhere():
        assert [node.state(r) for r in (waiting, approved)] == ["proposed", "current"]
        assert node.search("bees wasps") == [approved]
        assert_sound(node)


def test_a_rejection_retires_and_refuses_the_value(world: World, a: Node) -> None:
    """The record is deprecated everywhere; its value does not come back by itself."""
    rejected, control = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    a.reject(rejected)
    for node in world.everywhere():
        assert [node.state(r) for r in (rejected, control)] == ["deprecated", "proposed"]
        with pytest.raises(NotLiveError):
            node.revise(rejected, "moths")


def test_a_rejection_and_an_approval_at_once_withhold(world: World, a: Node, b: Node) -> None:
    """The stronger state is the one that shows less."""
    record = a.remember("bees", provenance="web")
    world.settle()
    a.approve(record)
    b.reject(record)
    for node in world.everywhere():
        assert node.state(record) == "deprecated"


def test_a_proposal_replaces_nothing_until_it_is_approved(world: World, a: Node) -> None:
    """R11: the record that a proposal would replace stays live, also when it is rejected."""
    record, other = a.remember("monday"), a.remember("june")
    proposals = [a.remember(t, provenance="web") for t in ("tuesday", "july")]
    with a.author.commit(Via.LOCAL, a.now_us) as commit:
        commit.edit(record, [put(next_key(proposals[0]), "the page says so")])
        commit.edit(other, [put(next_key(proposals[1]), "the page says so")])
    world.settle()
    assert a.search("monday june tuesday july") == a.search("monday june")
    a.approve(proposals[0])
    a.reject(proposals[1])
    for node in world.everywhere():
        states = [node.state(r) for r in (record, proposals[0], other, proposals[1])]
        assert states == ["superseded", "current", "new", "deprecated"]
        assert_sound(node)


@pytest.mark.parametrize("rights", [("read",), ("write",), ("admin",)])
def test_only_who_may_review_can_approve(
    world: World, a: Node, b: Node, rights: tuple[str, ...]
) -> None:
    """A statement of somebody without the right is kept and has no effect, on any node."""
    bob = owner_key("bob")
    record, control = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    a.grant(bob, *rights)
    world.settle()
    b.act("approve", {"items": [[record, b.seen(record).detail["heads"]]]}, signer=bob)
    a.grant(bob, "review")
    world.settle()
    for node in world.everywhere():
        assert node.state(record) == "proposed"
    b.act("approve", {"items": [[control, b.seen(control).detail["heads"]]]}, signer=bob)
    world.settle()
    for node in world.nodes.values():
        assert [node.state(r) for r in (record, control)] == ["proposed", "current"]


def test_an_approval_of_a_reviewer_who_is_removed_is_void(world: World, a: Node, b: Node) -> None:
    """R17: unless the removal keeps it; what it showed is withheld again everywhere."""
    bob = owner_key("bob")
    void, kept = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    a.grant(bob, "review")
    world.settle()
    made: list[Statement] = []
    for record in (void, kept):
        heads = b.seen(record).detail["heads"]
        made.append(b.act("approve", {"items": [[record, heads]]}, signer=bob))
    world.settle()
    assert sorted(a.search("bees wasps")) == sorted([void, kept])
    body = {
        "subject_kind": "owner",
        "subject": bob.public,
        "rights": ["review"],
        "cuts": [],
        "keep": [],
        "keeps": [bytes(made[1].id)],
        "replaces": [],
        "key": b"",
    }
    a.act("revoke", body)
    for node in world.everywhere():
        assert [node.state(r) for r in (void, kept)] == ["proposed", "current"]
        assert_sound(node)


def test_M_D14_a_peer_without_review_makes_nothing_current(world: World, a: Node) -> None:
    """A mark ``current`` by a device that may only write counts nowhere, not even on its own."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    record, control = a.remember("bees"), a.remember("wasps")
    a.keep(control)
    world.pull(guest, a)
    with guest.author.commit(Via.PERSON, guest.now_us) as commit:
        commit.edit(record, [put("mark.aa", "current I say so")])
    world.settle()
    for node in world.everywhere():
        assert [node.state(r) for r in (record, control)] == ["new", "current"]
        assert_sound(node)


def test_M_D9_a_state_is_an_exact_word(world: World, a: Node) -> None:
    """`` Current``, ``CURRENT`` and other words assert nothing; ``deprecated`` withholds."""
    words = {" current": "new", "CURRENT x": "new", "validated": "new", "deprecated": "deprecated"}
    records = {word: a.remember(f"value {i}") for i, word in enumerate(words)}
    with a.author.commit(Via.LOCAL, a.now_us) as commit:
        for word, record in records.items():
            commit.edit(record, [put("mark.aa", word)])
    for node in world.everywhere():
        assert {w: node.state(r) for w, r in records.items()} == words


def test_a_stranger_s_certificate_gives_no_right(world: World, a: Node, b: Node) -> None:
    """Devices of an owner whom nobody granted anything write into no read model."""
    bob, guest = owner_key("bob"), world.stranger("guest")
    a.store.add_statements([certify(bob, guest.key)])
    record = a.remember("bees")
    assert world.pull(guest, a) == 0
    a.grant(bob, "write")
    assert world.pull(guest, a) > 0
    guest.remember("wasps")
    world.settle()
    assert b.search("wasps")
    assert b.search("bees") == [record]
