"""R11, R21: what a gated record shows, and what counts of it before a person has approved it."""

from crdt.payload import put
from tests.reference.toys import A, Toy, entry, record


def test_an_entry_does_not_retire_a_gated_record() -> None:
    toy = Toy()
    rule = toy.write(toy.log(A), toy.create("bees", body_category="rule"))
    toy.write(rule, toy.mark(record(rule), "deprecated no", entry(rule)))
    toy.write(toy.log(A), toy.create("Bees"))
    believed = toy.agree()
    assert believed[record(rule)].state == "proposed"
    assert {b.state for b in believed.values()} == {"proposed", "new"}


def test_an_approved_entry_retires_a_gated_record() -> None:
    toy = Toy()
    rule = toy.write(toy.log(A), toy.create("bees", body_category="rule"))
    marked = toy.write(rule, toy.mark(record(rule), "deprecated no", entry(rule)))
    toy.judge("approve", record(rule), entry(marked))
    assert toy.agree()[record(rule)].state == "deprecated"


def test_an_approval_of_heads_that_are_not_here_shows_nothing_as_approved() -> None:
    toy = Toy()
    rule = toy.write(toy.log(A), toy.create("bees", body_category="rule"))
    toy.judge("approve", record(rule), bytes(32))
    believed = toy.agree()[record(rule)]
    assert (believed.state, believed.proposal) == ("proposed", True)


def test_an_edit_after_the_approved_heads_is_only_proposed() -> None:
    toy = Toy()
    skill = toy.write(toy.log(A), toy.create("bees", "skill", field_weight=1.0))
    toy.judge("approve", record(skill), entry(skill))
    toy.write(skill, toy.edit(record(skill), put("field.weight", 2.0), deps=[entry(skill)]))
    believed = toy.agree()[record(skill)]
    assert (believed.state, believed.values["field.weight"]) == ("current", 1.0)


def test_a_rejected_proposal_replaces_nothing() -> None:
    toy = Toy()
    old = toy.write(toy.log(A), toy.create("bees"))
    rule = toy.write(old, toy.create("wax", body_category="rule"))
    toy.write(rule, toy.next(record(old), record(rule), entry(old)))
    toy.judge("reject", record(rule), entry(rule))
    believed = toy.agree()
    assert (believed[record(old)].state, believed[record(rule)].state) == ("new", "deprecated")


def test_a_lift_ends_facts_of_the_record_it_names_and_of_no_other() -> None:
    toy = Toy()
    old = toy.write(toy.log(A), toy.create("bees"))
    marked = toy.write(old, toy.mark(record(old), "deprecated no", entry(old)))
    toy.lift(bytes(16), [(entry(marked), "mark.m")])
    assert toy.agree()[record(old)].state == "deprecated"


def test_a_lifted_fact_is_ended() -> None:
    toy = Toy()
    old = toy.write(toy.log(A), toy.create("bees"))
    marked = toy.write(old, toy.mark(record(old), "deprecated no", entry(old)))
    toy.lift(record(old), [(entry(marked), "mark.m")])
    assert toy.agree()[record(old)].state == "new"


def test_a_statement_earlier_than_its_record_makes_no_version() -> None:
    toy = Toy()
    written = toy.write(toy.log(A), toy.create("bees"), wall_ms=9_000)
    toy.judge("approve", record(written), entry(written), after=[], wall_ms=5)
    assert toy.agree()[record(written)].created_ms == 9_000
