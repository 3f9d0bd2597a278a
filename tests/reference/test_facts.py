"""R7, R11: facts withhold whatever comes of the entries that made them."""

import pytest

from crdt.entry import derived_id
from crdt.payload import put
from tests.reference.toys import A, B, Make, Toy, entry, record


@pytest.mark.parametrize("name", ["ab " * 10 + "cd", "AB" * 16, "ab" * 15, "zz" * 16])
def test_a_successor_that_is_no_record_id_makes_its_entry_malformed(name: str) -> None:
    toy = Toy()
    written = toy.write(toy.log(A), toy.create("bees"))
    wrong = toy.edit(record(written), put("next." + name, ""), deps=[entry(written)])
    toy.write(written, wrong)
    assert toy.agree()[record(written)].state == "new"


def test_a_frozen_retirement_holds_on_a_record_whose_other_creation_is_later() -> None:
    toy = Toy()
    toy.grant(B, "write")
    shared = derived_id(toy.agent, "summary", b"x")

    def create(text: str) -> Make:
        return toy.create(text, "summary", body_key=b"x", at=shared)

    opened = toy.log(B)
    first = toy.write(opened, create("bees"))
    toy.write(first, toy.mark(shared, "deprecated", entry(first)))
    toy.write(opened, toy.create("wax"))
    toy.write(toy.log(A), create("bees"), wall_ms=9_000)
    assert toy.agree()[shared].state == "deprecated"
