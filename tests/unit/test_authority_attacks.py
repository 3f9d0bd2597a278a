"""Statements that a stranger, a guest or an admin signs to get more than they were given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from keys import codec
from keys.authority import Authority
from keys.errors import BadSignature
from keys.ids import AgentId
from keys.limits import STATEMENTS_PER_AGENT_MAX
from keys.recovery import recovery_hash
from keys.signing import DeviceKey, OwnerKey, SigningKey
from keys.statements import (
    Statement,
    agent_of,
    parse,
    parse_stored,
    sign,
    successor_proof,
)
from tests.support.author import WALL_MS, certify, device_key, owner_key, seeded

ALICE, BOB, MALLORY = owner_key("alice"), owner_key("bob"), owner_key("mallory")
PAPER = {name: SigningKey(seeded(f"paper {name}")) for name in ("alice", "alice 2", "bob", "m")}
LAPTOP, PHONE = device_key("laptop"), device_key("phone")
INCARNATION = seeded("incarnation", 8)


class Acts:
    """An agent of Alice's, and what was signed about it so far."""

    def __init__(self) -> None:
        body = {
            "owner": ALICE.public,
            "name": "notes",
            "nonce": bytes(16),
            "recovery": recovery_hash(PAPER["alice"].public),
            "key": bytes(32),
            "wall_ms": WALL_MS,
        }
        found = sign(ALICE, "found", body, agent=b"", after=[])
        self.agent: AgentId = agent_of(found)
        self.all: list[Statement] = [found]

    def act(
        self,
        key: SigningKey,
        kind: str,
        body: dict[str, Any],
        after: Sequence[Statement] | None = None,
    ) -> Statement:
        """Sign something after all that there is, or after what is given."""
        seen = [self.all[0], *self.all] if after is None else after
        heads = [bytes(s.id) for s in seen if not any(s.id in t.after for t in seen)]
        agent = b"" if kind == "rotate" else bytes(self.agent)
        made = sign(key, kind, body | {"wall_ms": WALL_MS}, agent=agent, after=sorted(set(heads)))
        self.all.append(parse(made.data, made.signature))
        return made

    def grant(
        self, key: SigningKey, subject: SigningKey, *rights: str, recovery: bytes = b"", **kw: Any
    ) -> Statement:
        """Give rights to a device or an owner."""
        return self.act(key, "grant", _subject(subject, rights) | _given(recovery), **kw)

    def revoke(
        self,
        key: SigningKey,
        subject: SigningKey,
        *rights: str,
        cuts: Sequence[list[object]] = (),
        keeps: Sequence[Statement] = (),
        replaces: Sequence[Statement] = (),
        **kw: Any,
    ) -> Statement:
        """Take rights from a device or an owner."""
        taken = {
            "cuts": list(cuts),
            "keep": [],
            "keeps": [s.id for s in keeps],
            "replaces": [s.id for s in replaces],
            "key": b"",
        }
        return self.act(key, "revoke", _subject(subject, rights) | taken, **kw)

    def approve(self, key: SigningKey, **kw: Any) -> Statement:
        """Approve a record, another one each time."""
        record = len(self.all).to_bytes(16, "big")
        return self.act(key, "approve", {"items": [[record, [bytes(32)]]]}, **kw)

    def rotate(
        self, owner: OwnerKey, paper: SigningKey, new: OwnerKey, following: SigningKey, **kw: Any
    ) -> Statement:
        """Replace an owner's key with what is on paper."""
        body = {
            "owner": owner.public,
            "new": new.public,
            "recovery": recovery_hash(following.public),
            "keeps": [s.id for s in self.all if s.signer == owner.public],
            "proof": successor_proof(new, owner.public),
        }
        return self.act(paper, "rotate", body | kw, after=[])

    @property
    def authority(self) -> Authority:
        """What all that was signed allows."""
        return Authority(self.agent, self.all)

    def counts(self, statement: Statement) -> bool:
        """Whether something that was signed is valid now."""
        return self.authority.is_valid(statement.id)

    def holds(self, subject: SigningKey, right: str) -> bool:
        """Whether a device or an owner holds a right now."""
        if isinstance(subject, DeviceKey):
            return self.authority.holds_device(subject.public, right).held
        return self.authority.holds_owner(subject.public, right)


def _subject(key: SigningKey, rights: Sequence[str]) -> dict[str, Any]:
    kind = "device" if isinstance(key, DeviceKey) else "owner"
    return {"subject_kind": kind, "subject": key.public, "rights": sorted(rights)}


def _given(recovery: bytes) -> dict[str, Any]:
    return {"recovery": recovery, "sealed": [], "until_ms": 0}


def test_a_device_with_a_right_cannot_certify_others_into_it() -> None:
    """A grant to a device is to that device: its key is nobody's owner key."""
    acts = Acts()
    acts.grant(ALICE, LAPTOP, "write")
    as_owner = OwnerKey(LAPTOP.seed())
    acts.all.append(certify(as_owner, PHONE))

    assert acts.holds(LAPTOP, "write")
    assert not acts.holds(PHONE, "write")
    assert not acts.holds(PHONE, "read")
    assert not acts.holds(as_owner, "write")


@pytest.mark.parametrize("signer", [MALLORY, BOB], ids=["a stranger", "an admin"])
def test_only_the_founder_commits_to_another_owners_recovery_key(signer: OwnerKey) -> None:
    """Otherwise whoever gets a statement into the set can take an owner's place."""
    acts = Acts()
    carol = owner_key("carol")
    acts.grant(ALICE, BOB, "admin")
    acts.grant(ALICE, carol, "review")
    stolen = recovery_hash(PAPER["m"].public)
    acts.grant(signer, carol, "read", recovery=stolen, after=[])
    acts.grant(signer, carol, "read", recovery=stolen)
    acts.rotate(carol, PAPER["m"], MALLORY, PAPER["m"])

    assert acts.authority.owner_of_key(MALLORY.public) == MALLORY.public
    assert acts.counts(acts.approve(carol))
    assert not acts.counts(acts.approve(MALLORY))


def test_an_owner_whom_the_founder_gave_rights_recovers_with_his_own_paper() -> None:
    """The new key has what the old one had; the old one has nothing but what was kept."""
    acts = Acts()
    later = owner_key("bob later")
    acts.grant(ALICE, BOB, "review", recovery=recovery_hash(PAPER["bob"].public))
    kept = acts.approve(BOB)
    acts.rotate(BOB, PAPER["bob"], later, PAPER["m"])
    late, new = acts.approve(BOB, after=acts.all[:2]), acts.approve(later)

    assert [acts.counts(s) for s in (kept, late, new)] == [True, False, True]


def test_a_recovery_key_signs_nothing_but_the_rotation() -> None:
    """What was on paper is spent: whoever finds the paper later is nobody."""
    acts = Acts()
    acts.rotate(ALICE, PAPER["alice"], MALLORY, PAPER["alice 2"])
    found_paper = acts.grant(PAPER["alice"], BOB, "read")

    assert not acts.counts(found_paper)
    assert acts.authority.current_key(ALICE.public) == MALLORY.public


def test_two_recoveries_in_a_row_lead_to_the_last_key() -> None:
    """Each rotation commits to the next paper; an old one works only once."""
    acts = Acts()
    second, third = owner_key("alice 2"), owner_key("alice 3")
    acts.rotate(ALICE, PAPER["alice"], second, PAPER["alice 2"])
    kept = acts.grant(second, BOB, "read")
    acts.rotate(ALICE, PAPER["alice 2"], third, PAPER["m"], keeps=[bytes(kept.id)])
    authority = acts.authority

    assert acts.counts(kept)
    assert acts.counts(acts.grant(third, BOB, "write"))
    assert not acts.counts(acts.grant(second, BOB, "write"))
    assert {authority.owner_of_key(k.public) for k in (ALICE, second, third)} == {ALICE.public}
    assert authority.current_key(ALICE.public) == third.public


def test_a_rotation_carries_the_new_keys_own_signature() -> None:
    """Nobody names the key of another owner, who would then speak for two and for neither."""
    acts = Acts()
    acts.grant(ALICE, MALLORY, "read", recovery=recovery_hash(PAPER["m"].public))

    with pytest.raises(BadSignature):
        acts.rotate(
            MALLORY,
            PAPER["m"],
            ALICE,
            PAPER["m"],
            proof=successor_proof(MALLORY, MALLORY.public),
        )


def test_the_founders_key_stays_his_whoever_rotates_to_it() -> None:
    """Even with his signature: the founder comes first."""
    acts = Acts()
    acts.grant(ALICE, BOB, "read", recovery=recovery_hash(PAPER["bob"].public))
    acts.rotate(BOB, PAPER["bob"], ALICE, PAPER["m"])

    assert acts.counts(acts.grant(ALICE, PHONE, "read"))


def test_a_removal_is_replaced_only_by_one_of_the_same_subject() -> None:
    """An admin who removes somebody else does not bring back what the founder cut."""
    acts = Acts()
    acts.grant(ALICE, BOB, "admin")
    acts.grant(ALICE, LAPTOP, "write")
    heads = acts.authority.heads()
    cut = [LAPTOP.public, INCARNATION, 5, seeded("five")]
    removal = acts.revoke(ALICE, LAPTOP, "write", cuts=[cut])
    acts.revoke(BOB, PHONE, "write", replaces=[removal])

    def cuts() -> list[int]:
        verdict = acts.authority.log_verdict(LAPTOP.public, INCARNATION, heads)
        return sorted(c.seq for path in verdict.paths for c in path)

    assert cuts() == [5]
    acts.revoke(BOB, LAPTOP, "write", cuts=[[*cut[:2], 9, seeded("nine")]], replaces=[removal])
    assert cuts() == [9]


def test_a_second_decertification_cuts_what_the_first_could_not_name() -> None:
    """R19: an agent that was not at hand is cut at 0 until a statement lists its logs."""
    acts = Acts()
    certificate = certify(ALICE, LAPTOP)
    acts.all.append(certificate)
    heads = acts.authority.heads()

    def decertify(cuts: list[list[object]], after: Statement) -> Statement:
        body = {"owner": ALICE.public, "device": LAPTOP.public, "cuts": cuts, "wall_ms": WALL_MS}
        made = sign(ALICE, "decertify", body, agent=b"", after=[bytes(after.id)])
        acts.all.append(made)
        return made

    def cuts() -> list[int]:
        verdict = acts.authority.log_verdict(LAPTOP.public, INCARNATION, heads)
        return sorted(c.seq for path in verdict.paths for c in path)

    first = decertify([[bytes(32), INCARNATION, 3, bytes(32)]], certificate)
    assert cuts() == [0]
    second = decertify([[bytes(acts.agent), INCARNATION, 7, seeded("seven")]], first)
    assert cuts() == [7]
    decertify([[bytes(acts.agent), INCARNATION, 9, seeded("nine")]], second)
    assert cuts() == [7, 9]


@pytest.mark.parametrize("right", ["read", "review"])
@pytest.mark.parametrize("signer", [ALICE, BOB], ids=["founder", "admin"])
def test_a_removed_reviewer_cannot_backdate_a_decision(signer: OwnerKey, right: str) -> None:
    """R17: what he signs without the removal in its past is void, what is kept stays."""
    acts = Acts()
    carol = owner_key("carol")
    acts.grant(ALICE, BOB, "admin")
    acts.grant(ALICE, carol, "review")
    before, kept = list(acts.all), acts.approve(carol)
    acts.revoke(signer, carol, right, keeps=[kept])
    backdated = acts.approve(carol, after=before)

    assert acts.counts(kept)
    assert not acts.counts(backdated)


def test_an_admin_voids_nothing_of_another_admin() -> None:
    """R17: only the founder gives or takes ``admin``."""
    acts = Acts()
    carol = owner_key("carol")
    acts.grant(ALICE, BOB, "admin")
    acts.grant(ALICE, carol, "review")
    given = acts.grant(ALICE, carol, "admin")
    approved = acts.approve(carol)
    acts.revoke(BOB, carol, "review", after=[s for s in acts.all if s not in (given, approved)])

    assert acts.counts(approved)


@pytest.mark.slow
def test_a_set_full_of_a_strangers_statements_is_judged_in_linear_time() -> None:
    """Whoever may read an agent can fill its set; every change of the set judges it anew."""
    acts = Acts()
    start = time.process_time()
    for n in range(STATEMENTS_PER_AGENT_MAX // 2):
        body = {"subject_kind": "owner", "subject": n.to_bytes(32, "big"), "rights": ["read"]}
        taken = {"cuts": [], "keep": [], "keeps": [], "replaces": [], "key": b""}
        for kind, rest in (("grant", _given(b"")), ("revoke", taken)):
            value = [1, acts.agent, MALLORY.public, acts.all[0].after, kind]
            data = codec.encode([*value, body | rest | {"wall_ms": 0}])
            acts.all.append(parse_stored(data, bytes(64)))
    made = time.process_time() - start
    start = time.process_time()
    authority = acts.authority
    assert time.process_time() - start < max(2.0, 3 * made)
    assert authority.valid("grant") == []
