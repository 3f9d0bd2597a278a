"""R17, R20: removals at the same time, and an owner's key that is rotated (X-67, X-69)."""

from __future__ import annotations

import pytest

from keys.signing import SigningKey
from tests.reference.judging import LATER, judged, rotate, writes
from tests.reference.ledger import OWNERS, RECOVERIES
from tests.reference.toys import ADA, BEN, A, B, C, Toy

# -- removals at the same time ---------------------------------------------------------------


def test_X_67_two_devices_of_an_owner_that_each_remove_the_other_are_both_out() -> None:
    toy = Toy()
    toy.certify(B, ADA)
    toy.certify(C, ADA)
    toy.grant(ADA, "write")
    start = toy.level(ADA.public)
    for device in (B, C):
        body = {"owner": ADA.public, "device": device.public, "cuts": []}
        toy.act("decertify", body, by=ADA, after=start)
    authority = judged(toy)
    assert (writes(authority, B), writes(authority, C)) == (False, False)


def test_X_67_owners_whom_nobody_knew_as_admins_remove_each_other() -> None:
    toy = Toy()
    toy.grant(ADA, "write")
    toy.grant(BEN, "write")
    start = list(toy.statements)
    toy.certify(B, ADA)
    toy.certify(C, BEN)
    ada = toy.grant(ADA, "admin", after=start)
    ben = toy.grant(BEN, "admin", after=start)
    toy.revoke(BEN, "write", by=ADA, after=[ada])
    toy.revoke(ADA, "write", by=BEN, after=[ben])
    authority = judged(toy)
    assert (writes(authority, B), writes(authority, C)) == (False, False)


# -- an owner's key is rotated ---------------------------------------------------------------


def test_X_69_the_old_key_is_refused_and_its_statements_stand_only_where_they_are_kept() -> None:
    toy = Toy()
    certificate = toy.statements[1]
    kept = toy.grant(B, "write")
    lost = toy.grant(C, "write")
    rotate(toy, OWNERS[0], [certificate, kept], RECOVERIES[0])
    late = toy.grant(C, "write", after=toy.statements[:2])
    authority = judged(toy)
    assert [authority.is_valid(s.id) for s in (kept, lost, late)] == [True, False, False]
    assert (writes(authority, A), writes(authority, B), writes(authority, C)) == (True, True, False)


def test_X_69_the_new_key_speaks_for_the_owner_and_the_agent_is_the_same() -> None:
    toy = Toy()
    rotate(toy, OWNERS[0], [], RECOVERIES[0])
    again = toy.grant(C, "write", by=LATER)
    authority = judged(toy)
    assert (authority.is_valid(again.id), authority.founder) == (True, OWNERS[0].public)


@pytest.mark.parametrize("key", [OWNERS[0], ADA, RECOVERIES[1]], ids=["old key", "admin", "other"])
def test_X_69_only_the_recovery_key_that_was_committed_to_rotates(key: SigningKey) -> None:
    toy = Toy()
    toy.grant(ADA, "admin")
    made = rotate(toy, OWNERS[0], [], key)
    assert not judged(toy).is_valid(made.id)
