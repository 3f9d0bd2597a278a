"""Three nodes and whatever may happen; in the end all who may read believe the same."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from crdt.entry import Via, tombstone_id
from crdt.facts import next_key
from crdt.payload import delete, put
from keys.errors import NotFoundError, RefusedError, StoreError, UsageError
from keys.ids import RecordId
from memory.notes import Note
from tests.support.author import certify, owner_key
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import HOUR_US, Node, World, seeded_randomness

VALUES = ("bees", "wasps", "ants", "moths", "gnats")
TAGS = ("home", "work")
LAYERS = ("day", "week", "month")
MEDDLED = {
    "retired without a reason": (put("mark.01", "deprecated"),),
    "kept by anybody": (put("mark.02", "current"),),
    "a word that is no state": (put("mark.03", "approved"),),
    "another text": (put("body.text", "a text put in"),),
    "a mark taken away": (delete("mark.01"),),
    "a state that is no text": (put("mark.04", 4),),
    "a field of another type": (put("field.layer", 5), put("field.weight", "heavy")),
    "no layer": (delete("field.layer"),),
    "tombstone of a tombstone": (),
}
STEPS = 50

names = st.sampled_from("abc")
values = st.integers(0, len(VALUES) - 1)
spellings = st.sampled_from((str.lower, str.upper, lambda text: f"  {text.title()}. "))
picks = st.integers(0, 7)
pulls = st.none() | st.integers(0, 3)


class Nodes(RuleBasedStateMachine):
    """A and B are Alice's, with clocks an hour apart; C is Bob's, days behind."""

    rights: ClassVar[tuple[str, ...]] = ()
    by_owner: ClassVar[bool] = False

    @initialize(seed=st.integers(0, 2**16))
    def found(self, seed: int) -> None:
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(seeded_randomness(seed))
        root = self.stack.enter_context(_folder())
        self.world = World(root, "a", "b")
        self.world.nodes["b"].offset_us = HOUR_US
        self.bob = owner_key("bob")
        c = self.world.stranger("c", offset_us=-72 * HOUR_US)
        self.certificate = certify(self.bob, c.key)
        for node in self.world.nodes.values():
            node.store.add_statements([self.certificate])
        self.moments = [self.world.clock_us]
        for value in VALUES[:2]:
            self.world.nodes["a"].remember(value)
        self.world.pull(self.world.nodes["b"], self.world.nodes["a"])
        if self.rights:
            self.grant("a", self.rights)
            self.world.pull(c, self.world.nodes["a"])

    # -- choosing --------------------------------------------------------------------------------

    def node(self, name: str) -> Node:
        self.moments.append(self.world.clock_us)
        return self.world.nodes[name]

    def pick(self, node: Node, place: int) -> RecordId:
        """One of the latest records that a node knows of."""
        known = [r for (r,) in node.rows("SELECT record FROM record ORDER BY n")]
        if not known:
            raise NotFoundError("nothing is here")
        return RecordId(known[-1 - place % len(known)])

    @contextlib.contextmanager
    def allowed(self, node: Node) -> Iterator[None]:
        """An act that may be refused; nothing else may go wrong."""
        try:
            yield
        except (RefusedError, UsageError, NotFoundError):
            pass
        except StoreError:
            assert node.store.waiting_for_key

    # -- memories --------------------------------------------------------------------------------

    @rule(name=names, value=values, spelling=spellings, provenance=st.sampled_from(("user", "web")))
    def remember(self, name: str, value: int, spelling: type[str], provenance: str) -> None:
        node = self.node(name)
        with self.allowed(node):
            note = Note(f"{spelling(VALUES[value])}", provenance=provenance, tags=TAGS[: value % 3])
            node.write(note)

    @rule(name=names, value=values, place=picks, second=picks)
    def derive(self, name: str, value: int, place: int, second: int) -> None:
        node = self.node(name)
        with self.allowed(node):
            sources = (self.pick(node, place), self.pick(node, second))
            node.remember(f"{VALUES[value]} too", derived_from=sources)

    @rule(name=names, value=values, place=picks)
    def revise(self, name: str, value: int, place: int) -> None:
        node = self.node(name)
        with self.allowed(node):
            node.revise(self.pick(node, place), VALUES[value])

    @rule(name=names, place=picks, second=picks)
    def supersede(self, name: str, place: int, second: int) -> None:
        """As an import or a merge does it: by any record, one of the same value or itself too."""
        node = self.node(name)
        with self.allowed(node):
            by = next_key(self.pick(node, second))
            with node.author.commit(Via.LOCAL, node.now_us) as commit:
                commit.edit(self.pick(node, place), [put(by, "merged")])

    @rule(name=names, place=picks, what=st.sampled_from(tuple(MEDDLED)))
    def meddle(self, name: str, place: int, what: str) -> None:
        """As a modified node does it: marks and edits that no verb would write."""
        node = self.node(name)
        with self.allowed(node):
            record = self.pick(node, place)
            with node.author.commit(Via.PERSON, node.now_us) as commit:
                if what == "tombstone of a tombstone":
                    commit.erase(tombstone_id(self.world.agent, record), "person")
                else:
                    commit.edit(record, list(MEDDLED[what]))

    @rule(name=names, hours=st.sampled_from((-100, -1, 0, 1, 100)))
    def set_clock(self, name: str, hours: int) -> None:
        self.node(name).offset_us = hours * HOUR_US

    @rule(name=names, place=picks)
    def retire(self, name: str, place: int) -> None:
        node = self.node(name)
        with self.allowed(node):
            node.retire(self.pick(node, place))

    @rule(name=names, place=picks)
    def keep(self, name: str, place: int) -> None:
        node = self.node(name)
        with self.allowed(node):
            node.keep(self.pick(node, place))

    @rule(name=names, place=picks, tag=st.sampled_from(TAGS), add=st.booleans())
    def tag(self, name: str, place: int, tag: str, add: bool) -> None:
        node = self.node(name)
        with self.allowed(node):
            (node.tag if add else node.untag)(self.pick(node, place), tag)

    @rule(name=names, place=picks, layer=st.sampled_from(LAYERS))
    def move(self, name: str, place: int, layer: str) -> None:
        node = self.node(name)
        with self.allowed(node):
            node.move(self.pick(node, place), layer)

    @rule(name=names, place=picks, with_sources=st.booleans())
    def forget(self, name: str, place: int, with_sources: bool) -> None:
        node = self.node(name)
        with self.allowed(node):
            left = node.forget(self.pick(node, place), with_sources=with_sources)
            assert left == []
            node.clean()

    # -- what only a person may do ---------------------------------------------------------------

    @rule(name=st.sampled_from("ab"), place=picks)
    def lift(self, name: str, place: int) -> None:
        node = self.node(name)
        with self.allowed(node):
            node.lift(self.pick(node, place))

    @rule(name=st.sampled_from("ab"), place=picks, yes=st.booleans())
    def review(self, name: str, place: int, yes: bool) -> None:
        node = self.node(name)
        with self.allowed(node):
            record = self.pick(node, place)
            if node.state(record) == "proposed":
                (node.approve if yes else node.reject)(record)

    @rule(
        name=st.sampled_from("ab"),
        rights=st.sampled_from((("read",), ("write",), ("review", "write"))),
    )
    def grant(self, name: str, rights: tuple[str, ...]) -> None:
        node = self.node(name)
        node.grant(self.bob if self.by_owner else self.world.nodes["c"], *rights)

    @rule(
        name=st.sampled_from("ab"),
        rights=st.sampled_from((("read",), ("write",), ("review",))),
        back=st.none() | st.integers(1, 20),
        keep=st.booleans(),
    )
    def revoke(self, name: str, rights: tuple[str, ...], back: int | None, keep: bool) -> None:
        node = self.node(name)
        since = None
        if back is not None:
            since = self.moments[max(0, len(self.moments) - back)] + node.offset_us
        subject = self.bob if self.by_owner else self.world.nodes["c"]
        node.revoke(subject, *rights, since_us=since, keep=keep)

    # -- nodes -----------------------------------------------------------------------------------

    @rule(dst=names, src=names, commits=pulls, ahead=st.booleans(), keys=st.booleans())
    def pull(self, dst: str, src: str, commits: int | None, ahead: bool, keys: bool) -> None:
        if dst != src:
            to, from_ = self.node(dst), self.node(src)
            self.world.pull(to, from_, commits=commits, ahead=ahead, keys=keys)

    @rule(dst=names, src=names)
    def tell(self, dst: str, src: str) -> None:
        if dst != src:
            self.world.tell(self.node(dst), self.node(src))

    @rule(name=names)
    def reopen(self, name: str) -> None:
        self.node(name).reopen()

    @rule(name=names)
    def check(self, name: str) -> None:
        assert_sound(self.node(name))

    def teardown(self) -> None:
        if not hasattr(self, "stack"):
            return
        with self.stack:
            self.world.settle("a", "b")
            c = self.world.nodes["c"]
            for name in "ab":
                self.world.tell(c, self.world.nodes[name])
            rounds = self.world.settle()
            assert rounds < 6
            assert_equal_nodes(*self._readers())
            for node in self.world.nodes.values():
                assert_sound(node)
            self.world.close()

    def _readers(self) -> list[Node]:
        return [n for n in self.world.nodes.values() if n.holds("read")]


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="roost-nodes-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


class Mine(Nodes):
    """C has no right until somebody grants one."""


class Shared(Nodes):
    """C may write from the start."""

    rights = ("write",)


class Reviewed(Nodes):
    """Bob may write and review, with whatever device he has."""

    rights = ("review", "write")
    by_owner = True


class Read(Nodes):
    """Bob may read."""

    rights = ("read",)
    by_owner = True


class SharedAgain(Shared):
    """Twice as many: here most can happen."""


class ReviewedAgain(Reviewed):
    """Twice as many: here most can happen."""


class MineAgain(Mine):
    """Twice as many, so that none takes too long."""


class ReadAgain(Read):
    """Twice as many, so that none takes too long."""


TestMine, TestMineAgain = Mine.TestCase, MineAgain.TestCase
TestShared, TestSharedAgain = Shared.TestCase, SharedAgain.TestCase
TestReviewed, TestReviewedAgain = Reviewed.TestCase, ReviewedAgain.TestCase
TestRead, TestReadAgain = Read.TestCase, ReadAgain.TestCase
MACHINES = 8
for machine in [Mine, Shared, Reviewed, Read, MineAgain, SharedAgain, ReviewedAgain, ReadAgain]:
    assert settings.default is not None
    machine.TestCase.settings = settings(
        max_examples=settings.default.max_examples // (2 * MACHINES),
        stateful_step_count=STEPS,
        deadline=None,
        print_blob=True,
    )
del machine
