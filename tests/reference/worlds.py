"""Seeded worlds: small adversarial ledgers, statements and entries of every kind side by side."""

from __future__ import annotations

import random
from typing import Any

from crdt.entry import LogId
from keys.recovery import recovery_hash
from keys.signing import DeviceKey, SigningKey
from keys.statements import Statement, successor_proof
from tests.reference.drafts import Draft
from tests.reference.gates import UNSET
from tests.reference.ledger import (
    DEVICES,
    FOUNDER,
    KEYS,
    LATER_OWNERS,
    OWNERS,
    RECOVERIES,
    Commit,
    Ledger,
    certificate,
    founding_recovery,
    proof,
)

WALLS = (0, 5, 1_000, 1_000, 1_000, 1_700_000_000_000, 2_208_988_800_000)
RIGHTS = (
    (["write"], 6),
    (["review", "write"], 6),
    (["admin", "review", "write"], 4),
    (["read"], 1),
    (["review"], 1),
    (["admin"], 1),
)
CHECKED_EVERY = 16  # of how many worlds one passes verify_run itself; the maker is the same


class World(Ledger):
    """One seeded world."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = random.Random(seed)
        super().__init__(rng, recovery=founding_recovery(), checked=seed % CHECKED_EVERY == 0)
        self.signs: dict[bytes, SigningKey] = {o.public: o for o in OWNERS}
        self.recovery = {o.public: RECOVERIES[i] for i, o in enumerate(OWNERS)}
        self._establish()
        for _ in range(rng.randint(4, 8)):
            self._act()
        if rng.random() < 0.03:
            self.absent = {bytes(rng.choice(self.statements[1:]).id)}
        followed = {c.before for c in self.commits}
        stones = {d.hash for d in self.drafts.stones}
        ends = [
            c
            for c in self.commits
            if c.end not in followed and any(bytes(e.header.hash) in stones for e in c.run.entries)
        ]
        if ends and rng.random() < 0.15:
            self.unchained = {rng.choice(ends).end}
        for commit in self.commits:
            self.lost |= {bytes(e.header.hash) for e in commit.run.entries if rng.random() < 0.01}

    def _establish(self) -> None:
        """The usual beginning: a device of the founder and one of somebody else, some rights."""
        rng = self.rng
        self.say(certificate(0, 0, rng.choice(WALLS)))
        if rng.random() < 0.7:
            self.say(certificate(1, rng.choice((0, 1, 1)), rng.choice(WALLS)))
        self._grant(FOUNDER, rng.choice((OWNERS[1], OWNERS[1], DEVICES[1], DEVICES[2])))
        if rng.random() < 0.4:
            self._grant(FOUNDER, OWNERS[1], ["admin", "review", "write"])
        if rng.random() < 0.4:
            self._grant(FOUNDER, OWNERS[2], ["review"])
        self._open(DEVICES[0])
        if rng.random() < 0.7:
            self._open(DEVICES[1])

    def _act(self) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.46:
            self._write()
        elif roll < 0.52:
            self._open(rng.choice(DEVICES[:3]))
        elif roll < 0.57:
            self._fork()
        else:
            owner = rng.choice((0, 1, 1))
            acts = (
                (self._grant, 2),
                (self._revoke, 4),
                (self._lift, 2),
                (self._settle, 2),
                (self._approve, 4),
                (self._policy, 2),
                (self._rotate, 1),
                (self._unseat, 1),
                (self._overtake, 1),
                (lambda: self._certify(rng.randrange(4), owner), 1),
                (lambda: self._decertify(rng.randrange(3), owner), 1),
            )
            rng.choices([a for a, _ in acts], [n for _, n in acts])[0]()

    # -- statements ------------------------------------------------------------------------------

    def view(self, some: list[Statement]) -> list[bytes]:
        """The heads of what somebody has seen: often all there is, sometimes an older part."""
        if some and self.rng.random() < 0.35:
            some = self.rng.sample(some, self.rng.randint(0, len(some)))
        return self.heads(some)

    def _signer(self) -> SigningKey:
        """Mostly the founder; sometimes another owner, an old key, or a device's key (X-62)."""
        roll = self.rng.random()
        if roll < 0.05:
            return self.rng.choice(DEVICES)
        if roll < 0.10:
            return self.rng.choice((*OWNERS, *RECOVERIES))
        return self.signs[(FOUNDER if roll < 0.6 else self.rng.choice(OWNERS[:3])).public]

    def _state(self, kind: str, body: dict[str, Any], signer: SigningKey | None = None) -> None:
        body["wall_ms"] = self.rng.choice(WALLS)
        found = self.statements[:1] if self.rng.random() < 0.9 else []
        view = self.view(self.statements) or self.heads(found)
        self.sign(signer or self._signer(), kind, body, view)

    def _by_owner(self, kind: str, owner: int, body: dict[str, Any]) -> None:
        who = OWNERS[owner].public
        body |= {"owner": who, "wall_ms": self.rng.choice(WALLS)}
        wrong = self.rng.random() < 0.05
        signer = self.rng.choice(OWNERS) if wrong else self.signs[who]
        seen = self.statements if wrong else self.level(who)
        self.sign(signer, kind, body, self.view(seen))

    def _certify(self, device: int, owner: int) -> None:
        named = {"device": DEVICES[device].public, "name": "laptop"}
        self._by_owner("certify", owner, named | {"proof": proof(device, owner)})

    def _decertify(self, device: int, owner: int) -> None:
        cuts = [[bytes(self.agent), *c[1:]] for c in self._cuts(DEVICES[device].public)]
        if self.rng.random() < 0.3:
            cuts = []
        self._by_owner("decertify", owner, {"device": DEVICES[device].public, "cuts": cuts})

    def _subject(self) -> SigningKey:
        return self.rng.choice((*OWNERS[1:3], OWNERS[1], *DEVICES[:3], FOUNDER))

    def _rights(self) -> list[str]:
        return list(self.rng.choices([r for r, _ in RIGHTS], [n for _, n in RIGHTS])[0])

    def _grant(
        self,
        signer: SigningKey | None = None,
        subject: SigningKey | None = None,
        rights: list[str] | None = None,
    ) -> None:
        subject, rng = subject or self._subject(), self.rng
        recovery = self.recovery.get(subject.public)
        known = recovery is not None and rng.random() < 0.6
        body = _named(subject) | {
            "rights": rights or self._rights(),
            "recovery": recovery_hash(recovery.public) if recovery and known else b"",
            "sealed": [],
            "until_ms": 5 if rng.random() < 0.05 else 0,
        }
        self._state("grant", body, signer)

    def _revoke(self) -> None:
        rng, named = self.rng, _named(self._subject())
        earlier = [s for s in self.statements if s.kind == "revoke"]
        replaces = []
        if earlier and rng.random() < 0.5:
            other = rng.choice(earlier)
            replaces = [bytes(other.id)]
            if rng.random() < 0.8:
                named = {k: other.body[k] for k in ("subject_kind", "subject")}
        if not replaces and rng.random() < 0.5:  # somebody who has something to lose
            granted = [s for s in self.statements if s.kind == "grant"]
            named = {k: rng.choice(granted).body[k] for k in ("subject_kind", "subject")}
            named["subject_kind"] = "owner" if named["subject"] in self.signs else "device"
        is_device = named["subject_kind"] == "device"
        devices = [named["subject"]] if is_device else [d.public for d in DEVICES]
        signed = [bytes(s.id) for s in self.statements if s.signer == named["subject"]]
        stones = [d.hash for d in self.drafts.stones]
        body = named | {
            "rights": self._rights(),
            "cuts": [c for d in devices for c in self._cuts(d)],
            "keep": sorted(h for h in stones if rng.random() < 0.4),
            "keeps": sorted(i for i in signed if rng.random() < 0.5),
            "replaces": replaces,
            "key": b"",
        }
        if rng.random() < 0.05:
            self.keys[:] = list(KEYS)
            body["key"] = KEYS[1].commitment
        self._state("revoke", body)

    def _unseat(self) -> None:
        """One admin takes ``review`` from another owner who has used it (R17)."""
        reviewer, record = self.rng.choice((OWNERS[1], OWNERS[2])), self.drafts.some_record()
        key = self.signs[reviewer.public]
        self._state("approve", {"items": [[bytes(record), []]]}, key)
        empty = {"cuts": [], "keep": [], "keeps": [], "replaces": [], "key": b""}
        body = _named(reviewer) | {"rights": ["review"]} | empty
        self._state("revoke", body, self.signs[self.rng.choice(OWNERS[:2]).public])

    def _cuts(self, device: bytes) -> list[list[Any]]:
        """Cuts of a device's logs: at the tip, backdated, inside a commit, unknown, or left out."""
        out = []
        for log in self._logs():
            roll = self.rng.random()
            if log.device != device or roll < 0.12:
                continue
            entries = [e.header for c in self.of_log(log) for e in c.run.entries]
            at = entries[-1] if roll < 0.5 else self.rng.choice(entries)
            place = [bytes(device), bytes(log.incarnation), at.seq, bytes(at.hash)]
            if roll > 0.96:
                place[2:] = [at.seq + self.rng.randrange(3), self.rng.randbytes(32)]
            elif roll > 0.93:
                place[2] = at.seq + 1
            out.append(place)
        return out

    def _rotate(self) -> None:
        rng = self.rng
        owner = rng.choice((FOUNDER, OWNERS[1]))
        old, signer = self.signs[owner.public], self.recovery[owner.public]
        new = rng.choice(LATER_OWNERS) if rng.random() < 0.9 else OWNERS[3]
        following = RECOVERIES[4]
        if rng.random() < 0.1:
            signer = rng.choice((*RECOVERIES, old))
        drop = rng.random() * 0.4
        signed = [bytes(s.id) for s in self.statements if s.signer == old.public]
        body = {
            "owner": owner.public,
            "new": new.public,
            "recovery": recovery_hash(following.public),
            "keeps": sorted(i for i in signed if rng.random() > drop),
            "proof": successor_proof(new, owner.public),
            "wall_ms": rng.choice(WALLS),
        }
        self.sign(signer, "rotate", body, self.view(self.level(owner.public)))
        if rng.random() < 0.8:
            self.signs[owner.public], self.recovery[owner.public] = new, following

    def _settle(self) -> None:
        forked = [log for log in self._logs() if self._is_forked(log)]
        if not forked:
            self._approve()
            return
        log = self.rng.choice(forked)
        commits = self.of_log(log)
        at = self.rng.choice([e.header for c in commits[-3:] for e in c.run.entries])
        place = {"device": log.device, "incarnation": log.incarnation, "hash": at.hash}
        body = {k: bytes(v) for k, v in place.items()}
        signer = self.signs[FOUNDER.public] if self.rng.random() < 0.7 else None
        self._state("settle", body | {"seq": at.seq}, signer)

    def _approve(self) -> None:
        record = self.drafts.some_record()
        made = self.drafts.made.get(record, [])
        heads = self.rng.sample(made, self.rng.randint(1, min(2, len(made)))) if made else []
        item = [bytes(record), sorted({d.hash for d in heads})]
        self._state(self.rng.choice(("approve", "approve", "reject")), {"items": [item]})

    def _policy(self) -> None:
        """One or two at once, with words that are known and ones that are not (R17, R21)."""
        rng, words = self.rng, ("open", "open", "review", " open")
        view = self.view(self.statements) or self._found()
        for _ in range(rng.choice((1, 2))):
            chosen = rng.sample(sorted(UNSET), rng.randint(1, 6))
            settings = {key: rng.choice(words) for key in chosen}
            body = {"settings": settings, "wall_ms": rng.choice(WALLS)}
            self.sign(self._signer(), "policy", body, view)

    def _lift(self) -> None:
        facts, rng = self.drafts.facts, self.rng
        record = rng.choice(facts)[0] if facts else self.drafts.some_record()
        chosen = [f for f in facts if rng.random() < (0.8 if f[0] == record else 0.1)]
        stones = [s.hash for s in self.drafts.stones if rng.random() < 0.5]
        body = {
            "record": bytes(record),
            "facts": sorted([bytes(h), key] for _, h, key in chosen),
            "tombstones": sorted(stones),
        }
        self._state("lift", body)

    # -- logs ------------------------------------------------------------------------------------

    def _logs(self) -> list[LogId]:
        return list(dict.fromkeys(c.log for c in self.commits))

    def _is_forked(self, log: LogId) -> bool:
        befores = [c.before for c in self.of_log(log)]
        return len(set(befores)) < len(befores)

    def _open(self, device: DeviceKey) -> None:
        again = self.rng.choice(self._logs()) if self.commits else None
        if again is not None and self.rng.random() < 0.06:
            self._follow(self.open_log(device, self.view(self.statements) or self._found(), again))
            return
        self._follow(self.open_log(device, self.view(self.statements) or self._found()))

    def _found(self) -> list[bytes]:
        return [bytes(self.agent)]

    def _write(self) -> None:
        self._follow(self.of_log(self.rng.choice(self._logs()))[-1])

    def _fork(self) -> None:
        """A second commit after one that was continued already (R7), or inside it (R3)."""
        pairs = [(c, d) for c in self.commits for d in self.commits if d.before == c.end]
        if not pairs:
            self._write()
            return
        before, follower = self.rng.choice(pairs)
        shared = self.rng.randint(0, len(follower.run.entries) - 1)
        self._follow(before, follower, shared)

    def _overtake(self) -> None:
        """A record is replaced by one whose log is then forked before it (R7)."""
        old, log = self.drafts.some_record(), self.rng.choice(self._logs())
        before = self.of_log(log)[-1]
        successor = self.drafts.create(log, before.last.seq + 1)
        made = self.commit(log, before, [successor], self.rng.choice(WALLS))
        if old in self.drafts.made:
            other = self.of_log(self.rng.choice([c.log for c in self.commits]))[-1]
            fact = self.drafts.replace(other.log, other.last.seq + 1, old, successor.record)
            self.commit(other.log, other, [fact], self.rng.choice(WALLS))
        self._follow(before, made)

    def _follow(self, before: Commit, beside: Commit | None = None, shared: int = 0) -> None:
        begun = beside.run.entries[:shared] if beside else ()
        count = begun[-1].header.commit_left if begun else self.rng.choice((1, 1, 2, 3))
        drafts: list[Draft] = []
        for i in range(count):
            seq = before.last.seq + shared + i + 1
            drafts.append(self.drafts.draft(before.log, seq))
        self.commit(before.log, before, drafts, self.rng.choice(WALLS), begun)


def _named(subject: SigningKey) -> dict[str, Any]:
    kind = "device" if isinstance(subject, DeviceKey) else "owner"
    return {"subject_kind": kind, "subject": subject.public}
