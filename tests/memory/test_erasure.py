"""Erased means erased: after a forget no byte of it is in any file of any device (R34)."""

import sqlite3
from collections.abc import Callable

import pytest

from crdt.chain import RawEntry, verify_run
from crdt.entry import Via
from crdt.payload import put
from keys.ids import RecordId
from memory import erasing
from memory.audit import verify_log
from memory.door import open_connection
from memory.forgetting import is_clean
from memory.notes import Note
from tests.support.author import seeded
from tests.support.byte_scan import found_in
from tests.support.memory_checks import assert_equal_nodes, assert_sound
from tests.support.memory_world import Node, World


def marker(name: str) -> str:
    """64 characters that are nowhere else."""
    return seeded(name).hex()


SECRET, CONTROL = marker("a secret"), marker("a control")


def note(word: str, **fields: object) -> Note:
    """A note that holds a marker everywhere a note can hold words."""
    return Note(
        f"the word is {word}, said twice: {word}",
        title=f"title {word}",
        source=f"source {word}",
        speaker=f"Ada {word}",
        session=f"session {word}",
        tags=(f"tag {word}", f"t{word}"),
        **fields,  # type: ignore[arg-type]
    )


def places(node: Node, word: str = SECRET) -> list[str]:
    """Where a marker is on a device."""
    return found_in(node.home, word)


def assert_gone_and_the_rest_here(*nodes: Node) -> None:
    """Nothing of the secret; the control in plain and in the index, so that the scan can see."""
    for node in nodes:
        assert node.clean()
        assert places(node) == [], node.name
        assert any("utf-8" in place for place in places(node, CONTROL)), node.name
        assert verify_log(node.store).problems == []


@pytest.mark.parametrize("kind", ["observation", "turn"])
def test_X_71_M_B6_S_H4_no_byte_stays_on_any_device(
    world: World, a: Node, b: Node, kind: str
) -> None:
    """Text, title, names, tags, edits and reasons: gone on A, on B after sync, on C joining."""
    record = a.write(note(SECRET, kind=kind)).record
    a.write(note(CONTROL, kind=kind))
    a.tag(record, f"added {SECRET}")
    a.untag(record, f"tag {SECRET}")
    a.move(record, "year")
    world.settle()
    b.tag(record, f"b {SECRET}")
    b.retire(record, f"because {SECRET}")
    world.settle()
    for node in (a, b):
        assert places(node), "the scan must find it before"
    a.forget(record)
    assert_gone_and_the_rest_here(a)
    world.settle()
    assert_gone_and_the_rest_here(a, b)
    assert_gone_and_the_rest_here(*world.everywhere())


def test_S_H5_what_was_derived_and_what_replaced_it_go_too(world: World, a: Node, b: Node) -> None:
    """A summary with the words, a revision of it, a record of the same value: all are erased."""
    text = f"the word is {SECRET}"
    source = a.remember(text)
    a.remember(f"the word is {CONTROL}")
    summary = a.remember(f"a summary: {SECRET}", derived_from=(source,))
    a.revise(summary, f"a better summary: {SECRET}")
    world.settle()
    same = b.remember(text.upper())
    assert b.seen(source).record == same
    b.remember(f"a second summary: {SECRET}", derived_from=(source,))
    world.settle()
    assert places(a)
    assert places(b)
    a.forget(source)
    assert_gone_and_the_rest_here(*world.everywhere())


def test_S_H2_a_device_that_was_away_is_made_to_comply(world: World, a: Node, b: Node) -> None:
    """It comes back with the payload: it erases, and nobody takes the payload again."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    c = world.late("c")
    world.settle()
    a.forget(record)
    world.settle("a", "b")
    a.clean()
    assert places(c)
    world.pull(a, c)
    world.pull(b, c)
    assert_gone_and_the_rest_here(a, b)
    world.pull(c, b)
    assert_gone_and_the_rest_here(a, b, c)


def test_S_H2_payloads_that_come_later_leave_no_byte(world: World, a: Node, b: Node) -> None:
    """Old runs sent again, wanted payloads answered late: neither reaches the files."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    old = [RawEntry(*r) for r in a.rows("SELECT header, payload, signature FROM entry")]
    bare = [
        RawEntry(e.header, None if i == 1 else e.payload, e.signature) for i, e in enumerate(old)
    ]
    b.store.append_runs([verify_run(world.agent, bare)], b.now_us)
    (want,) = b.store.wants(9)
    a.forget(record)
    world.settle()
    for node in world.everywhere():
        node.store.append_runs([verify_run(world.agent, old)], node.now_us)
        payload = old[1].payload
        assert payload is not None
        assert node.store.add_payloads([(want, payload)], node.now_us) == 0
        assert_gone_and_the_rest_here(node)


def test_R30_a_payload_that_a_tombstone_was_ahead_of_never_enters(
    world: World, a: Node, b: Node
) -> None:
    """B hears of the tombstone before it has the record: it is never written down there."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    a.forget(record)
    c = world.late("c")
    world.pull(b, a, commits=0)
    old = a.rows("SELECT header, payload, signature FROM entry WHERE seq < 4")
    b.store.append_runs([verify_run(world.agent, [RawEntry(*r) for r in old])], b.now_us)
    assert places(b) == []
    assert b.rows("SELECT payload FROM entry WHERE record = ?", record) == [(None,)]
    assert b.store.wants(9) == []
    world.settle()
    assert_gone_and_the_rest_here(a, b, c)


def _frozen(world: World, a: Node, b: Node, record: RecordId) -> None:
    """B's log forks: a copy of its file wrote something else at the same place."""
    twin = Node(world, "twin", b.key)
    twin.learn(world.keys)
    twin.store.add_statements(b.store.statements(), twin.now_us)
    for dst, src in ((twin, b), (twin, a)):
        world.pull(dst, src)
    incarnation = b.rows("SELECT value FROM meta WHERE key = 'incarnation'")[0][0]
    twin.rows("INSERT OR REPLACE INTO meta VALUES ('incarnation', ?)", incarnation)
    b.tag(record, f"left {SECRET}")
    twin.tag(record, f"right {SECRET}")
    world.pull(a, b)
    world.pull(a, twin)
    twin.close()


def _past_cut(world: World, a: Node, b: Node, record: RecordId) -> None:
    """A guest that is removed has edited it past the cut."""
    guest = world.stranger("guest")
    a.grant(guest, "write")
    world.pull(guest, a)
    since = a.world.clock_us
    guest.tag(record, f"guest {SECRET}")
    world.pull(a, guest)
    a.revoke(guest, "write", since_us=since)


def _waiting(world: World, a: Node, b: Node, record: RecordId) -> None:
    """An edit whose deps never arrived."""
    b.tag(record, f"one {SECRET}")
    c = world.late("guest")
    c.tag(record, f"two {SECRET}")
    a.store.add_statements(c.store.statements(), a.now_us)
    for stretch in c.store.plan(a.store.vector()):
        if stretch.log.device == c.key.device:
            run, _ = c.store.read_run(stretch, 10**9)
            a.store.append_runs([verify_run(world.agent, [e.raw for e in run.entries])], a.now_us)


def _malformed(world: World, a: Node, b: Node, record: RecordId) -> None:
    """An edit that may not be: it deletes a body key."""
    with b.author.commit(Via.LOCAL, b.now_us) as commit:
        commit.edit(record, [put("body.text", f"another text {SECRET}")])
    world.pull(a, b)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_frozen, "frozen"),
        (_past_cut, "past_cut"),
        (_waiting, "waiting"),
        (_malformed, "malformed"),
    ],
)
def test_R34_erasure_covers_what_does_not_count(
    world: World,
    a: Node,
    b: Node,
    make: Callable[[World, Node, Node, RecordId], None],
    reason: str,
) -> None:
    """Frozen branches, entries past a cut, waiting and malformed ones lose their payloads too."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    b.remember("so that b has a log")
    world.settle()
    make(world, a, b, record)
    held = a.rows("SELECT reason FROM entry WHERE record = ? AND reason IS NOT NULL", record)
    assert {r for (r,) in held} == {reason}
    a.forget(record)
    assert a.rows(
        "SELECT count(*) FROM entry WHERE record = ? AND payload IS NOT NULL", record
    ) == [(0,)]
    assert_gone_and_the_rest_here(a)


def test_a_text_of_many_pages_goes_whole(world: World, a: Node) -> None:
    """Its pieces on pages of their own are overwritten too."""
    filler = " ".join(marker(f"filler {i}")[:12] for i in range(4_000))
    words = f"{SECRET} {filler} {SECRET} {filler} {SECRET}"
    record = a.remember(words)
    a.remember(words.replace(SECRET, CONTROL).replace(marker("filler 7")[:12], ""))
    world.settle()
    a.forget(record)
    assert_gone_and_the_rest_here(*world.everywhere())


def test_a_rebuild_keeps_it_erased(world: World, a: Node) -> None:
    """Nothing comes back from the log, and the index is built without it."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    a.forget(record)
    for node in world.everywhere():
        assert_gone_and_the_rest_here(node)
        before, after = node.store.rebuild()
        assert before == after
        assert_gone_and_the_rest_here(node)
        assert_sound(node)


def test_a_file_that_is_opened_again_stays_clean(world: World, a: Node) -> None:
    """Also where the process ended between the erasure and the cleaning: it is still listed."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    a.forget(record)
    assert not is_clean(a.store, record)
    a.reopen()
    assert not is_clean(a.store, record)
    assert_gone_and_the_rest_here(a)
    assert is_clean(a.store, record)


def test_a_reader_in_the_way_delays_the_receipt_and_not_the_withholding(a: Node) -> None:
    """While another connection reads, ``clean`` says so; afterwards it does it."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    reader = open_connection(a.home / "agent.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    a.store.connection.execute("PRAGMA busy_timeout=1")
    a.forget(record)
    assert a.search(SECRET) == []
    assert (a.clean(), is_clean(a.store, record)) == (False, False)
    reader.execute("ROLLBACK")
    reader.close()
    assert_gone_and_the_rest_here(a)
    assert is_clean(a.store, record)


def test_a_revision_leaves_the_old_words_only_in_the_record_that_holds_them(a: Node) -> None:
    """Forgetting the old wording alone leaves the new one, and no word of the old."""
    old = a.write(note(SECRET)).record
    a.forget(old)
    kept = a.write(note(CONTROL)).record
    revised = a.revise(kept, f"put otherwise {CONTROL}", "no secret in it")
    assert a.seen(revised).state == "new"
    assert_gone_and_the_rest_here(a)


def test_the_counter_of_a_value_goes_with_it(a: Node) -> None:
    """Local tables hold nothing of an erased record."""
    record = a.write(note(SECRET)).record
    a.write(note(SECRET))
    a.write(note(CONTROL))
    assert a.rows("SELECT times FROM reinforced") == [(1,)]
    a.forget(record)
    assert a.rows("SELECT count(*) FROM reinforced") == [(0,)]
    assert_gone_and_the_rest_here(a)


MUTATIONS = {
    "no merge of the index": "INSERT INTO words (words) VALUES ('optimize')",
    "no checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
}


@pytest.mark.parametrize("left_out", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_every_step_of_the_cleaning_is_needed(a: Node, left_out: str) -> None:
    """Without it the scan finds something; so the scan sees and the step does something."""
    for i in range(40):
        a.remember(f"filler {i} {marker(str(i))}")
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    a.clean()
    a.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    a.forget(record)
    erasing.clean(_LeavingOut(a.store.connection, left_out))  # type: ignore[arg-type]
    assert places(a) != []
    a.store.connection.execute("INSERT OR IGNORE INTO cleaning VALUES (?, 0)", (record,))
    assert_gone_and_the_rest_here(a)


class _LeavingOut:
    """A connection that passes over one statement."""

    def __init__(self, connection: sqlite3.Connection, left_out: str) -> None:
        self._connection, self._left_out = connection, left_out

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        if sql == self._left_out:
            sql = "SELECT 0"
        return self._connection.execute(sql, *values)  # type: ignore[arg-type]

    def executemany(self, sql: str, values: object) -> sqlite3.Cursor:
        return self._connection.executemany(sql, values)  # type: ignore[arg-type]


def test_secure_deletion_is_needed(a: Node) -> None:
    """With the setting off the pages keep what was deleted."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    a.store.connection.execute("PRAGMA secure_delete=OFF")
    a.forget(record)
    a.clean()
    assert places(a) != []


def test_digests_after_an_erasure_are_equal_for_who_saw_and_who_did_not(
    world: World, a: Node, b: Node
) -> None:
    """A device that never had the text and one that erased it believe the same."""
    record = a.write(note(SECRET)).record
    a.write(note(CONTROL))
    world.pull(b, a)
    a.forget(record)
    nodes = world.everywhere()
    assert_equal_nodes(*nodes)
    assert_gone_and_the_rest_here(*nodes)
