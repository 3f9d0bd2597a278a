"""X-50: replicas of one record that write at once and make each other's changes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crdt.document import RecordDocument
from crdt.payload import Op, Type, Verb, delete, put

KEYS = (
    "body.text",
    "field.a",
    "field.b",
    "field.c",
    "tag.x",
    "tag.\u00e9",
    "mark.0000000000000001",
)


@dataclass(frozen=True)
class Made:
    """A change, by the operations that made it."""

    deps: frozenset[bytes]
    actor: bytes
    ops: tuple[Op, ...]
    hash: bytes


@dataclass
class Replica:
    """One node's document of a record, and the changes in it."""

    document: RecordDocument = field(default_factory=RecordDocument)
    known: dict[bytes, Made] = field(default_factory=dict)

    def take(self, change: Made) -> None:
        """Regenerate somebody's change; it must come out as it was made."""
        assert self.document.apply(change.deps, change.actor, change.ops) == change.hash
        self.known[change.hash] = change

    def heads(self) -> frozenset[bytes]:
        """The changes that no other builds on."""
        covered = {dep for change in self.known.values() for dep in change.deps}
        return frozenset(self.known.keys() - covered)

    def write(self, rng: random.Random, *, creates: bool) -> None:
        """Some operations of this replica's own, if they have an effect."""
        deps = frozenset() if creates else self.heads()
        actor, ops = rng.randbytes(16), tuple(some_ops(rng))
        made = self.document.apply(deps, actor, ops)
        if made is not None:
            self.known[made] = Made(deps, actor, ops, made)


def some_value(rng: random.Random) -> Op:
    """A put of any scalar type, ends of the ranges included."""
    key = rng.choice(KEYS)
    match rng.randrange(7):
        case 0:
            return put(key, None)
        case 1:
            return put(key, rng.random() < 0.5)
        case 2:
            return put(key, rng.choice((0, 1, -1, 2**63 - 1, -(2**63), rng.getrandbits(40))))
        case 3:
            return Op(key, Verb.PUT, Type.UINT, rng.choice((0, 1, 2**64 - 1, rng.getrandbits(64))))
        case 4:
            return put(key, rng.choice((0.0, -0.0, 1.5, 1e308, 5e-324, rng.random())))
        case 5:
            return put(key, rng.choice(("", "a\0b", "\U0001f41d", "e\u0301", "x" * 300)))
        case _:
            return put(key, rng.randbytes(rng.choice((0, 1, 8, 300))))


def some_ops(rng: random.Random) -> list[Op]:
    """Operations on distinct keys in the order of an entry."""
    found = [delete(rng.choice(KEYS)) if rng.random() < 0.25 else some_value(rng) for _ in range(4)]
    by_key = {op.key: op for op in found[: rng.randint(1, 4)]}
    return [by_key[key] for key in sorted(by_key, key=str.encode)]


def shuffled(rng: random.Random, changes: Sequence[Made], held: set[bytes]) -> Iterator[Made]:
    """The changes in a random order in which none comes before what it builds on."""
    left = list(changes)
    while left:
        ready = [change for change in left if change.deps <= held]
        chosen = rng.choice(ready)
        left.remove(chosen)
        held.add(chosen.hash)
        yield chosen


def pull(rng: random.Random, to: Replica, source: Replica) -> None:
    """Give a replica all that another has."""
    missing = [c for h, c in sorted(source.known.items()) if h not in to.known]
    for change in shuffled(rng, missing, set(to.known)):
        to.take(change)


def cluster(rng: random.Random) -> tuple[int, int]:
    """Replicas that write and pull at random; how many changes there were, and folds of them."""
    replicas = [Replica() for _ in range(rng.randint(2, 5))]
    for replica in replicas[: rng.choice((1, 1, 1, 2))]:
        replica.write(rng, creates=True)
    for _ in range(rng.randint(4, 10)):
        replica = rng.choice(replicas)
        if rng.random() < 0.4:
            pull(rng, replica, rng.choice(replicas))
        if replica.known:
            replica.write(rng, creates=False)
    for replica in replicas[1:]:
        pull(rng, replicas[0], replica)
    for replica in [*replicas[1:], Replica(), Replica()]:
        pull(rng, replica, replicas[0])
        assert replica.known == replicas[0].known
        assert typed(replica.document.values()) == typed(replicas[0].document.values())
    return len(replicas[0].known), len(replicas) + 2


def typed(values: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Values with their types, so that 1, 1.0 and True are three."""
    return {key: (type(value).__name__, repr(value)) for key, value in values.items()}
