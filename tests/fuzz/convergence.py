"""X-55: two to five nodes edit the same records at once, in partitions, and are restarted.

After each trial all links work again, everybody pulls, and the canonical dumps of all nodes are
compared byte for byte: every table of the read model, sorted, without local numbers and times of
arrival; and each node's with that of its own rebuild.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from keys.errors import RoostError
from keys.ids import RecordId
from memory.audit import verify_log
from tests.fuzz.judge import check
from tests.support.memory_checks import model_of
from tests.support.memory_world import Node, World, seeded_randomness

TRIAL_STEPS: Final = 500
NAMES: Final = "abcde"
LIVE: Final = 12  # records that are edited, the latest ones
WORDS: Final = (
    "bees",
    "wasps",
    "ants",
    "moths",
    "gnats",
    "na\u00efve",
    "\U0001f41d",
    "a\0b",
    "C++",
)
TAGS: Final = ("home", "work", "x")
LAYERS: Final = ("day", "week", "month")
ACTS: Final = {
    "remember": 6, "again": 2, "tag": 12, "untag": 6, "move": 12, "keep": 3, "retire": 3,
    "revise": 6, "forget": 1, "pull": 30, "some": 8, "part": 3, "join": 3, "restart": 5,
}  # fmt: skip


class Trial:
    """One world, from a seed."""

    def __init__(self, seed: int, root: Path) -> None:
        self.rng = random.Random(f"convergence {seed}")
        names = NAMES[: self.rng.randint(2, len(NAMES))]
        self.world = World(root, *names)
        self.parts = dict.fromkeys(names, 0)
        self.records: list[RecordId] = []
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """One act of one node; what the node refuses is an act too."""
        (act,) = self.rng.choices(list(ACTS), list(ACTS.values()))
        node = self.world.nodes[self.rng.choice(list(self.parts))]
        try:
            self._act(act, node)
        except RoostError as exc:
            act += f" ({exc.code})"
        self.counts[act] += 1

    def _act(self, act: str, node: Node) -> None:
        match act:
            case "part":
                self.parts = {name: self.rng.randrange(3) for name in self.parts}
            case "join":
                self.parts = dict.fromkeys(self.parts, 0)
            case "restart":
                node.reopen()
            case "pull" | "some":
                near = [n for n, part in self.parts.items() if part == self.parts[node.name]]
                source = self.world.nodes[self.rng.choice(near)]
                if source is not node:
                    commits = self.rng.randint(1, 3) if act == "some" else None
                    self.world.pull(node, source, commits=commits)
            case "remember":
                text = f"{self.rng.choice(WORDS)} {len(self.records)}"
                self.records.append(node.remember(text, tags=(self.rng.choice(TAGS),)))
            case _:
                self._edit(
                    act, node, self.rng.choice(self.records[-LIVE:] or [RecordId(bytes(16))])
                )

    def _edit(self, act: str, node: Node, record: RecordId) -> None:
        match act:
            case "again":
                node.remember(node.seen(record).text.upper())
            case "tag":
                node.tag(record, self.rng.choice(TAGS))
            case "untag":
                node.untag(record, self.rng.choice(TAGS))
            case "move":
                node.move(record, self.rng.choice(LAYERS))
            case "keep":
                node.keep(record)
            case "retire":
                node.retire(record)
            case "revise":
                self.records.append(node.revise(record, f"{self.rng.choice(WORDS)} put better"))
            case "forget":
                node.forget(record)

    def finish(self) -> str:
        """Let all meet; the digest of the dump that all have, and that their rebuilds have."""
        self.world.settle()
        dumps = {node.name: dump(node) for node in self.world.nodes.values()}
        for node in self.world.nodes.values():
            check(node.rows("SELECT 1 FROM entry WHERE reason IN ('mismatch', 'malformed')") == [],
                  f"{node.name} could not make an honest entry again")  # fmt: skip
            node.store.rebuild()
            check(dump(node) == dumps[node.name], f"{node.name}: a rebuild gives another dump")
            check(verify_log(node.store).problems == [], f"{node.name}: the log does not verify")
        check(len(set(dumps.values())) == 1, f"dumps differ: {sorted(dumps)}")
        return hashlib.blake2b(next(iter(dumps.values())), digest_size=16).hexdigest()


def dump(node: Node) -> bytes:
    """The read model as bytes."""
    lines = [f"{table}: {row!r}\n" for table, rows in model_of(node).items() for row in rows]
    return "".join(lines).encode("utf-8", "surrogatepass")


def live(seed: int, steps: int = TRIAL_STEPS) -> Counter[str]:
    """One trial; what happened in it, by act. Raises when two nodes differ in the end."""
    with tempfile.TemporaryDirectory() as folder, seeded_randomness(seed):
        trial = Trial(seed, Path(folder))
        try:
            for _ in range(steps):
                trial.step()
            trial.finish()
        except Exception as exc:
            exc.add_note(f"convergence seed {seed}, {steps} steps: {dict(trial.counts)}")
            raise
        finally:
            trial.world.close()
    return trial.counts
