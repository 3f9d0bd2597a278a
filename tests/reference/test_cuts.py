"""R3, R7, R18, R19: where logs end, and which branch of a forked one counts."""

from tests.reference.compare import differences
from tests.reference.ledger import Commit
from tests.reference.nodes import node, store_of
from tests.reference.toys import ADA, A, B, C, Toy, entry, record

FOUNDING = 2  # statements that every toy begins with


def test_a_cut_inside_a_commit_leaves_none_of_that_commit() -> None:
    toy = Toy()
    toy.grant(B, "write")
    opened = toy.log(B)
    first = toy.write(opened, toy.create("bees"))
    torn = toy.write(first, toy.create("wax"), toy.create("rain"))
    toy.revoke(B, "write", cuts=[_at(torn, 0)])
    believed = toy.agree()
    assert record(first) in believed
    assert record(torn, 0) not in believed


def test_a_cut_inside_a_commit_of_a_branch_leaves_none_of_that_commit() -> None:
    toy = Toy()
    toy.grant(B, "write")
    opened = toy.log(B)
    toy.write(opened, toy.create("bees"))
    first = toy.write(opened, toy.create("honey"))
    torn = toy.write(first, toy.create("wax"), toy.create("rain"))
    toy.revoke(B, "write", cuts=[_at(torn, 0)])
    believed = toy.agree()
    assert record(first) in believed
    assert record(torn, 0) not in believed


def test_a_cut_with_the_hash_of_another_seq_names_nothing_of_a_branch() -> None:
    toy = Toy()
    toy.grant(B, "write")
    opened = toy.log(B)
    toy.write(opened, toy.create("bees"))
    first = toy.write(opened, toy.create("honey"))
    second = toy.write(first, toy.create("wax"))
    place = _at(first, 0)
    place[2] = second.last.seq
    toy.revoke(B, "write", cuts=[place])
    assert record(first) not in toy.agree()


def test_a_cut_of_one_way_does_not_settle_a_fork_for_another() -> None:
    toy = Toy()
    toy.certify(B, ADA)
    toy.grant(ADA, "write")
    toy.grant(B, "write")
    opened = toy.log(B)
    left = toy.write(opened, toy.create("bees"))
    right = toy.write(opened, toy.create("wax"))
    toy.revoke(ADA, "write", cuts=[left])
    assert toy.agree()[record(right)].text == "bees"


def test_a_cut_of_the_only_way_settles_a_fork() -> None:
    toy = Toy()
    toy.grant(B, "write")
    opened = toy.log(B)
    left = toy.write(opened, toy.create("bees"))
    right = toy.write(opened, toy.create("wax"))
    toy.revoke(B, "write", cuts=[left])
    assert toy.agree()[record(right)].text == "bees"


def test_a_settled_branch_is_judged_by_its_own_opening() -> None:
    toy = Toy()
    founding = toy.statements[:FOUNDING]
    toy.grant(C, "write")
    before = toy.log(C, after=founding)
    early = toy.write(before, toy.create("bees"))
    after = toy.open_log(C, toy.heads(toy.statements), before.log)
    late = toy.write(after, toy.create("wax"))
    toy.settle(late)
    assert record(early) == record(late)
    assert toy.agree()[record(late)].text == "wax"


def test_a_tombstone_of_a_frozen_branch_is_effective_by_its_own_opening() -> None:
    toy = Toy()
    founding = toy.statements[:FOUNDING]
    toy.grant(C, "write")
    written = toy.write(toy.log(A), toy.create("bees"))
    good = toy.log(C)
    toy.write(good, toy.erase(record(written)))
    bad = toy.open_log(C, toy.heads(founding), good.log)
    kept = toy.write(toy.log(A), toy.create("wax"))
    toy.write(bad, toy.erase(record(kept)))
    believed = toy.agree()
    assert believed[record(written)].state == "erased"
    assert believed[record(kept)].state == "new"


def test_taking_review_ends_current_marks_where_it_cuts() -> None:
    toy = Toy()
    toy.grant(B, "write", "review")
    first = toy.write(toy.log(B), toy.create("bees"))
    kept = toy.write(first, toy.mark(record(first), "current", entry(first)))
    other = toy.write(kept, toy.create("wax"))
    toy.write(other, toy.mark(record(other), "current", entry(other)))
    toy.revoke(B, "review", cuts=[kept])
    believed = toy.agree()
    assert (believed[record(first)].state, believed[record(other)].state) == ("current", "new")


def test_review_given_back_counts_in_a_new_log_only() -> None:
    toy = Toy()
    toy.grant(B, "write", "review")
    first = toy.write(toy.log(B), toy.create("bees"), toy.create("wax"))
    bees, wax = record(first, 0), record(first, 1)
    toy.revoke(B, "review")
    toy.grant(B, "review")
    toy.write(first, toy.mark(bees, "current", entry(first, 0)))
    toy.write(toy.log(B), toy.mark(wax, "current", entry(first, 1)))
    believed = toy.agree()
    assert (believed[bees].state, believed[wax].state) == ("new", "current")


def test_a_tombstone_ahead_of_a_branch_beside_the_cut_withholds_nothing() -> None:
    toy = Toy()
    toy.grant(B, "write")
    written = toy.write(toy.log(A), toy.create("bees"))
    opened = toy.log(B)
    inside = toy.write(opened, toy.create("wax"))
    beside = toy.write(opened, toy.erase(record(written)))
    toy.unchained = {beside.end}
    assert toy.agree()[record(written)].state == "withheld"
    toy.revoke(B, "write", cuts=[inside])
    assert toy.agree()[record(written)].state == "new"


def test_a_tombstone_ahead_of_its_chain_is_judged_again_when_its_log_arrives() -> None:
    toy = Toy()
    toy.grant(B, "write")
    written = toy.write(toy.log(A), toy.create("bees"))
    opened = toy.log(B)
    inside = toy.write(opened, toy.create("wax"))
    beside = toy.write(opened, toy.erase(record(written)))
    toy.revoke(B, "write", cuts=[inside])
    toy.unchained = {beside.end}
    late, other = store_of(toy), node(toy, 1)
    late.add_statements(toy.statements)
    late.add_ahead(toy.ahead())
    late.append_runs([c.run for c in toy.commits if c.log == written.log], 1)
    late.append_runs([opened.run, inside.run], 1)
    assert differences(toy, [late, other])[0] == []


def _at(commit: Commit, number: int) -> list[object]:
    header = commit.run.entries[number].header
    log = commit.log
    return [bytes(log.device), bytes(log.incarnation), header.seq, entry(commit, number)]


def test_a_log_that_forks_twice_is_frozen_from_the_first_place_on() -> None:
    toy = Toy()
    first = toy.write(toy.log(A), toy.create("bees"))
    second = toy.write(first, toy.create("wasps"))
    toy.write(second, toy.create("on the left"))
    toy.write(second, toy.create("on the right"))
    assert toy.agree()[record(second)].state == "new"
    toy.write(first, toy.create("beside"))
    believed = toy.agree()
    assert believed[record(first)].state == "new"
    assert record(second) not in believed
