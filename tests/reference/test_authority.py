"""R16-R19 on toy sets, fed in all orders: the cases S-I3, S-I8, X-62 and X-64."""

from __future__ import annotations

import pytest

from keys.errors import BadInput
from keys.signing import SigningKey
from keys.statements import parse, sign
from tests.reference.judging import LATER, judged, rotate, writes
from tests.reference.ledger import DEVICES, OWNERS, RECOVERIES
from tests.reference.toys import ADA, BEN, A, B, C, Toy, entry, record

# -- R16: a right, its past, and what ends it ------------------------------------------------------


def test_R16_a_revocation_beats_a_grant_that_has_not_seen_it() -> None:
    toy = Toy()
    start = list(toy.statements)
    toy.grant(B, "write", after=start)
    toy.revoke(B, "write", after=start)
    assert not writes(judged(toy), B)


def test_R16_a_grant_that_has_seen_the_revocation_holds() -> None:
    toy = Toy()
    toy.revoke(B, "write")
    toy.grant(B, "write")
    assert writes(judged(toy), B)


def test_R16_a_statement_waits_for_its_past() -> None:
    toy = Toy()
    missing = toy.grant(B, "read")
    toy.grant(C, "write")
    toy.statements.remove(missing)
    assert not writes(judged(toy), C)


def test_R16_a_log_is_admitted_by_what_its_opening_had_seen() -> None:
    toy = Toy()
    before = toy.write(toy.log(B), toy.create("bees"))
    toy.grant(B, "write")
    after = toy.write(toy.log(B), toy.create("wax"))
    judged(toy)
    believed = toy.agree()
    assert record(after) in believed
    assert record(before) not in believed


# -- S-I3: removal is sticky -----------------------------------------------------------------------


def test_S_I3_an_introducer_that_has_not_heard_of_a_removal_does_not_bring_a_device_back() -> None:
    toy = Toy()
    toy.grant(ADA, "admin")
    toy.grant(B, "write")
    introduced = list(toy.statements)
    toy.revoke(B, "write")
    for _ in range(10):
        toy.grant(B, "write", by=ADA, after=introduced)
        introduced.append(toy.statements[-1])
    assert not writes(judged(toy), B)


def test_S_I3_a_device_comes_back_by_a_new_grant_and_a_new_log_that_has_seen_it() -> None:
    toy = Toy()
    toy.grant(B, "write")
    old = toy.log(B)
    before = toy.write(old, toy.create("bees"))
    toy.revoke(B, "write", cuts=[before])
    toy.grant(B, "write")
    toy.write(before, toy.create("wax"))
    again = toy.write(toy.log(B), toy.create("rain"))
    judged(toy)
    assert sorted(b.text for b in toy.agree().values()) == ["bees", "rain"]
    assert record(again) in toy.agree()


# -- S-I8: chains of delegation --------------------------------------------------------------------

CHAINS = (
    ("log",),
    ("grant", "log"),
    ("grant", "certificate", "log"),
    ("admin", "grant", "certificate", "log"),
    ("rotation", "admin", "grant", "certificate", "log"),
)
WRONG = [(chain, wrong) for chain in CHAINS for wrong in (None, *chain)]


@pytest.mark.parametrize(("chain", "wrong"), WRONG)
def test_S_I8_a_chain_with_one_invalid_link_gives_nothing(
    chain: tuple[str, ...], wrong: str | None
) -> None:
    toy = Toy()
    founding, stranger = toy.statements[:2], OWNERS[3]
    founder: SigningKey = OWNERS[0]
    if "rotation" in chain:
        rotate(toy, OWNERS[0], founding, RECOVERIES[1 if wrong == "rotation" else 0])
        founder = LATER
    admin = ADA if "admin" in chain else founder
    if "admin" in chain:
        toy.grant(ADA, "admin", by=stranger if wrong == "admin" else founder)
    if "grant" in chain:
        subject = BEN if "certificate" in chain else C
        toy.grant(subject, "write", by=stranger if wrong == "grant" else admin)
    if "certificate" in chain:
        toy.certify(C, BEN, by=stranger if wrong == "certificate" else BEN)
    device = C if "grant" in chain else A
    seen = founding[:1] if wrong == "log" else None
    written = toy.write(toy.log(device, after=seen), toy.create("bees"))
    judged(toy)
    assert (record(written) in toy.agree()) == (wrong is None)


def test_S_I8_a_revocation_of_an_owner_reaches_all_his_devices() -> None:
    toy = Toy()
    toy.certify(B, ADA)
    toy.certify(C, ADA)
    toy.grant(ADA, "write")
    texts = {}
    for device in (B, C):
        kept = toy.write(toy.log(device), toy.create("bees"), toy.create("wax"))
        texts[device.public] = kept
        toy.write(kept, toy.create("rain"))
    toy.revoke(ADA, "write", cuts=list(texts.values()))
    authority = judged(toy)
    assert not writes(authority, B)
    assert not writes(authority, C)
    assert {b.text for b in toy.agree().values()} == {"bees", "wax"}


def test_S_I8_two_admins_that_revoke_each_other_are_both_void() -> None:
    toy = Toy()
    toy.grant(ADA, "admin", "review", "write")
    toy.grant(BEN, "admin", "review", "write")
    start = list(toy.statements)
    one = toy.revoke(BEN, "review", "write", by=ADA, after=start)
    other = toy.revoke(ADA, "review", "write", by=BEN, after=start)
    authority = judged(toy)
    assert (authority.is_valid(one.id), authority.is_valid(other.id)) == (False, False)


# -- R17: what only the founder gives and takes ----------------------------------------------------


def test_R17_an_admin_makes_no_admin() -> None:
    toy = Toy()
    toy.grant(ADA, "admin")
    made = toy.grant(BEN, "admin", by=ADA)
    assert not judged(toy).is_valid(made.id)


def test_R17_a_removal_voids_what_it_does_not_keep_and_whenever_that_arrives() -> None:
    toy = Toy()
    toy.grant(ADA, "admin")
    start = list(toy.statements)
    kept = toy.grant(B, "write", by=ADA)
    lost = toy.grant(C, "write", by=ADA, after=start)
    toy.revoke(ADA, "admin", keeps=[kept])
    late = toy.grant(DEVICES[3], "write", by=ADA, after=start)
    authority = judged(toy)
    assert [authority.is_valid(s.id) for s in (kept, lost, late)] == [True, False, False]


def test_R17_the_founder_cannot_be_removed() -> None:
    toy = Toy()
    toy.grant(ADA, "admin")
    one = toy.revoke(OWNERS[0], "write", by=ADA)
    assert not judged(toy).is_valid(one.id)


# -- who may grant ---------------------------------------------------------------------------


@pytest.mark.parametrize("right", ["admin", "review", "write"])
def test_X_62_a_grant_signed_by_a_devices_key_is_refused(right: str) -> None:
    toy = Toy()
    toy.grant(B, "admin", "review", "write")
    made = toy.grant(C, right, by=B)
    assert not judged(toy).is_valid(made.id)


def test_X_62_a_grant_with_an_end_carries_read_only() -> None:
    toy = Toy()
    writing = toy.grant(B, "write", until_ms=5)
    reading = toy.grant(B, "read", until_ms=5)
    authority = judged(toy)
    assert not authority.is_valid(writing.id)
    assert authority.is_valid(reading.id)
    assert not authority.holds_device(B.public, "read", now_ms=6).held


def test_X_62_a_grant_is_for_the_device_it_names() -> None:
    toy = Toy()
    toy.grant(B, "write")
    assert not writes(judged(toy), C)


def test_X_62_there_is_no_grant_for_everybody() -> None:
    toy = Toy()
    named = {"subject_kind": "device", "subject": b"", "rights": ["write"]}
    with pytest.raises(BadInput):
        toy.act("grant", named | {"recovery": b"", "sealed": [], "until_ms": 0})


# -- a revoked device's entries through a third node -----------------------------------------


def test_X_64_only_what_is_inside_the_cut_is_believed_whoever_brings_it() -> None:
    toy = Toy()
    toy.grant(B, "write")
    opened = toy.log(B)
    inside = toy.write(opened, toy.create("bees"))
    past = toy.write(inside, toy.create("wax"), wall_ms=0)
    honest = toy.write(toy.log(A), toy.mark(record(past), "current", entry(past)))
    toy.revoke(B, "write", cuts=[inside])
    judged(toy)
    assert list(toy.agree()) == [record(inside)]
    assert record(honest) == record(past)


def test_X_64_a_log_that_the_revocation_does_not_name_is_cut_whole() -> None:
    toy = Toy()
    toy.grant(B, "write")
    hidden = toy.write(toy.log(B), toy.create("bees"))
    toy.revoke(B, "write")
    judged(toy)
    assert record(hidden) not in toy.agree()


def test_R18_a_later_revocation_replaces_the_cuts_of_the_one_it_names() -> None:
    toy = Toy()
    toy.grant(B, "write")
    first = toy.write(toy.log(B), toy.create("bees"))
    second = toy.write(first, toy.create("wax"))
    earlier = toy.revoke(B, "write", cuts=[first])
    toy.revoke(B, "write", cuts=[second], replaces=[earlier])
    judged(toy)
    assert sorted(b.text for b in toy.agree().values()) == ["bees", "wax"]


def test_R18_of_several_cuts_an_entry_is_inside_all() -> None:
    toy = Toy()
    toy.grant(B, "write")
    first = toy.write(toy.log(B), toy.create("bees"))
    second = toy.write(first, toy.create("wax"))
    toy.revoke(B, "write", cuts=[first])
    toy.revoke(B, "write", cuts=[second])
    judged(toy)
    assert [b.text for b in toy.agree().values()] == ["bees"]


def test_R19_a_decertified_device_keeps_what_another_way_gave_it() -> None:
    toy = Toy()
    toy.certify(B, ADA)
    toy.certify(B, BEN)
    toy.grant(ADA, "write")
    toy.grant(BEN, "write")
    written = toy.write(toy.log(B), toy.create("bees"))
    toy.decertify(B, ADA)
    judged(toy)
    assert record(written) in toy.agree()
    toy.decertify(B, BEN)
    judged(toy)
    assert record(written) not in toy.agree()


def test_R19_a_certificate_without_the_devices_own_signature_is_no_statement() -> None:
    toy = Toy()
    good = toy.certify(B, ADA)
    body = good.body | {"device": C.public}
    forged = sign(ADA, "certify", body, agent=b"", after=[])
    with pytest.raises(BadInput):
        parse(forged.data, forged.signature)
