"""Bounds of what a store takes, and of what people and agents hand in, at n and n + 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crdt.chain import verify_run
from crdt.entry import Via, decode_header
from crdt.log import Stretch
from keys import codec, limits
from keys.errors import BadChain, BadInput, UsageError
from keys.ids import RecordId
from keys.statements import Statement, parse_stored
from memory.authoring import Author
from memory.door import open_connection
from memory.notes import Note, check_note, check_reason
from memory.query import Filters, list_records, search
from memory.scope import Scope
from memory.store import AgentStore
from memory.terms import query_terms
from memory.writing import remember
from tests.support.author import seeded
from tests.support.bounds import bounds
from tests.vectors.cast import AGENT, CERTIFICATES, FOUND, LAPTOP, OWNER, VALUES, Writer

NOW_US = 1_700_000_100_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    """An agent's file in which this device may write."""
    made = AgentStore(open_connection(tmp_path / "agent.db"), AGENT, [VALUES], LAPTOP.device)
    made.add_statements([FOUND, *CERTIFICATES])
    yield made
    made.connection.close()


# -- logs and statements ---------------------------------------------------------------------------


@bounds("BRANCHES_MAX")
def test_a_store_keeps_so_many_branches_of_a_log_at_most(store: AgentStore) -> None:
    """R7: one more is refused as a whole, and the log stays as it was."""

    def branch(n: int) -> list[Any]:
        w = Writer()
        return [w.open(), w.create(f"branch {n}")]

    for n in range(limits.BRANCHES_MAX):
        store.append_runs([verify_run(AGENT, branch(n))], NOW_US)
    before = "\n".join(store.connection.iterdump())
    with pytest.raises(BadChain):
        store.append_runs([verify_run(AGENT, branch(limits.BRANCHES_MAX))], NOW_US)
    (tips,) = store.vector().values()
    assert len(tips) == limits.BRANCHES_MAX
    assert "\n".join(store.connection.iterdump()) == before


@bounds("RUN_BYTES_TARGET")
def test_a_run_is_served_up_to_the_first_signature_past_the_target(store: AgentStore) -> None:
    """So that a long log comes in pieces, each of which verifies."""
    w = Writer()
    run = [w.open(), *(w.create(f"{n} " + "x" * 40_000) for n in range(12))]
    store.append_runs([verify_run(AGENT, [entry]) for entry in run], NOW_US)
    (stretch,) = store.plan({})
    sizes = []
    rest: Stretch | None = stretch
    while rest is not None:
        served, rest = store.read_run(rest, limits.RUN_BYTES_TARGET)
        raw = [e.raw for e in served.entries]
        verify_run(AGENT, raw)
        sizes.append([len(e.header) + len(e.payload or b"") for e in raw])
    assert len(sizes) == 2
    assert sum(sizes[0][:-1]) < limits.RUN_BYTES_TARGET <= sum(sizes[0])


@bounds("STATEMENTS_PER_AGENT_MAX")
@pytest.mark.slow
def test_a_store_keeps_so_many_statements_at_most(store: AgentStore) -> None:
    """One more is refused with all that came with it; the others stay and are judged in time."""
    room = limits.STATEMENTS_PER_AGENT_MAX - len(store.statement_ids())

    def undo(n: int) -> Statement:
        body = {"run": n.to_bytes(16, "big"), "wall_ms": 0}
        value = [1, bytes(AGENT), OWNER.public, [bytes(FOUND.id)], "undo", body]
        return parse_stored(codec.encode(value), bytes(64))

    many = [undo(n) for n in range(room + 1)]
    with pytest.raises(BadInput):
        store.add_statements(many)
    assert store.add_statements(many[:-1]) == room
    with pytest.raises(BadInput):
        store.add_statements(many[-1:])
    assert len(store.statement_ids()) == limits.STATEMENTS_PER_AGENT_MAX
    assert store.authority.is_valid(many[0].id)


# -- what is handed in -----------------------------------------------------------------------------


def note(**given: Any) -> Note:
    """A note with some fields given."""
    return Note(**{"text": "the key is under the mat"} | given)


SOURCES = tuple(RecordId(n.to_bytes(16, "big")) for n in range(limits.SOURCES_PER_RECORD_MAX + 1))
TAGS = tuple(f"tag {n}" for n in range(limits.TAGS_PER_RECORD_MAX + 1))
FIELDS: list[tuple[str, Callable[[int], Any], int]] = [
    ("text", lambda n: "x" * n, limits.TEXT_BYTES_MAX),
    ("text", lambda n: "\u00e9" * (n // 2) + "x" * (n % 2), limits.TEXT_BYTES_MAX),
    ("source", lambda n: "x" * n, limits.SOURCE_BYTES_MAX),
    ("session", lambda n: "x" * n, limits.SOURCE_BYTES_MAX),
    ("title", lambda n: "x" * n, limits.SOURCE_BYTES_MAX),
    ("speaker", lambda n: "x" * n, limits.NAME_BYTES_MAX),
    ("tags", lambda n: TAGS[:n], limits.TAGS_PER_RECORD_MAX),
    ("tags", lambda n: ("x" * n,), limits.TAG_BYTES_MAX),
    ("derived_from", lambda n: SOURCES[:n], limits.SOURCES_PER_RECORD_MAX),
]


@bounds("TEXT_BYTES_MAX", "SOURCE_BYTES_MAX", "TAGS_PER_RECORD_MAX", "SOURCES_PER_RECORD_MAX")
@pytest.mark.parametrize(
    ("field", "of", "most"), FIELDS, ids=[f"{i}, {f[0]}" for i, f in enumerate(FIELDS)]
)
def test_a_field_of_a_note_has_its_bound(field: str, of: Callable[[int], Any], most: int) -> None:
    """In bytes of UTF-8 or in rows; what is too long is named, not cut."""
    assert getattr(check_note(note(**{field: of(most)})), field) == of(most)
    with pytest.raises(UsageError):
        check_note(note(**{field: of(most + 1)}))


def test_the_longest_note_makes_an_entry_that_fits(store: AgentStore) -> None:
    """Every field at its bound at once: still one entry, and one that other nodes take."""
    longest = note(
        text="x" * limits.TEXT_BYTES_MAX,
        source="s" * limits.SOURCE_BYTES_MAX,
        speaker="s" * limits.NAME_BYTES_MAX,
        session="s" * limits.SOURCE_BYTES_MAX,
        title="t" * limits.SOURCE_BYTES_MAX,
        tags=tuple(f"{n:0{limits.TAG_BYTES_MAX}}" for n in range(limits.TAGS_PER_RECORD_MAX)),
        derived_from=SOURCES[:-1],
        valid_from=1,
        valid_to=2,
        expires=NOW_US * 2,
        imported=seeded("run", 16),
    )
    assert remember(Author(store, LAPTOP), longest, Via.AGENT, NOW_US).created
    (stretch,) = store.plan({})
    served, _ = store.read_run(stretch, limits.RUN_BYTES_MAX)
    run = verify_run(AGENT, [e.raw for e in served.entries])
    assert len(run.entries) == 2
    assert decode_header(run.entries[1].header.data).payload_len < limits.ENTRY_BYTES_MAX


@bounds("REASON_BYTES_MAX")
def test_a_reason_has_so_many_bytes_at_most() -> None:
    """Counted after white space was collapsed."""
    longest = "x" * limits.REASON_BYTES_MAX
    assert check_reason(f"  {longest}\n") == longest
    with pytest.raises(UsageError):
        check_reason(longest + "x")


@bounds("QUERY_BYTES_MAX", "QUERY_TERMS_MAX", "LIST_LIMIT_MAX")
def test_a_search_has_its_bounds(store: AgentStore) -> None:
    """Bytes of a query, words that are looked for, records that are returned."""
    scope = Scope(AGENT, every_state=False)

    def found(query: str, limit: int) -> object:
        return search(store, scope, query, Filters(), limit=limit, now_us=NOW_US)

    n = limits.QUERY_BYTES_MAX
    assert found("x" * n, limits.LIST_LIMIT_MAX) == []
    for query, limit in (
        ("x" * (n + 1), 1),
        ("\u00e9" * (n // 2) + "x", 1),
        ("x", limits.LIST_LIMIT_MAX + 1),
        ("x", 0),
    ):
        with pytest.raises(UsageError):
            found(query, limit)
    with pytest.raises(UsageError):
        list_records(
            store, scope, Filters(), limit=limits.LIST_LIMIT_MAX + 1, cursor=None, now_us=NOW_US
        )
    words = [f"w{n}" for n in range(limits.QUERY_TERMS_MAX + 1)]
    assert query_terms(" ".join(words)) == words[: limits.QUERY_TERMS_MAX]
