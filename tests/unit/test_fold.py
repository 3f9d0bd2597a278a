"""The fold of one record: what does not fit is set aside with its reason, and changes nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from unittest import mock

import pytest

from crdt.chain import RawEntry
from crdt.document import RecordDocument
from crdt.entry import Header, PayloadKind, actor_id, decode_header, derived_id
from crdt.facts import Fact, Reason, RecordFold, Stored, Verdict, next_key, successor_of
from crdt.fold import base_of, fold_record, in_order, sources_of
from crdt.payload import Op, Type, Verb, decode_ops, delete, encode_ops, put
from keys import codec
from keys.errors import BadEncoding
from keys.ids import EntryHash, RecordId
from keys.limits import DEPS_MAX
from tests.support.author import seeded
from tests.vectors.cast import AGENT, LOG, PHONE, Writer, observation, salt

FREE = Verdict(None, reviews=True)
RETIRED = "mark.00000000000000aa"


def stored(raw: RawEntry, time_ms: int = 0) -> Stored:
    """An entry as the log holds it."""
    return Stored(decode_header(raw.header), raw.payload, time_ms)


def fold(
    record: RecordId,
    raw: Iterable[RawEntry],
    judge: Callable[[Header], Verdict] = lambda _: FREE,
) -> RecordFold:
    """The fold, whose outcome is the same in every order of its input."""
    entries = [stored(e) for e in raw]
    first = fold_record(AGENT, record, entries, judge)
    rng = random.Random(len(entries))
    for _ in range(4):
        rng.shuffle(entries)
        assert fold_record(AGENT, record, entries, judge) == first
    with mock.patch("crdt.fold._fold_alone", return_value=None):
        assert fold_record(AGENT, record, entries, judge) == first, "the short way is the long way"
    return first


class Story:
    """A record with a creation, and ways to build on it that may be wrong."""

    def __init__(self, name: str = "first") -> None:
        self.w = Writer(name=name)
        self.w.open()
        self.record = self.w.next_id()
        self.raw = [self.w.create("one")]
        self.created = self.w.prev

    def edit(self, *ops: Op, deps: Sequence[EntryHash] | None = None) -> EntryHash:
        """A good edit, of the creation where nothing else is said."""
        found = self.w.change(self.record, [self.created] if deps is None else deps, ops)
        self.raw.append(found)
        return self.w.prev

    def bad(self, *ops: Op, deps: Sequence[EntryHash], change: bytes = bytes(32)) -> EntryHash:
        """An edit that was never made: its change hash is whatever is given."""
        payload = encode_ops(salt(f"bad {len(self.raw)}"), list(ops), change)
        self.raw.append(self.w.entry(payload, record=self.record, deps=deps))
        return self.w.prev

    @property
    def fold(self) -> RecordFold:
        """What all of it gives."""
        return fold(self.record, self.raw)


# -- entries that are not what they claim ----------------------------------------------------


def test_X_51_a_wrong_change_hash_is_a_mismatch_and_leaves_the_document_alone() -> None:
    """What was made to see it is thrown away; edits beside and after it count."""
    s = Story()
    wrong = s.bad(put("field.weight", 9.0), put("field.lie", "x"), deps=[s.created])
    right = s.edit(put("field.layer", "week"))
    on_top = s.bad(put("field.weight", 9.0), deps=[wrong])
    both = s.bad(put("field.weight", 9.0), deps=[right, wrong])

    found = s.fold

    assert found.reasons == {
        wrong: Reason.MISMATCH,
        on_top: Reason.WAITING,
        both: Reason.WAITING,
    }
    assert found.values == fold(s.record, [s.raw[0], s.raw[2]]).values
    assert "field.lie" not in found.values
    assert found.heads == [right]


def test_X_51_an_entry_whose_deps_are_missing_waits_and_then_counts() -> None:
    """Until they come it is as if it were not there."""
    s = Story()
    middle = s.edit(put("field.layer", "week"))
    last = s.edit(put("field.weight", 2.0), deps=[middle])
    without = [s.raw[0], s.raw[2]]

    waiting = fold(s.record, without)

    assert waiting.reasons == {last: Reason.WAITING}
    assert waiting.values == fold(s.record, s.raw[:1]).values
    assert s.fold.reasons == {}
    assert s.fold.heads == [last]


def test_X_51_deps_that_contain_their_own_past_are_malformed() -> None:
    """R6: an ancestor beside its descendant, near and far."""
    s = Story()
    one = s.edit(put("field.a", 1))
    two = s.edit(put("field.b", 2), deps=[one])
    near = s.bad(put("field.c", 3), deps=[one, two])
    far = s.bad(put("field.c", 3), deps=[s.created, two])

    assert s.fold.reasons == {near: Reason.MALFORMED, far: Reason.MALFORMED}
    assert s.fold.heads == [two]


def test_X_51_deps_on_the_entrys_own_future_wait_for_ever() -> None:
    """A hash cannot be known before what it is of; what is cited in its place never comes."""
    s = Story()
    future = EntryHash(seeded("the entry after this one"))
    early = s.bad(put("field.a", 1), deps=[future])
    late = s.bad(put("field.b", 1), deps=[early])

    assert s.fold.reasons == {early: Reason.WAITING, late: Reason.WAITING}


def test_X_51_deps_of_another_record_wait_for_ever() -> None:
    """Causes are cited within a record; another record's entries are not among its own."""
    s, other = Story(), Story("other")
    stray = s.bad(put("field.a", 1), deps=[other.created])
    assert s.fold.reasons == {stray: Reason.WAITING}


def test_X_51_there_is_no_foreign_actor() -> None:
    """R1: the actor is derived from the entry's place, so a payload moved elsewhere mismatches."""
    s = Story()
    s.edit(put("field.a", 1))
    payload = s.raw[1].payload
    assert payload is not None
    moved = s.w.entry(payload, record=s.record, deps=[s.created])
    with pytest.raises(BadEncoding):
        decode_ops(codec.pack([*codec.decode(payload, 4096), bytes(16)]))

    found = fold(s.record, [*s.raw, moved])

    assert found.reasons == {s.w.prev: Reason.MISMATCH}
    places = {
        actor_id(AGENT, log, seq, bytes(16))
        for log in (LOG, type(LOG)(PHONE.device, LOG.incarnation))
        for seq in (1, 2)
    }
    assert len(places) == 4


def test_a_creation_elsewhere_than_its_id_says_is_malformed() -> None:
    """R9: nobody takes an id of another's record, or one of his own for another place."""
    s = Story()
    s.raw.append(s.w.create("stolen", record=s.record))
    found = s.fold
    assert found.reasons == {s.w.prev: Reason.MALFORMED}
    assert found.body["body.text"] == "one"


# -- what counts ---------------------------------------------------------------------------------


def test_of_two_creations_of_a_derived_record_the_smaller_hash_is_shown() -> None:
    """R10: and what either was derived from counts as a source."""
    record = derived_id(AGENT, "summary", b"monday")
    sources = [seeded(f"source {n}", 16) for n in range(2)]
    raw = []
    for name, source in zip(("one", "two"), sources, strict=True):
        w = Writer(name=name)
        w.open()
        ops = [put("kind", "summary"), put("body.key", b"monday"), put("body.text", name)]
        raw.append(w.change(record, [], [*ops, put("body.derived_from", source)]))

    found = fold(record, raw)

    first = min(raw, key=lambda e: decode_header(e.header).hash)
    text = next(op.value for op in decode_ops(first.payload or b"").ops if op.key == "body.text")
    assert [h.hash for h in found.creations] == sorted(decode_header(e.header).hash for e in raw)
    assert found.body["body.text"] == text
    assert found.sources == {RecordId(s) for s in sources}


def test_no_entry_ends_a_fact() -> None:
    """R11: a fact is in force although a later entry put another value under its key."""
    s = Story()
    retired = s.edit(put(RETIRED, "deprecated moved"))
    covered = s.edit(put(RETIRED, "current after all"), deps=[retired])
    removed = s.bad(delete(RETIRED), deps=[covered])

    found = s.fold

    assert found.reasons == {removed: Reason.MALFORMED}
    assert found.facts == [
        Fact(retired, RETIRED, "deprecated moved", counts=True),
        Fact(covered, RETIRED, "current after all", counts=True),
    ]
    assert [(f.word, f.reason) for f in found.facts] == [
        ("deprecated", "moved"),
        ("current", "after all"),
    ]


def test_current_counts_only_from_a_device_that_reviews() -> None:
    """What withholds counts from everybody."""
    s = Story()
    other = RecordId(seeded("successor", 16))
    s.edit(put(RETIRED, "deprecated"), put("mark.2", "current"), put(next_key(other), "newer"))
    found = fold(s.record, s.raw, lambda _: Verdict(None, reviews=False))
    assert {f.key: f.counts for f in found.facts} == {
        RETIRED: True,
        "mark.2": False,
        next_key(other): True,
    }
    assert [f.successor for f in found.facts if f.key.startswith("next.")] == [other]


def test_an_add_wins_over_a_concurrent_remove() -> None:
    """R12: every add is an operation of its own, since its value is random."""
    s = Story()
    removed = s.edit(delete("tag.vectors"))
    added = s.edit(put("tag.vectors", b"another8"))
    assert s.fold.values["tag.vectors"] == b"another8"
    s.edit(delete("tag.vectors"), deps=sorted([removed, added]))
    assert "tag.vectors" not in s.fold.values


@pytest.mark.parametrize("reason", [Reason.FROZEN, Reason.NOT_ACCEPTED, Reason.PAST_CUT])
def test_what_stands_against_a_log_comes_before_what_is_wrong_with_an_entry(
    reason: Reason,
) -> None:
    """R5: exactly one reason, the first that holds."""
    s = Story()
    s.bad(put("field.a", 1), deps=[s.created])
    found = fold(s.record, s.raw, lambda h: Verdict(reason if h.deps else None, reviews=True))
    assert found.reasons == {s.w.prev: reason}
    everything = fold(s.record, s.raw, lambda _: Verdict(reason, reviews=True))
    assert set(everything.reasons.values()) == {reason}
    assert not everything.materialised


def test_frozen_entries_show_nothing_and_still_withhold() -> None:
    """R7: freezing never makes anything readable."""
    s = Story()
    other = RecordId(seeded("successor", 16))
    s.edit(put(RETIRED, "deprecated"), put("field.layer", "week"), put(next_key(other), ""))
    frozen = Verdict(Reason.FROZEN, reviews=False, withholds=True)

    found = fold(s.record, s.raw, lambda h: frozen if h.deps else FREE)

    assert found.reasons == {s.w.prev: Reason.FROZEN}
    assert found.values["field.layer"] == "day"
    assert {f.key for f in found.facts} == {RETIRED, next_key(other)}


def test_entries_fold_in_the_order_of_record_time_and_hash_after_their_deps() -> None:
    """R14: an early stamp does not bring an entry before what it builds on."""
    s = Story()
    first = s.edit(put("field.a", 1))
    s.edit(put("field.a", 2), deps=[first])
    entries = [stored(e, time) for e, time in zip(s.raw, (30, 20, 10), strict=True)]
    expected = [e.header.hash for e in entries]
    for order in itertools.permutations(entries):
        assert [e.header.hash for e in in_order(order)] == expected


def test_the_next_edit_cites_the_heads_and_no_more_than_64() -> None:
    """R6: with more heads the smallest are cited, and the change is made there."""
    s = Story()
    heads = sorted(s.edit(put(f"field.{n}", n)) for n in range(DEPS_MAX + 1))
    base = base_of(AGENT, s.record, [stored(e) for e in s.raw], lambda _: FREE)
    assert base.deps == heads[:DEPS_MAX]
    made = base.change(bytes(16), [put("field.weight", 2.0)])
    again = RecordDocument()
    for raw in s.raw:
        header, payload = decode_header(raw.header), decode_ops(raw.payload or b"")
        deps = frozenset(s.w.changes[d] for d in header.deps)
        again.apply(deps, actor_id(AGENT, header.log, header.seq, payload.salt), payload.ops)
    assert made == again.apply(base.changes, bytes(16), [put("field.weight", 2.0)])


def test_a_record_without_entries_is_created_at_no_deps() -> None:
    """The base of a creation."""
    base = base_of(AGENT, RecordId(bytes(16)), [], lambda _: FREE)
    assert (base.deps, base.values, base.changes) == ([], {}, frozenset())
    assert base.change(bytes(16), observation("x")) is not None


@pytest.mark.parametrize(
    ("key", "record"),
    [
        (f"next.{'0a' * 16}", RecordId(b"\x0a" * 16)),
        (f"next.{'0A' * 16}", None),
        (f"next.{'0a' * 15}", None),
        (f"next.{'0a' * 15}0 ", None),
        (f"mark.{'0a' * 16}", None),
        ("next." + "\u0660" * 32, None),
    ],
)
def test_a_successor_is_named_by_32_hex_digits(key: str, record: RecordId | None) -> None:
    """One spelling, so that no two keys name one record."""
    assert successor_of(key) == record


def test_sources_that_are_no_list_of_ids_are_none() -> None:
    """A broken list names nothing, and breaks nothing."""
    ids = seeded("a", 16) + seeded("b", 16)
    assert sources_of({"body.derived_from": ids}) == [
        RecordId(seeded("a", 16)),
        RecordId(seeded("b", 16)),
    ]
    for broken in (ids[:-1], "text", None, 1):
        assert sources_of({"body.derived_from": broken}) == []


def test_a_payload_kind_that_is_no_operations_does_not_stand_on_a_record() -> None:
    """A later kind needs an upgrade; an opening or a tombstone there is malformed."""
    s = Story()
    expected = {}
    for kind in (PayloadKind.OPEN, PayloadKind.TOMBSTONE, 3, 255):
        s.raw.append(s.w.entry(b"x", kind=kind, record=s.record))
        expected[s.w.prev] = Reason.NEEDS_UPGRADE if kind > 2 else Reason.MALFORMED
    assert s.fold.reasons == expected


def test_a_lone_creation_reads_as_what_it_puts_whatever_the_types() -> None:
    """The fold does not ask the document then; Automerge would say the same."""
    w = Writer(name="types")
    w.open()
    record = w.next_id()
    ops = [
        *observation("every type"),
        put("body.bytes", b"\x00\xff"),
        put("body.none", None),
        put("field.false", False),
        put("field.float", -0.0),
        put("field.int", -(2**63)),
        Op("field.uint", Verb.PUT, Type.UINT, 2**64 - 1),
        put("tag.one", salt("tag")[:8]),
        put("mark.00000000000000aa", "deprecated why"),
    ]
    raw = w.change(record, [], ops)
    found = fold(record, [raw])
    document = RecordDocument()
    header, payload = decode_header(raw.header), decode_ops(raw.payload or b"")
    document.apply(frozenset(), actor_id(AGENT, header.log, header.seq, payload.salt), payload.ops)
    read = document.values()
    assert found.values == read
    assert list(found.values) == list(read)
    assert [type(v) for v in found.values.values()] == [type(v) for v in read.values()]
    assert [f.word for f in found.facts] == ["deprecated"]
