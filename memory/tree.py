"""The entity tree: who hangs on whom, the same on every node (R15).

A pure function of the entities and their ``field.parent``. In each cycle of concurrent moves the
smallest id hangs on its root and is listed; a child whose parent is gone hangs on the nearest
living ancestor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keys.ids import RecordId
from keys.limits import RECORD_BYTES
from memory.parts import all_of
from memory.query import Filters, Seen
from memory.rows import LIVE_STATES
from memory.scope import Scope
from memory.store import AgentStore


@dataclass(frozen=True, slots=True)
class Tree:
    """The live entities with their parents; None hangs on its root.

    ``broken``: entities that were taken out of a cycle. ``lost``: entities that are gone although
    something hangs on them, which a person should see.
    """

    entities: Mapping[RecordId, Seen]
    parents: Mapping[RecordId, RecordId | None]
    broken: tuple[RecordId, ...]
    lost: tuple[RecordId, ...]

    @classmethod
    def of(cls, store: AgentStore, scope: Scope, now_us: int) -> Tree:
        """The tree that ``scope`` sees; the shape is that of all entities."""
        everyone = Scope(scope.agent, every_state=True)
        known = {s.record: s for s in all_of(store, everyone, Filters(kinds=("entity",)), now_us)}
        # What a reader may not see has no place in his tree, yet what hangs on it does.
        live = {r: s for r, s in known.items() if s.state_at(now_us) in LIVE_STATES}
        wanted = {record: _parent(seen) for record, seen in known.items()}
        broken = _cycles(wanted)
        for record in broken:
            wanted[record] = None
        parents, lost = {}, set[RecordId]()
        for record in live:
            at = wanted[record]
            while at is not None and at not in live:
                if at in known:
                    lost.add(at)
                at = wanted.get(at)
            parents[record] = at
        return cls(live, parents, tuple(sorted(broken & set(live))), tuple(sorted(lost)))

    def children(self, record: RecordId) -> list[RecordId]:
        """The live entities that hang on one directly, by id."""
        return sorted(r for r, parent in self.parents.items() if parent == record)

    def line(self, record: RecordId) -> list[RecordId]:
        """An entity and everything it hangs on, upwards."""
        out: list[RecordId] = []
        at: RecordId | None = record
        while at is not None and at not in out:
            out.append(at)
            at = self.parents.get(at)
        return out


def _parent(seen: Seen) -> RecordId | None:
    value = seen.detail.get("fields", {}).get("parent")
    if not isinstance(value, bytes) or len(value) != RECORD_BYTES:
        return None
    return RecordId(value)


def _cycles(parents: Mapping[RecordId, RecordId | None]) -> set[RecordId]:
    """The smallest id of every cycle."""
    found: set[RecordId] = set()
    done: set[RecordId] = set()
    for start in parents:
        path: dict[RecordId, int] = {}
        at: RecordId | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = parents.get(at)
        if at is not None and at in path:
            found.add(min(_from(path, path[at])))
        done.update(path)
    return found


def _from(path: Mapping[RecordId, int], place: int) -> Iterable[RecordId]:
    return [record for record, i in path.items() if i >= place]
