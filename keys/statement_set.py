"""A set of statements: which have their whole past here, in what order, and whose keys sign.

1. A statement waits until everything in its ``after`` is here (R16).
2. An owner is known by his first key; rotations, each signed by the recovery key committed to
   before, name the later ones (R20).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from keys.ids import AgentId, StatementId
from keys.recovery import recovery_hash
from keys.statements import OWNER_KINDS, Statement


class StatementSet:
    """The statements of one agent's set whose past is here, each after its past."""

    def __init__(self, agent: AgentId, statements: Iterable[Statement]) -> None:
        self.agent = agent
        self._order = past_first(statements)
        self._index = {s.id: i for i, s in enumerate(self._order)}
        self._past = self._pasts()
        self.founding = next((s for s in self._order if _founds(s, agent)), None)
        self.founder: bytes = self.founding.body["owner"] if self.founding else b""
        self._owner_of: dict[bytes, bytes] = {}
        self._old_keys: dict[bytes, Statement] = {}
        self.recovery: dict[bytes, bytes] = {}
        self._resolve_rotations()
        self.times: dict[bytes, int] = {}  # record time in ms (R14)
        for s in self._order:
            self.times[s.id] = max([s.wall_ms, *(self.times[before] for before in s.after)])

    @property
    def known(self) -> frozenset[bytes]:
        """Ids of the statements whose past is here."""
        return frozenset(self._index)

    def order_ids(self) -> list[StatementId]:
        """Ids of the statements whose past is here, each after its past."""
        return [s.id for s in self._order]

    def past_of(self, heads: Iterable[bytes]) -> int | None:
        """The mask of ``heads`` and all before them; None when one of them is not here."""
        mask = 0
        for head in heads:
            i = self._index.get(StatementId(head))
            if i is None:
                return None
            mask |= self._past[i] | 1 << i
        return mask

    def heads(self, *, owner: bytes | None = None) -> list[bytes]:
        """Statements that no other follows; with ``owner`` those among that owner's own."""
        chosen = [
            i
            for i, s in enumerate(self._order)
            if owner is None or (s.kind in OWNER_KINDS and s.body["owner"] == owner)
        ]
        covered = 0
        for i in chosen:
            covered |= self._past[i]
        return sorted(self._order[i].id for i in chosen if not covered >> i & 1)

    def owner_of_key(self, key: bytes) -> bytes:
        """The owner whose key this is or was: the first key of a rotated owner."""
        return self._owner_of.get(key, key)

    def current_key(self, owner: bytes) -> bytes:
        """The key that signs for ``owner`` now."""
        keys = [k for k, o in self._owner_of.items() if o == owner and k not in self._old_keys]
        return keys[0] if keys else owner

    def _pasts(self) -> list[int]:
        pasts: list[int] = []
        for statement in self._order:
            mask = 0
            for before in statement.after:
                i = self._index[StatementId(before)]
                mask |= pasts[i] | 1 << i
            pasts.append(mask)
        return pasts

    def _resolve_rotations(self) -> None:
        """Follow each owner's recovery keys from the committed hash (R20).

        The founder's first: only a grant that the founder signed commits to another owner's.
        Everybody may put a statement into the set, and whoever commits to a recovery key can
        take an owner's place.
        """
        rotations = [s for s in self._order if s.kind == "rotate"]
        if self.founding and self.founding.body["recovery"]:
            self._follow(self.founder, self.founding.body["recovery"], rotations)
        for owner, recovery in self._committed().items():
            self._follow(owner, recovery, rotations)

    def _committed(self) -> dict[bytes, bytes]:
        """Per owner the recovery hash in the first of the founder's grants that has one."""
        grants: dict[bytes, list[Statement]] = {}
        for s in self._order:
            if (
                s.kind == "grant"
                and s.agent == self.agent
                and s.body["subject_kind"] == "owner"
                and s.body["subject"] != self.founder
                and s.body["recovery"]
                and self._is_founders(s)
            ):
                grants.setdefault(s.body["subject"], []).append(s)
        return {owner: self._first(found).body["recovery"] for owner, found in grants.items()}

    def _first(self, statements: list[Statement]) -> Statement:
        """The smallest id among those with none of the others in their past."""
        mask = sum(1 << self._index[s.id] for s in statements)
        return min(
            (s for s in statements if not self._past[self._index[s.id]] & mask), key=lambda s: s.id
        )

    def _is_founders(self, s: Statement) -> bool:
        """Whether the founder signed it, with a key that stood for him."""
        return (
            self.founding is not None
            and self.owner_of_key(s.signer) == self.founder
            and self._kept_by_rotation(s)
        )

    def _follow(self, owner: bytes, committed: bytes, rotations: list[Statement]) -> None:
        key = owner
        self._owner_of.setdefault(owner, owner)
        while True:
            self.recovery[owner] = committed
            fits = [
                r
                for r in rotations
                if r.body["owner"] == owner and recovery_hash(r.signer) == committed
            ]
            if not fits:
                return
            chosen = min(fits, key=lambda r: r.id)
            rotations = [r for r in rotations if r not in fits]
            self._old_keys[key] = chosen
            key, committed = chosen.body["new"], chosen.body["recovery"]
            self._owner_of.setdefault(key, owner)

    def _kept_by_rotation(self, s: Statement) -> bool:
        rotation = self._old_keys.get(s.signer)
        return (
            rotation is None
            or bytes(s.id) == bytes(self.agent)
            or s.kind == "rotate"
            or s.id in rotation.body["keeps"]
        )


def _founds(s: Statement, agent: bytes) -> bool:
    return s.kind == "found" and s.id == agent and s.signer == s.body["owner"]


def past_first(statements: Iterable[Statement]) -> list[Statement]:
    """Statements whose whole past is present, each after its past, otherwise by id."""
    by_id = {s.id: s for s in statements}
    missing = {i: len(set(s.after)) for i, s in by_id.items()}
    followers: dict[bytes, list[StatementId]] = {}
    for i, s in by_id.items():
        for before in set(s.after):
            followers.setdefault(before, []).append(i)
    ready = [i for i, count in missing.items() if not count]
    heapify(ready)
    order: list[Statement] = []
    while ready:
        done = heappop(ready)
        order.append(by_id[done])
        for follower in followers.get(done, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower)
    return order
