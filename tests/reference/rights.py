"""R16-R20 written out: who may do what, as plain functions over a set of statements.

Slow on purpose: every question is answered from the whole set, nothing is kept up to date.
What RULES.md leaves open is decided as follows.

1. A signer is the owner whose key, first or later, it is; the founder is known from the agent's id.
2. An owner's first recovery hash is the founding one, or that of the founder's first grant to him;
   of two rotations with one recovery key the smaller id counts.
3. ``write`` and ``review`` imply ``read``; taking ``read`` takes them too.
4. A revocation of a device ends all its ways to a right, also those through an owner.
5. An admin's taking of ``review`` voids the statements only of somebody who was never an admin.
6. A decertification that lists no log of an agent gives way to a later one that does.
7. ``current`` counts inside the cuts of a way that gave ``review``, as an entry does of ``write``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from keys.recovery import recovery_hash
from keys.statements import OWNER_KINDS, Cut, Statement, cut_of

Past = frozenset[bytes]
Subject = tuple[str, bytes]
NEEDED = {
    "grant": "admin",
    "revoke": "admin",
    "policy": "admin",
    "settle": "admin",
    "release": "admin",
    "drop": "admin",
    "undo": "admin",
    "approve": "review",
    "reject": "review",
    "lift": "review",
}
GIVING = {
    "read": {"read", "write", "review"},
    "write": {"write"},
    "review": {"review"},
    "admin": {"admin"},
}
TAKING = {
    "read": {"read"},
    "write": {"read", "write"},
    "review": {"read", "review"},
    "admin": {"admin"},
}


class Rights:
    """What one set of statements says."""

    def __init__(self, agent: bytes, statements: Iterable[Statement]) -> None:
        self.agent = agent
        given = {bytes(s.id): s for s in statements if s.agent in (b"", agent)}
        self.all = _present({i: s for i, s in given.items() if s.kind != "found" or i == agent})
        self._pasts: dict[bytes, Past] = {}
        self._allowed: dict[bytes, bool] = {}
        self._valid: dict[bytes, bool] = {}

    def of(self, *kinds: str) -> list[Statement]:
        """The statements of some kinds that are here, valid or not."""
        return [s for s in self.all.values() if s.kind in kinds]

    # -- R16: the past ---------------------------------------------------------------------------

    def past(self, heads: Iterable[bytes]) -> Past:
        """The heads and everything that they build on."""
        out: set[bytes] = set()
        todo = list(heads)
        while todo:
            at = todo.pop()
            if at not in out:
                out.add(at)
                todo += self.all[at].after
        return frozenset(out)

    def before(self, s: Statement) -> Past:
        """Everything that a statement builds on, itself excluded."""
        if s.id not in self._pasts:
            self._pasts[s.id] = self.past(s.after)
        return self._pasts[s.id]

    # -- R20: keys of owners ---------------------------------------------------------------------

    @cached_property
    def founder(self) -> bytes:
        """The founding owner, empty while the founding statement is missing."""
        found = self.all.get(self.agent)
        return bytes(found.body["owner"]) if found and found.kind == "found" else b""

    @cached_property
    def turns(self) -> dict[bytes, Statement]:
        """The rotation that ended each key that was rotated away."""
        out: dict[bytes, Statement] = {}
        owners = {bytes(s.body["owner"]) for s in self.of("rotate")}
        for owner in sorted(owners, key=lambda o: o != self.founder):
            out.update(self._turns_of(owner, out))
        return out

    def _turns_of(self, owner: bytes, others: dict[bytes, Statement]) -> dict[bytes, Statement]:
        out: dict[bytes, Statement] = {}
        key, recovery, left = owner, self._first_recovery(owner, others), self.of("rotate")
        while True:
            fits = [
                s
                for s in left
                if s.body["owner"] == owner and recovery and recovery_hash(s.signer) == recovery
            ]
            if not fits:
                return out
            out[key] = min(fits, key=lambda s: s.id)
            left = [s for s in left if s not in fits]
            key, recovery = out[key].body["new"], out[key].body["recovery"]

    def _first_recovery(self, owner: bytes, others: dict[bytes, Statement]) -> bytes:
        if owner == self.founder:
            return bytes(self.all[self.agent].body["recovery"])
        keys = {self.founder} | {
            s.body["new"] for s in others.values() if s.body["owner"] == self.founder
        }
        grants = [
            g
            for g in self.of("grant")
            if _subject(g) == ("owner", owner)
            and g.body["recovery"]
            and g.signer in keys
            and (g.signer not in others or g.id in others[g.signer].body["keeps"])
        ]
        first = [g for g in grants if not any(h.id in self.before(g) for h in grants)]
        return bytes(min(first, key=lambda g: g.id).body["recovery"]) if first else b""

    def owner_of(self, key: bytes) -> bytes:
        """The owner whose key this is or was."""
        for s in self.turns.values():
            if s.body["new"] == key:
                return bytes(s.body["owner"])
        return key

    # -- validity --------------------------------------------------------------------------------

    def valid(self, s: Statement) -> bool:
        """Whether a statement counts: allowed by its past, and not void by a removal (R17)."""
        if s.id not in self._valid:
            self._valid[s.id] = self.allowed(s) and not any(
                self.owner_of(r.signer) != self.founder
                and self.takes_statements(r, s)
                and not self._ever_admin(r.body["subject"])
                and self.allowed(r)
                for r in self.of("revoke")
            )
        return self._valid[s.id]

    def allowed(self, s: Statement) -> bool:
        """Whether its past lets its signer make it, and neither founder nor rotation voids it."""
        if s.id not in self._allowed:
            self._allowed[s.id] = self._allows(s)
        return self._allowed[s.id]

    def _allows(self, s: Statement) -> bool:
        turn = self.turns.get(s.signer)
        if s.kind == "found":
            return bool(s.signer == s.body["owner"])
        if s.kind == "rotate":
            return s in self.turns.values()
        if turn is not None and s.id not in turn.body["keeps"]:
            return False
        owner = self.owner_of(s.signer)
        if s.kind in OWNER_KINDS:
            return bool(owner == s.body["owner"])
        if s.kind not in NEEDED or any(
            self.owner_of(r.signer) == self.founder
            and self.allowed(r)
            and self.takes_statements(r, s)
            for r in self.of("revoke")
            if r is not s and owner != self.founder
        ):
            return False
        past = self.before(s)
        if not self.holds(("owner", owner), NEEDED[s.kind], past):
            return False
        if s.kind == "grant":
            return self._grant_allowed(s, owner)
        return s.kind != "revoke" or self._revoke_allowed(s, owner, past)

    def _grant_allowed(self, s: Statement, owner: bytes) -> bool:
        rights = s.body["rights"]
        if "admin" in rights and owner != self.founder:  # R17
            return False
        return not s.body["until_ms"] or rights == ["read"]  # R26

    def _revoke_allowed(self, s: Statement, owner: bytes, past: Past) -> bool:
        if s.body["subject"] == self.founder:
            return False
        if owner == self.founder:
            return True
        both = s.body["subject_kind"] == "owner" and self.holds(_subject(s), "admin", past)
        return "admin" not in s.body["rights"] and not both  # R17

    def takes_statements(self, r: Statement, s: Statement) -> bool:
        """R17: whether the removal ``r``, if it counts, makes ``s`` void."""
        return (
            s.kind in NEEDED
            and _subject(r) == ("owner", self.owner_of(s.signer))
            and bool({"admin", "review", "read"} & set(r.body["rights"]))
            and s.id not in r.body["keeps"]
            and r.id not in self.before(s)
            and s is not r
        )

    def _ever_admin(self, owner: bytes) -> bool:
        return any(
            _subject(g) == ("owner", owner) and "admin" in g.body["rights"] and self.allowed(g)
            for g in self.of("grant")
        )

    # -- rights ----------------------------------------------------------------------------------

    def holds(self, subject: Subject, right: str, past: Past) -> bool:
        """R16: some valid grant of it in ``past`` has every valid revocation of it in its past."""
        if subject == ("owner", self.founder):
            return True
        return bool(self._grants(subject, right, past, [subject]))

    def _grants(
        self, subject: Subject, right: str, past: Past, ends: list[Subject]
    ) -> list[Statement]:
        """The grants in ``past`` that have every revocation of ``ends`` there in their past."""
        taken = [r for end in ends for r in self.revocations(end, right, lambda r: r.id in past)]
        return [
            g
            for g in self.of("grant")
            if g.id in past
            and _subject(g) == subject
            and GIVING[right] & set(g.body["rights"])
            and self.allowed(g)
            and all(r.id in self.before(g) for r in taken)
        ]

    def revocations(
        self, subject: Subject, right: str, where: Callable[[Statement], bool]
    ) -> list[Statement]:
        """The revocations that count, of one right of one subject."""
        return [
            r
            for r in self.of("revoke")
            if where(r)
            and _subject(r) == subject
            and TAKING[right] & set(r.body["rights"])
            and self.allowed(r)
        ]

    def ways(self, device: bytes, right: str, past: Past) -> list[Subject]:
        """R19: how a device holds a right: by its own grant, or an owner's and a certificate."""
        out: list[Subject] = []
        if self._grants(("device", device), right, past, [("device", device)]):
            out.append(("device", device))
        for owner in sorted({c.body["owner"] for c in self._certificates(device, past)}):
            way = ("owner", owner)
            taken = self.revocations(("device", device), right, lambda r: r.id in past)
            if (owner == self.founder and not taken) or self._grants(
                way, right, past, [way, ("device", device)]
            ):
                out.append(way)
        return out

    def _certificates(self, device: bytes, past: Past) -> list[Statement]:
        """R19: the certificates of a device in ``past`` that no decertification there ended."""
        ended = self._decertified(device, lambda d: d.id in past)
        return [
            c
            for c in self.of("certify")
            if c.id in past
            and c.body["device"] == device
            and self.allowed(c)
            and all(d.id in self.before(c) for d in ended if d.body["owner"] == c.body["owner"])
        ]

    def _decertified(self, device: bytes, where: Callable[[Statement], bool]) -> list[Statement]:
        found = [d for d in self.of("decertify") if d.body["device"] == device and where(d)]
        return [d for d in found if self.allowed(d)]

    # -- R18, R19: cuts --------------------------------------------------------------------------

    def cuts(
        self, way: Subject, device: bytes, incarnation: bytes, right: str, past: Past
    ) -> list[Cut]:
        """Where the removals that a log's opening had not seen end it, along one way."""
        subjects = {way, ("device", device)}
        removals = [
            r for s in subjects for r in self.revocations(s, right, lambda r: r.id not in past)
        ]
        if way[0] == "owner":
            removals += [
                d
                for d in self._decertified(device, lambda d: d.id not in past)
                if d.body["owner"] == way[1]
            ]
        ends = [s for s in removals if not any(self.replaces(t, s) for t in removals)]
        return [cut_of(s, self.agent, device, incarnation) for s in ends]

    def replaces(self, t: Statement, s: Statement) -> bool:
        """Whether the cuts of ``s`` give way to those of ``t`` where both cut (R18, R19)."""
        if s.id not in self.before(t) or s.kind != t.kind:
            return False
        if s.kind == "revoke":
            return s.id in t.body["replaces"]
        return self._lists_agent(t) and not self._lists_agent(s)

    def _lists_agent(self, s: Statement) -> bool:
        return any(row[0] == self.agent for row in s.body["cuts"])

    def settles(self, device: bytes, incarnation: bytes) -> list[Cut]:
        """What people decided about a forked log (R7)."""
        return [
            cut_of(s, self.agent, device, incarnation)
            for s in self.of("settle")
            if (s.body["device"], s.body["incarnation"]) == (device, incarnation) and self.valid(s)
        ]

    @cached_property
    def kept(self) -> set[bytes]:
        """The tombstones that revocations keep (R30)."""
        return {t for s in self.of("revoke") if self.valid(s) for t in s.body["keep"]}

    @cached_property
    def times(self) -> dict[bytes, int]:
        """R14: a statement is never earlier than what it builds on."""
        return {
            i: max([s.wall_ms, *(self.all[p].wall_ms for p in self.before(s))])
            for i, s in self.all.items()
        }


def _present(given: dict[bytes, Statement]) -> dict[bytes, Statement]:
    """R16: what has its whole past here."""
    here = dict(given)
    while True:
        left = {i: s for i, s in here.items() if all(a in here for a in s.after)}
        if len(left) == len(here):
            return here
        here = left


def _subject(s: Statement) -> Subject:
    return s.body["subject_kind"], s.body["subject"]
