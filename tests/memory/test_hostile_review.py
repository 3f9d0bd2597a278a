"""M-D14, R11, R21: what a writer without ``review`` tries, looked at on A, B and a late C."""

import pytest

from crdt.entry import Via
from crdt.facts import next_key
from crdt.payload import delete, put
from keys.ids import RecordId
from keys.signing import SigningKey
from keys.statements import sign
from memory.proposals import changes, other_bytes, replaced_by, waiting
from tests.support.author import certify, owner_key
from tests.support.memory_checks import assert_sound
from tests.support.memory_world import Node, World

BOB = owner_key("bob")


@pytest.fixture
def guest(world: World, a: Node) -> Node:
    """A device of Bob's, who may write and nothing else."""
    node = world.stranger("guest")
    a.store.add_statements([certify(BOB, node.key)])
    a.grant(BOB, "write")
    world.settle()
    assert world.pull(node, a) >= 0
    assert node.holds("write")
    assert not node.holds("review")
    return node


def signers(guest: Node) -> list[SigningKey]:
    return [BOB, guest.key]


def states(world: World, *records: RecordId) -> set[tuple[str, ...]]:
    """What the records read on every device, and on one that joins late."""
    nodes = world.everywhere()
    for node in nodes:
        assert_sound(node)
    return {tuple(node.state(r) for r in records) for node in nodes}


def test_M_D14_a_writer_approves_nothing(world: World, a: Node, guest: Node) -> None:
    """By no statement of his or his device's, by no mark; the owner's approval is the control."""
    record, control = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    plain = a.remember("moths")
    world.settle()
    for signer in signers(guest):
        guest.act("approve", {"items": [[record, guest.seen(record).detail["heads"]]]}, signer)
        guest.act("policy", {"settings": {"provenance.web": "open"}}, signer)
    with guest.author.commit(Via.PERSON, guest.now_us) as commit:
        for named in (record, plain):
            commit.edit(named, [put("mark.aa", "current by me"), put("mark.bb", "approved by me")])
    a.approve(control)
    assert states(world, record, control, plain) == {("proposed", "current", "new")}
    assert len(a.store.authority.refused()) == 2 * len(signers(guest))


def test_M_D14_a_writer_ends_nothing_that_withholds(world: World, a: Node, guest: Node) -> None:
    """Neither a retirement, a rejection, a supersession nor an erasure."""
    retired, lifted = a.remember("bees"), a.remember("ants")
    rejected = a.remember("wasps", provenance="web")
    old, gone = a.remember("monday"), a.remember("moths")
    a.revise(old, "tuesday")
    a.retire(retired)
    a.retire(lifted)
    a.reject(rejected)
    a.forget(gone)
    world.settle()
    for signer in signers(guest):
        for record in (retired, rejected, old):
            facts = [[f[0], f[1]] for f in guest.seen(record).detail["facts"]]
            stones = [h for (h,) in guest.rows("SELECT hash FROM tombstone")]
            guest.act("lift", {"record": record, "facts": facts, "tombstones": stones}, signer)
        heads = guest.seen(rejected).detail["heads"]
        guest.act("approve", {"items": [[rejected, heads]]}, signer)
    keys = [key for _, key, _ in guest.seen(retired).detail["facts"]]
    with guest.author.commit(Via.PERSON, guest.now_us) as commit:
        for key in keys:
            commit.edit(retired, [put(key, "current after all")])
        commit.edit(old, [put(next_key(old), "itself")])
    a.lift(lifted)
    expected = ("deprecated", "new", "deprecated", "superseded", "erased")
    assert states(world, retired, lifted, rejected, old, gone) == {expected}


def test_M_D14_a_deleted_mark_is_malformed(world: World, a: Node, guest: Node) -> None:
    """R11: no entry removes what withholds; the honest edit beside it counts."""
    retired, control = a.remember("bees"), a.remember("wasps")
    a.retire(retired)
    world.settle()
    (key,) = [key for _, key, _ in guest.seen(retired).detail["facts"]]
    with guest.author.commit(Via.PERSON, guest.now_us) as commit:
        commit.edit(retired, [delete(key)])
    guest.tag(control, "seen")
    assert states(world, retired, control) == {("deprecated", "new")}
    for node in world.nodes.values():
        assert node.seen(control).tags == ("seen",)
        assert [r for (r,) in node.rows("SELECT reason FROM entry WHERE reason NOT NULL")] == [
            "malformed"
        ]


def test_an_approval_is_not_replayed_for_another_agent(world: World, a: Node, b: Node) -> None:
    """Signed for another agent, it does not enter; the same for this one does."""
    record = a.remember("bees", provenance="web")
    world.settle()
    items = [[record, a.seen(record).detail["heads"]]]
    body = {"items": items, "wall_ms": a.now_us // 1000}
    after = a.store.authority.heads()
    other = sign(world.owner, "approve", body, agent=b"\x07" * 32, after=after)
    assert b.store.add_statements([other]) == 0
    assert states(world, record) == {("proposed",)}
    mine = sign(world.owner, "approve", body, agent=world.agent, after=after)
    assert b.store.add_statements([mine]) == 1
    world.settle()
    assert {node.state(record) for node in world.nodes.values()} == {"current"}


def test_a_replayed_approval_shows_no_later_bytes(world: World, a: Node, guest: Node) -> None:
    """What a writer adds after the heads that were shown waits, however often it is shown."""
    record = a.remember("bees", provenance="web", layer="day")
    made = a.approve(record)
    world.settle()
    guest.move(record, "year")
    guest.tag(record, "obey")
    world.settle()
    for node in world.everywhere():
        node.store.add_statements([made])
        seen = node.seen(record)
        assert (seen.state, seen.layer, seen.tags) == ("current", "day", ())
        assert [s.record for s in waiting(node.store, node.scope, limit=9, now_us=1)] == [record]
        told = {(c.key, c.shown, c.proposed) for c in changes(node.store, seen)}
        assert told == {("field.layer", "day", "year"), ("tag.obey", None, True)}
    a.approve(record)
    assert waiting(a.store, a.scope, limit=9, now_us=1) == []
    assert (a.seen(record).layer, a.seen(record).tags) == ("year", ("obey",))


def test_an_approval_of_other_bytes_is_told(world: World, a: Node) -> None:
    """Heads of something else, by somebody who may approve: no effect, and an alert."""
    odd, control = (a.remember(t, provenance="web") for t in ("bees", "wasps"))
    a.act("approve", {"items": [[odd, a.seen(control).detail["heads"]]]})
    a.approve(control)
    assert states(world, odd, control) == {("proposed", "current")}
    for node in world.nodes.values():
        assert other_bytes(node.store) == [odd]


def test_a_proposal_tells_what_it_would_replace(world: World, a: Node) -> None:
    old, fresh = a.remember("monday"), a.remember("tuesday", provenance="web")
    with a.author.commit(Via.AGENT, a.now_us) as commit:
        commit.edit(old, [put(next_key(fresh), "the page says so")])
    for node in world.everywhere():
        assert replaced_by(node.store, fresh) == [old]
        assert node.state(old) == "new"
        assert [s.record for s in waiting(node.store, node.scope, limit=9, now_us=1)] == [fresh]
