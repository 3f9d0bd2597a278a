"""Reading: every read has a scope, pages are whole, a record shows its history."""

import inspect
import sqlite3
from collections.abc import Callable

import pytest

from crdt.entry import Via
from keys.errors import AmbiguousError, NotFoundError, RefusedError, UsageError
from keys.ids import AgentId, RecordId
from keys.limits import LIST_LIMIT_MAX
from memory import query
from memory.notes import Note
from memory.query import (
    Filters,
    Page,
    explain,
    get,
    get_live,
    history,
    list_records,
    live_history,
    misses,
    never_valid,
    resolve,
    search,
    weightiest,
)
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import remember_batch
from tests.support.memory_world import Node, World

PAGED = 1_200


def public_reads() -> dict[str, Callable[..., object]]:
    """The public functions of the query layer."""
    return {
        name: function
        for name, function in inspect.getmembers(query, inspect.isfunction)
        if function.__module__ == query.__name__ and not name.startswith("_")
    }


def test_M_C2_every_read_takes_a_scope_without_a_default() -> None:
    """Whatever is public and given a store is given a scope too."""
    for name, function in public_reads().items():
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        assert [p.annotation for p in parameters[:2]] == [AgentStore, Scope], name
        assert parameters[1].default is inspect.Parameter.empty, name


def calls(node: Node, scope: Scope, record: RecordId) -> dict[str, Callable[[], object]]:
    """A call of every public read function."""
    now = node.now_us
    return {
        "search": lambda: search(node.store, scope, "bees", Filters(), limit=9, now_us=now),
        "explain": lambda: explain(node.store, scope, "bees", Filters(), limit=9, now_us=now),
        "list_records": lambda: list_records(
            node.store, scope, Filters(), limit=9, cursor=None, now_us=now
        ),
        "weightiest": lambda: weightiest(node.store, scope, Filters(), 9, now),
        "get": lambda: get(node.store, scope, record, now_us=now),
        "get_live": lambda: get_live(node.store, scope, record, now_us=now),
        "never_valid": lambda: never_valid(node.store, scope),
        "misses": lambda: misses(node.store, scope, "bees", Filters(), now_us=now),
        "resolve": lambda: resolve(node.store, scope, str(record)[:10]),
        "history": lambda: history(node.store, scope, record),
        "live_history": lambda: live_history(node.store, scope, record, now_us=now),
    }


def test_M_C2_a_scope_of_another_agent_is_refused_by_every_read(a: Node) -> None:
    """With and without every state; the right scope is answered."""
    record = a.remember("bees")
    for every_state in (False, True):
        other, own = (Scope(i, every_state) for i in (AgentId(bytes(32)), a.world.agent))
        assert calls(a, other, record).keys() == public_reads().keys()
        for call in calls(a, other, record).values():
            with pytest.raises(RefusedError):
                call()
        answered = calls(a, own, record)
        if not every_state:
            with pytest.raises(RefusedError):
                answered.pop("history")()
        for call in answered.values():
            assert call() is not None


@pytest.fixture
def states(world: World, a: Node, b: Node) -> dict[str, RecordId]:
    """A record of every state, and a live one, quiet on A and B."""
    live = a.remember("a live bee")
    kept = a.remember("a kept bee")
    a.keep(kept)
    retired = a.remember("a retired bee")
    a.retire(retired)
    replaced = a.remember("a replaced bee")
    a.revise(replaced, "a new bee")
    waiting = a.remember("a bee of a web page", provenance="web")
    expired = a.remember("an expired bee", expires=world.clock_us + 1)
    erased = a.remember("an erased bee")
    world.settle()
    returning = b.remember("a Returning bee")
    again = a.remember("a returning bee")
    a.retire(again)
    world.settle()
    source = a.remember("a source")
    withheld = b.remember("a withheld bee", kind="turn", derived_from=(source,))
    a.forget(source)
    a.forget(erased)
    world.settle()
    return {
        "new": live,
        "current": kept,
        "deprecated": retired,
        "superseded": replaced,
        "proposed": waiting,
        "expired": expired,
        "erased": erased,
        "returning": returning,
        "withheld": withheld,
    }


def test_a_reader_sees_what_is_live_and_a_person_everything(
    world: World, states: dict[str, RecordId]
) -> None:
    """By search, list and id alike; the states are those that a person is told."""
    for node in world.everywhere():
        found = {s: node.state(r) for s, r in states.items()}
        # What B wrote from an erased source it has erased itself since (R31).
        assert found == {s: s for s in states} | {"withheld": "erased"}
        page = listed(node, node.readers)
        for state, record in states.items():
            shown = state in ("new", "current")
            assert (record in {s.record for s in page.records}) == shown, state
            assert (record in node.search("bee", limit=100)) == shown, state
            if shown:
                seen = get(node.store, node.readers, record, now_us=node.now_us)
                assert seen.state == state
            else:
                with pytest.raises(NotFoundError):
                    get(node.store, node.readers, record, now_us=node.now_us)
        assert set(states.values()) <= {s.record for s in listed(node, node.scope).records}


def test_a_person_may_list_by_state(world: World, states: dict[str, RecordId]) -> None:
    """Each state lists its records and no others; the totals add up."""
    for node in world.everywhere():
        total = 0
        for state in query.STATES:
            page = listed(node, node.scope, states=(state,))
            assert {s.state_at(node.now_us) for s in page.records} <= {state}
            assert page.total == len(page.records)
            total += page.total
        assert total == listed(node, node.scope).total


def listed(
    node: Node, scope: Scope, *, cursor: str | None = None, limit: int = 100, **filters: object
) -> Page:
    """One page."""
    return list_records(
        node.store,
        scope,
        Filters(**filters),  # type: ignore[arg-type]
        limit=limit,
        cursor=cursor,
        now_us=node.now_us,
    )


@pytest.mark.parametrize("limit", [70, 500, LIST_LIMIT_MAX])
def test_pages_are_distinct_and_whole(a: Node, limit: int) -> None:
    """1,200 records, many of one millisecond, are each listed once, newest first."""
    written: list[RecordId] = []
    for start in range(0, PAGED, 400):
        notes = [Note(f"number {i}") for i in range(start, start + 400)]
        result = remember_batch(a.author, notes, Via.LOCAL, a.now_us)
        written += [w.record for w in result.written]
    seen: list[RecordId] = []
    stamps: list[int] = []
    cursor: str | None = None
    while True:
        page = listed(a, a.readers, cursor=cursor, limit=limit)
        assert page.total == PAGED
        seen += [s.record for s in page.records]
        stamps += [s.created_ms for s in page.records]
        cursor = page.next
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == PAGED
    assert set(seen) == set(written)
    assert stamps == sorted(stamps, reverse=True)


def test_a_page_is_not_moved_by_what_is_written_meanwhile(a: Node) -> None:
    """A cursor names a place, not a count: new records do not repeat or hide old ones."""
    old = [a.remember(f"old {i}") for i in range(6)]
    first = listed(a, a.readers, limit=3)
    fresh = [a.remember(f"fresh {i}") for i in range(4)]
    second = listed(a, a.readers, cursor=first.next, limit=50)
    assert [s.record for s in first.records + second.records] == old[::-1]
    assert listed(a, a.readers).total == len(old) + len(fresh)


@pytest.mark.parametrize(
    "cursor", ["", ".", "x.y", "1", "1.", "-1.{}", f"{2**48}.{{}}", f"{2**70}.{{}}", "1.{}x"]
)
def test_a_cursor_that_was_not_given_out_is_refused(a: Node, cursor: str) -> None:
    """An error, and never somebody else's page."""
    record = a.remember("bees")
    assert listed(a, a.readers, cursor=f"{2**47}.{record}").records
    with pytest.raises(UsageError):
        listed(a, a.readers, cursor=cursor.format(record))


def test_an_id_or_the_start_of_one_names_a_record(a: Node) -> None:
    """M-F15: a prefix that fits two is an error that lists them; a mistyped id is one too."""
    records = [a.remember(f"number {i}") for i in range(3)]
    a.world.clock_us += 10**13
    lone = a.remember("much later")
    for record in records:
        assert resolve(a.store, a.readers, str(record)) == record
        assert resolve(a.store, a.readers, str(record).upper()) == record
    assert resolve(a.store, a.readers, str(lone)[:6]) == lone
    a.retire(lone)
    assert resolve(a.store, a.scope, str(lone)[:6]) == lone
    with pytest.raises(NotFoundError):
        resolve(a.store, a.readers, str(lone)[:6])
    common = str(records[0])[:4]
    with pytest.raises(AmbiguousError) as ambiguous:
        resolve(a.store, a.readers, common)
    assert ambiguous.value.details["candidates"] == sorted(map(str, records))
    wrong = str(lone)[:-1] + ("0" if str(lone)[-1] != "0" else "1")
    for text in ("", "!!", wrong, "u"):
        with pytest.raises(UsageError):
            resolve(a.store, a.readers, text)
    with pytest.raises(NotFoundError):
        resolve(a.store, a.readers, "zzzz")


def test_history_tells_every_version_across_revisions(world: World, a: Node, b: Node) -> None:
    """Who, when, why and the text then, from any record of the chain, on every device."""
    first = a.remember("the meeting is on monday", tags=("work",))
    a.move(first, "week")
    world.settle()
    second = b.revise(first, "the meeting is on friday", "it moved")
    world.settle()
    a.retire(second, "it is over")
    for node in world.everywhere():
        for record in (first, second):
            found = history(node.store, node.scope, record)
            assert [(v.record, v.state, v.reason) for v in found] == [
                (first, "new", ""),
                (first, "new", ""),
                (first, "superseded", "it moved"),
                (second, "new", ""),
                (second, "deprecated", "it is over"),
            ]
            assert {v.device for v in found} == {a.key.device, b.key.device}
            assert found[1].content["fields"]["layer"] == "week"
            assert found[0].content == {"fields": {"layer": "day", "weight": 1.0}, "tags": ["work"]}
            assert found[0].text == "the meeting is on monday"


def test_history_of_what_was_forgotten_tells_who_and_when_and_no_word(
    world: World, a: Node, b: Node
) -> None:
    """S-H11: versions remain without text, values and reasons; the rest of the chain is whole."""
    first = a.remember("the secret is swordfish", title="swordfish")
    world.settle()
    second = b.revise(first, "the secret is haddock", "not swordfish any more")
    world.settle()
    a.forget(first)
    for node in world.everywhere():
        found = history(node.store, node.scope, first)
        assert "swordfish" not in repr(found)
        mine = [v for v in found if v.record == first]
        assert [(v.device, v.state) for v in mine] == [
            (a.key.device, "erased"),
            (b.key.device, "erased"),
            (a.key.device, "erased"),
        ]
        assert [v.reason for v in mine] == ["", "", "person"]
        assert node.seen(second).text == "the secret is haddock"


def test_M_H23_versions_change_only_in_the_fold(a: Node) -> None:
    """UPDATE and DELETE are blocked by trigger; the version is written with its row."""
    record = a.remember("bees")
    for statement in (
        "UPDATE version SET reason = 'x'",
        "UPDATE version SET state = 'current' WHERE version = 1",
        "DELETE FROM version",
        "DELETE FROM version WHERE n = 1",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            a.store.connection.execute(statement)
    assert len(history(a.store, a.scope, record)) == 1
    assert a.rows("SELECT open FROM version_gate") == [(0,)]
