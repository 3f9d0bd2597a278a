"""R14: record times are a function of the set, whatever came late."""

from tests.reference.toys import A, Toy, entry, record


def test_an_opening_that_waited_for_statements_has_their_time() -> None:
    toy = Toy()
    late = toy.act("lift", {"record": bytes(16), "facts": [], "tombstones": []}, wall_ms=9_000)
    toy.act("lift", {"record": bytes(16), "facts": [], "tombstones": []}, after=[late])
    written = toy.write(toy.log(A), toy.create("bees"))
    assert toy.agree()[record(written)].created_ms == 9_000


def test_an_erased_record_has_the_time_of_a_tombstone_that_was_raised() -> None:
    toy = Toy()
    written = toy.write(toy.log(A), toy.create("bees"))
    late = toy.act("lift", {"record": bytes(16), "facts": [], "tombstones": []}, wall_ms=9_000)
    toy.write(toy.log(A, after=[*toy.statements, late]), toy.erase(record(written)))
    assert toy.agree()[record(written)].changed_ms == 9_000


def test_a_tombstone_is_no_dep_and_raises_nothing() -> None:
    toy = Toy()
    opened = toy.log(A)
    written = toy.write(opened, toy.create("bees"))
    erased = toy.write(opened, toy.erase(record(written)), wall_ms=9_000)
    beside = toy.write(toy.log(A), toy.mark(record(erased), "current", entry(erased)))
    later = toy.write(beside, toy.create("wax"))
    assert toy.agree()[record(later)].created_ms == 1_000
