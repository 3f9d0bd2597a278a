"""R7, R27, R31: values that return, sources that are erased, successors that come and go."""

import pytest

from tests.reference.toys import A, B, Toy, entry, record


@pytest.mark.parametrize("mark", ["deprecated no", "current"])
def test_what_was_derived_from_something_erased_is_withheld_whatever_its_own_state(
    mark: str,
) -> None:
    toy = Toy()
    source = toy.write(toy.log(A), toy.create("bees"))
    derived = toy.write(source, toy.create("wax", body_derived__from=bytes(record(source))))
    toy.write(derived, toy.mark(record(derived), mark, entry(derived)))
    toy.write(toy.log(A), toy.erase(record(source)))
    assert toy.agree()[record(derived)].state == "withheld"


def test_a_proposal_derived_from_something_erased_is_withheld() -> None:
    toy = Toy()
    source = toy.write(toy.log(A), toy.create("bees"))
    key = bytes(record(source))
    rule = toy.create("wax", body_category="rule", body_derived__from=key)
    derived = toy.write(source, rule)
    toy.write(toy.log(A), toy.erase(record(source)))
    assert toy.agree()[record(derived)].state == "withheld"


def test_a_retired_record_with_an_erased_value_reads_returning() -> None:
    toy = Toy()
    erased = toy.write(toy.log(A), toy.create("bees"))
    other = toy.write(erased, toy.create("Bees!"))
    toy.write(other, toy.mark(record(other), "deprecated no", entry(other)))
    toy.write(toy.log(A), toy.erase(record(erased), "bees"))
    assert toy.agree()[record(other)].state == "returning"


def test_an_erased_successor_refuses_what_its_tombstone_does_not_list() -> None:
    toy = Toy()
    old = toy.write(toy.log(A), toy.create("bees"))
    same = toy.write(old, toy.create("Bees"))
    toy.write(same, toy.next(record(old), record(same), entry(old)))
    third = toy.write(toy.log(A), toy.create("BEES"))
    assert toy.agree()[record(third)].state == "new"
    toy.write(toy.log(A), toy.erase(record(same)))
    believed = toy.agree()
    assert (believed[record(old)].state, believed[record(third)].state) == (
        "superseded",
        "returning",
    )


def test_a_lifted_tombstone_still_tells_that_a_successor_had_the_same_value() -> None:
    toy = Toy()
    old = toy.write(toy.log(A), toy.create("bees"))
    same = toy.write(old, toy.create("Bees"))
    toy.write(same, toy.next(record(old), record(same), entry(old)))
    third = toy.write(toy.log(A), toy.create("BEES"))
    stone = toy.write(toy.log(A), toy.erase(record(same), "bees"))
    assert toy.agree()[record(third)].state == "returning"
    toy.lift(record(same), tombstones=[entry(stone)])
    assert toy.agree()[record(third)].state == "new"


def test_freezing_a_successor_makes_nothing_readable_and_cutting_it_does() -> None:
    toy = Toy()
    toy.grant(B, "write")
    old = toy.write(toy.log(A), toy.create("bees"))
    opened = toy.log(B)
    successor = toy.write(opened, toy.create("wax"))
    toy.write(old, toy.next(record(old), record(successor), entry(old)))
    toy.write(opened, toy.create("rain"), toy.create("snow"))
    assert toy.agree()[record(old)].state == "superseded"
    toy.revoke(B, "write", cuts=[opened])
    assert toy.agree()[record(old)].state == "new"


def test_a_frozen_successor_of_the_same_value_refuses_it() -> None:
    toy = Toy()
    toy.grant(B, "write")
    old = toy.write(toy.log(A), toy.create("bees"))
    opened = toy.log(B)
    same = toy.write(opened, toy.create("Bees"))
    toy.write(old, toy.next(record(old), record(same), entry(old)))
    third = toy.write(toy.log(A), toy.create("BEES"))
    toy.write(opened, toy.create("rain"), toy.create("snow"))
    assert toy.agree()[record(third)].state == "returning"


def test_what_was_derived_at_two_removes_from_something_erased_is_withheld() -> None:
    toy = Toy()
    source = toy.write(toy.log(A), toy.create("bees"))
    near = toy.write(source, toy.create("wax", body_derived__from=bytes(record(source))))
    far = toy.write(near, toy.create("candle", body_derived__from=bytes(record(near))))
    toy.write(toy.log(A), toy.erase(record(source)))
    believed = toy.agree()
    assert (believed[record(near)].state, believed[record(far)].state) == ("withheld",) * 2
