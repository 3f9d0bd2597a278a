"""What the real code makes of a toy set of statements in all orders, and what the rules do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations

from crdt.payload import decode_open
from keys.authority import Authority
from keys.recovery import recovery_hash
from keys.signing import OwnerKey, SigningKey
from keys.statements import Statement, successor_proof
from tests.reference.ledger import LATER_OWNERS, RECOVERIES, Commit
from tests.reference.rights import Rights
from tests.reference.toys import Toy

ALL_ORDERS_UP_TO = 6  # statements; of larger sets some orders
SOME_ORDERS = 100
LATER = LATER_OWNERS[0]  # the key that rotations name


def judged(toy: Toy) -> Authority:
    """What the real code makes of a set: the same in all orders, and what the rules say."""
    rights = Rights(toy.agent, toy.statements)
    valid = {s.id for s in rights.all.values() if rights.valid(s)}
    verdicts = [_by_rules(rights, opening) for opening in _openings(toy)]
    for order in _orders(toy.statements):
        authority = Authority(toy.agent, order)
        assert {s.id for s in order if authority.is_valid(s.id)} == valid
        assert [_by_code(authority, opening) for opening in _openings(toy)] == verdicts
    return Authority(toy.agent, toy.statements)


def _orders(statements: list[Statement]) -> Iterator[list[Statement]]:
    if len(statements) <= ALL_ORDERS_UP_TO:
        yield from map(list, permutations(statements))
        return
    rng = random.Random(len(statements))
    for _ in range(SOME_ORDERS):
        yield rng.sample(statements, len(statements))


def _openings(toy: Toy) -> list[Commit]:
    return [c for c in toy.commits if c.last.seq == 1]


def _by_rules(rights: Rights, opening: Commit) -> object:
    seen = rights.past(_opened(opening))
    device, incarnation = opening.log.device, opening.log.incarnation
    return [
        {
            frozenset(rights.cuts(way, device, incarnation, right, seen))
            for way in rights.ways(device, right, seen)
        }
        for right in ("write", "review")
    ]


def _by_code(authority: Authority, opening: Commit) -> object:
    log = opening.log
    heads = _opened(opening)
    verdict = authority.log_verdict(log.device, log.incarnation, heads)
    return [{frozenset(path) for path in paths} for paths in (verdict.paths, verdict.reviews)]


def _opened(opening: Commit) -> tuple[bytes, ...]:
    return decode_open(opening.run.entries[0].payload or b"").heads


def writes(authority: Authority, device: SigningKey) -> bool:
    """Whether a device holds ``write`` now."""
    return authority.holds_device(device.public, "write").held


def rotate(toy: Toy, owner: OwnerKey, keeps: list[Statement], by: SigningKey) -> Statement:
    """A rotation to ``LATER``, by a recovery key."""
    body = {
        "owner": owner.public,
        "new": LATER.public,
        "recovery": recovery_hash(RECOVERIES[4].public),
        "keeps": sorted(bytes(s.id) for s in keeps),
        "proof": successor_proof(LATER, owner.public),
    }
    return toy.act("rotate", body, by=by, after=toy.level(owner.public))
