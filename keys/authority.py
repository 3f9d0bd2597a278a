"""Who may do what: a pure function of the set of statements (R16-R20). See GRANTS.md.

1. A statement waits until everything in its ``after`` is here, and is judged by that past alone.
2. A right holds iff some valid grant of it has every valid revocation of it in its past.
3. Removals void: taking ``admin`` or ``review`` from an owner voids his statements outside its
   ``keeps`` (R17); a rotation voids what the old key signed outside its ``keeps`` (R20).
4. A log is admitted by the past of its ``open``; an entry is inside iff some path that gave
   ``write`` has it inside all cuts of that path (R18, R19).
5. No clock, no order of arrival, no peer enters. (``until_ms`` limits serving only, R26.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from keys.ids import AgentId, StatementId
from keys.policy import in_force
from keys.statement_set import StatementSet
from keys.statements import OWNER_KINDS, Cut, Statement, cut_of

_IMPLIED: Final = {"write": ("read",), "review": ("read",), "read": (), "admin": ()}
_TAKES: Final = {"read": ("review", "write"), "write": (), "review": (), "admin": ()}
ACT_RIGHTS: Final = {
    "grant": "admin",
    "revoke": "admin",
    "settle": "admin",
    "release": "admin",
    "drop": "admin",
    "policy": "admin",
    "undo": "admin",
    "lift": "review",
    "approve": "review",
    "reject": "review",
}


# ("device" or "owner", key): a device's key is not an owner's, even where the bytes are the same.
_Subject: TypeAlias = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What the statements say of one log.

    ``paths`` holds one tuple of cuts per path that gave ``write``; no path means the log is not
    admitted. ``reviews`` holds the same of the paths that gave ``review``: inside the cuts of one
    of them ``current`` marks count (R11). ``settles`` bind every path.
    """

    paths: tuple[tuple[Cut, ...], ...]
    settles: tuple[Cut, ...]
    reviews: tuple[tuple[Cut, ...], ...]

    @property
    def admitted(self) -> bool:
        """Whether the device held ``write`` in the past of the log's ``open``."""
        return bool(self.paths)


@dataclass(frozen=True, slots=True)
class Reason:
    """The answer to a question about a right, with the statement that decided it."""

    held: bool
    statement: StatementId | None


@dataclass(frozen=True, slots=True)
class _Path:
    """How a right reaches a device: a grant (None: the founding) and a certificate, if any."""

    grant: int | None
    certificate: int | None
    owner: bytes | None


class Authority(StatementSet):
    """The rights that a set of verified statements gives for one agent."""

    def __init__(self, agent: AgentId, statements: Iterable[Statement]) -> None:
        super().__init__(agent, statements)
        self._valid = 0
        self._kinds: dict[str, list[int]] = {}
        self._about: dict[tuple[str, _Subject], list[int]] = {}  # those of one kind and subject
        for i, statement in enumerate(self._order):
            self._kinds.setdefault(statement.kind, []).append(i)
            if statement.kind in _WITH_SUBJECT:
                self._about.setdefault((statement.kind, _subject(statement)), []).append(i)
        self._judge()
        self._lifted = self._collect_lifts()
        self.policy = in_force(self.valid("policy"), self._saw)
        self.acts = self._collect_acts()

    # -- reading ---------------------------------------------------------------------------------

    def valid(self, kind: str) -> list[Statement]:
        """The valid statements of one kind, past first."""
        return [self._order[i] for i in self._kinds.get(kind, ()) if self._valid >> i & 1]

    def is_valid(self, statement: bytes) -> bool:
        """Whether a statement is here, its past is here, and it counts."""
        i = self._index.get(StatementId(statement))
        return i is not None and bool(self._valid >> i & 1)

    def refused(self) -> list[Statement]:
        """The acts about this agent whose signers had no right to them in their past."""
        return [
            s
            for i, s in enumerate(self._order)
            if s.kind in ACT_RIGHTS and s.agent == self.agent and not self._may(i, s)
        ]

    def holds_owner(self, owner: bytes, right: str, mask: int | None = None) -> bool:
        """Whether an owner holds a right in the past given by ``mask`` (now, without one)."""
        return next(self._owner_grants(owner, right, self._scope(mask)), None) is not None

    def holds_device(self, device: bytes, right: str, now_ms: int | None = None) -> Reason:
        """Whether a device holds a right now, and by which statement (``now_ms``: see R26)."""
        for path in self._device_paths(device, right, self._valid):
            grant = self._order[path.grant] if path.grant is not None else self.founding
            until = grant.body.get("until_ms", 0) if grant else 0
            if now_ms is None or not until or now_ms < until:
                return Reason(True, grant.id if grant else None)
        removal = self._last_removal(device, right)
        return Reason(False, removal)

    def certified(self, owner: bytes) -> list[bytes]:
        """The devices that an owner's certificates name now, in byte order."""
        devices = {self._order[i].body["device"] for i in self._kinds.get("certify", ())}
        return sorted(
            d for d in devices if any(o == owner for o, _ in self._certificates(d, self._valid))
        )

    def devices(self) -> list[bytes]:
        """Every device that a valid certificate or grant names, in byte order."""
        certified = {bytes(s.body["device"]) for s in self.valid("certify")}
        granted = {
            bytes(s.body["subject"])
            for s in self.valid("grant")
            if s.body["subject_kind"] == "device"
        }
        return sorted(certified | granted)

    def owners_of(self, device: bytes) -> list[bytes]:
        """The owners that certify a device now."""
        return sorted({owner for owner, _ in self._certificates(device, self._valid)})

    def log_verdict(self, device: bytes, incarnation: bytes, heads: Iterable[bytes]) -> LogVerdict:
        """What the statements say of a log whose ``open`` cites ``heads`` (R16, R18, R19)."""
        past = self.past_of(heads)
        if past is None:
            return LogVerdict((), (), ())
        scope = past & self._valid

        def paths(right: str) -> tuple[tuple[Cut, ...], ...]:
            found = self._device_paths(device, right, scope)
            cuts = {self._cuts(path, right, device, incarnation, scope) for path in found}
            return tuple(sorted(cuts, key=repr))

        settles = tuple(
            cut_of(s, self.agent, device, incarnation)
            for s in self.valid("settle")
            if s.body["device"] == device and s.body["incarnation"] == incarnation
        )
        return LogVerdict(paths("write"), settles, paths("review"))

    def kept_tombstones(self) -> frozenset[bytes]:
        """Tombstone entries that revocations keep although they are past a cut (R30)."""
        return frozenset(h for s in self.valid("revoke") for h in s.body["keep"])

    def lifted_fact(self, entry: bytes, key: str) -> bool:
        """Whether a valid ``lift`` names this very fact (R11)."""
        return (entry, key) in self._lifted

    def lifted_tombstone(self, entry: bytes) -> bool:
        """Whether a valid ``lift`` names this very tombstone (R27)."""
        return (entry, "") in self._lifted

    def key_commitments(self) -> list[bytes]:
        """Hashes of the agent's fingerprint keys, the founding one first (R25)."""
        found = [self.founding.body["key"]] if self.founding else []
        return found + [s.body["key"] for s in self.valid("revoke") if s.body["key"]]

    # -- deciding --------------------------------------------------------------------------------

    def _scope(self, mask: int | None) -> int:
        return self._valid if mask is None else self._valid & mask

    def _judge(self) -> None:
        removals = _by_subject(
            s for s in self._order if self._is_removal(s) and self._is_founders(s)
        )
        for i, statement in enumerate(self._order):
            if not self._kept_by_rotation(statement) or self._voided(i, statement, removals):
                continue
            if self._may(i, statement):
                self._valid |= 1 << i
        self._void_by_admins()

    def _void_by_admins(self) -> None:
        """What admins take from others voids too. No right hangs on it: those were no admins."""
        admins = {
            s.body["subject"]
            for s in self.valid("grant")
            if s.body["subject_kind"] == "owner" and "admin" in s.body["rights"]
        }
        removals = _by_subject(
            s
            for s in self.valid("revoke")
            if self._is_removal(s) and not self._is_founders(s) and s.body["subject"] not in admins
        )
        for i, statement in enumerate(self._order):
            if self._valid >> i & 1 and self._voided(i, statement, removals):
                self._valid &= ~(1 << i)

    def _is_removal(self, s: Statement) -> bool:
        """Whether it takes ``admin`` or ``review`` from an owner; ``read`` includes ``review``."""
        return (
            s.kind == "revoke"
            and s.agent == self.agent
            and s.body["subject_kind"] == "owner"
            and s.body["subject"] != self.founder
            and bool({"admin", "read", "review"} & set(s.body["rights"]))
        )

    def _voided(self, i: int, statement: Statement, removals: dict[bytes, list[Statement]]) -> bool:
        if statement.kind not in ACT_RIGHTS:
            return False
        return any(
            not self._past[i] >> self._index[r.id] & 1 and statement.id not in r.body["keeps"]
            for r in removals.get(self.owner_of_key(statement.signer), ())
        )

    def _may(self, i: int, s: Statement) -> bool:
        """Whether the signer was allowed this statement, by its past alone."""
        signer = self.owner_of_key(s.signer)
        if s.kind == "found":
            return bytes(s.id) == bytes(self.agent) and s.signer == s.body["owner"]
        if s.kind == "rotate":
            return s in self._old_keys.values()
        if s.kind in OWNER_KINDS:
            return signer == bytes(s.body["owner"])
        if s.agent != self.agent or s.kind not in ACT_RIGHTS:
            return False
        past = self._past[i]
        if signer != self.founder:
            if not self.holds_owner(signer, ACT_RIGHTS[s.kind], past):
                return False
            if s.kind in ("grant", "revoke") and "admin" in s.body["rights"]:
                return False
            if s.kind == "revoke" and self._is_admin(s, past):
                return False
        if s.kind == "grant":
            return not s.body["until_ms"] or list(s.body["rights"]) == ["read"]
        return s.kind != "revoke" or bytes(s.body["subject"]) != self.founder

    def _is_admin(self, s: Statement, past: int) -> bool:
        """R17: admins cannot revoke one another."""
        return s.body["subject_kind"] == "owner" and self.holds_owner(
            s.body["subject"], "admin", past
        )

    def _saw(self, earlier: Statement, later: Statement) -> bool:
        return bool(self._past[self._index[later.id]] >> self._index[earlier.id] & 1)

    def _collect_lifts(self) -> frozenset[tuple[bytes, str]]:
        lifts = self.valid("lift")
        facts = {(entry, key) for s in lifts for entry, key in s.body["facts"]}
        return frozenset(facts | {(entry, "") for s in lifts for entry in s.body["tombstones"]})

    def acts_unlike(self, other: Authority) -> set[bytes]:
        """The records about which ``other`` knows other acts of persons than this."""
        return {
            record
            for record in self.acts.keys() | other.acts.keys()
            if [s.id for s in self.acts.get(record, ())]
            != [s.id for s in other.acts.get(record, ())]
        }

    def _collect_acts(self) -> dict[bytes, list[Statement]]:
        """Per record the valid statements about it (lift, approve, reject), past first."""
        acts: dict[bytes, list[Statement]] = {}
        for s in self._order:
            if s.kind in ("lift", "approve", "reject") and self.is_valid(s.id):
                named = [s.body["record"]] if s.kind == "lift" else [r for r, _ in s.body["items"]]
                for record in named:
                    acts.setdefault(record, []).append(s)
        return acts

    def _matching(self, kind: str, subject: _Subject, right: str, scope: int) -> Iterator[int]:
        table = _IMPLIED if kind == "grant" else _TAKES
        for i in self._about.get((kind, subject), ()):
            rights = self._order[i].body["rights"]
            if scope >> i & 1 and (right in rights or any(right in table[r] for r in rights)):
                yield i

    def _owner_grants(self, owner: bytes, right: str, scope: int) -> Iterator[int | None]:
        if owner == self.founder and self.founding:
            yield None
        removed = 0
        for i in self._matching("revoke", ("owner", owner), right, scope):
            removed |= 1 << i
        for i in self._matching("grant", ("owner", owner), right, scope):
            if not removed & ~self._past[i]:
                yield i

    def _certificates(self, device: bytes, scope: int) -> Iterator[tuple[bytes, int]]:
        ends: dict[bytes, int] = {}
        for j in self._about.get(("decertify", ("device", device)), ()):
            if scope >> j & 1:
                owner = self._order[j].body["owner"]
                ends[owner] = ends.get(owner, 0) | 1 << j
        for i in self._about.get(("certify", ("device", device)), ()):
            owner = self._order[i].body["owner"]
            if scope >> i & 1 and not ends.get(owner, 0) & ~self._past[i]:
                yield owner, i

    def _device_paths(self, device: bytes, right: str, scope: int) -> Iterator[_Path]:
        removed = 0
        for i in self._matching("revoke", ("device", device), right, scope):
            removed |= 1 << i
        for i in self._matching("grant", ("device", device), right, scope):
            if not removed & ~self._past[i]:
                yield _Path(i, None, None)
        for owner, certificate in self._certificates(device, scope):
            for grant in self._owner_grants(owner, right, scope):
                past = 0 if grant is None else self._past[grant]
                if not removed & ~past:
                    yield _Path(grant, certificate, owner)

    def _cuts(
        self, path: _Path, right: str, device: bytes, incarnation: bytes, past: int
    ) -> tuple[Cut, ...]:
        """The cuts that end a log along one path: removals that its ``open`` had not seen."""
        later = self._valid & ~past
        ends = set(self._matching("revoke", ("device", device), right, later))
        if path.owner is not None:
            ends |= set(self._matching("revoke", ("owner", path.owner), right, later))
            ends |= {
                j
                for j in self._about.get(("decertify", ("device", device)), ())
                if later >> j & 1 and self._order[j].body["owner"] == path.owner
            }
        replaced = {i for j in ends for i in self._replaced_by(j, ends)}
        return tuple(
            sorted(
                {cut_of(self._order[j], self.agent, device, incarnation) for j in ends - replaced},
                key=lambda cut: (cut.seq, cut.hash),
            )
        )

    def _replaced_by(self, j: int, ends: set[int]) -> Iterator[int]:
        """The removals whose cuts give way to those of ``j``, which has them in its past.

        Those that a revocation names (R18); of certificates those that list no log of this agent,
        and so cut all of them at 0, until one lists some (R19).
        """
        later = self._order[j]
        for i in ends:
            earlier = self._order[i]
            if earlier.kind != later.kind or not self._past[j] >> i & 1:
                continue
            if later.kind == "revoke":
                if earlier.id in later.body["replaces"]:
                    yield i
            elif self._lists_agent(later) and not self._lists_agent(earlier):
                yield i

    def _lists_agent(self, s: Statement) -> bool:
        return any(row[0] == self.agent for row in s.body["cuts"])

    def _last_removal(self, device: bytes, right: str) -> StatementId | None:
        subjects: list[_Subject] = [
            ("device", device),
            *(
                ("owner", self._order[i].body["owner"])
                for i in self._about.get(("certify", ("device", device)), ())
            ),
        ]
        found = [i for s in subjects for i in self._matching("revoke", s, right, self._valid)]
        return self._order[max(found)].id if found else None


_WITH_SUBJECT: Final = frozenset({"grant", "revoke", "certify", "decertify"})


def _subject(s: Statement) -> _Subject:
    if s.kind in OWNER_KINDS:
        return "device", s.body["device"]
    return s.body["subject_kind"], s.body["subject"]


def _by_subject(statements: Iterable[Statement]) -> dict[bytes, list[Statement]]:
    out: dict[bytes, list[Statement]] = {}
    for s in statements:
        out.setdefault(s.body["subject"], []).append(s)
    return out
