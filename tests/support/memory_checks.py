"""What must hold of a store at any moment, and of stores with equal rights once they are quiet."""

from __future__ import annotations

from typing import Any

from crdt.fingerprint import fingerprints
from keys.ids import RecordId
from memory.audit import verify_log
from memory.query import Filters, list_records
from memory.store import AgentStore
from tests.support.memory_world import Node

# The read model by record id: local numbers, times of arrival and counters aside.
_MODEL = {
    "record": "SELECT record, kind, state, own, live, duplicate, text, category, provenance,"
    " source, speaker, session, layer, weight, title, valid_from, valid_to, expires, created_ms,"
    " changed_ms, device, via, detail, base_hash FROM record",
    "tag": "SELECT record, tag FROM tag JOIN record USING (n)",
    "version": "SELECT record, version, entry, time_ms, version.state, version.device,"
    " version.via, reason, content FROM version JOIN record USING (n)",
    "print": "SELECT record, mac, refuses FROM print JOIN record USING (n)",
    "link": "SELECT record, target, what FROM link JOIN record USING (n)",
    "words": "SELECT record, term, offset FROM temp.vocabulary JOIN record ON n = doc",
    "withheld words": "SELECT record, term, offset FROM temp.withheld JOIN record ON n = doc",
    "turn": "SELECT record, session, channel, at_ms, seq FROM turn",
    "tombstone_print": "SELECT mac, tombstone FROM tombstone_print JOIN tombstone"
    " ON hash = tombstone WHERE chained = 1",
    "effective": "SELECT hash FROM tombstone WHERE effective = 1 AND chained = 1",
}
# What a rebuild must also reproduce, although nodes with other entries differ in it.
_LOCAL = {
    "reason": "SELECT hash, reason, time_ms, payload IS NULL FROM entry",
    "verdict": "SELECT id, verdict FROM log",
    "tombstone": "SELECT hash, chained, effective, time_ms FROM tombstone",
    "stray words": "SELECT doc FROM temp.vocabulary WHERE doc NOT IN (SELECT n FROM record"
    " WHERE state IN ('new', 'current') AND text <> '')",
    "stray withheld words": "SELECT doc FROM temp.withheld WHERE doc NOT IN (SELECT n FROM record"
    " WHERE state NOT IN ('new', 'current') AND text <> '')",
}

Model = dict[str, list[tuple[Any, ...]]]


def model_of(node: Node, *, local: bool = False) -> Model:
    """The read model as sorted rows, the word index among them."""
    connection = node.store.connection
    for name, index in (("vocabulary", "words"), ("withheld", "withheld_words")):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name}"
            f" USING fts5vocab(main, {index}, instance)"
        )
    wanted = _MODEL | _LOCAL if local else _MODEL
    return {name: sorted(connection.execute(sql), key=repr) for name, sql in wanted.items()}


def intact(store: AgentStore) -> bool:
    """Whether SQLite finds nothing wrong with the whole file."""
    return bool(store.connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")


def assert_same_model(expected: Model, actual: Model, why: str) -> None:
    """Compare table by table, so that a failure names the rows."""
    for name, rows in expected.items():
        gone = [row for row in rows if row not in actual[name]]
        more = [row for row in actual[name] if row not in rows]
        assert (gone, more) == ([], []), f"{why}: table {name}"


def assert_sound(node: Node) -> None:
    """A rebuild gives what is here, the log verifies, what is erased is gone and stays unfound."""
    if not node.store.waiting_for_key:
        live = model_of(node, local=True)
        before, after = node.store.rebuild()
        assert_same_model(live, model_of(node, local=True), f"{node.name}: a rebuild differs")
        assert before == after
    assert verify_log(node.store).problems == []
    kept = node.rows(
        "SELECT count(*) FROM entry JOIN tombstone USING (record) WHERE effective = 1"
        " AND chained = 1 AND payload_kind NOT IN (0, 2) AND entry.payload IS NOT NULL"
    )
    assert kept == [(0,)], f"{node.name}: erased payloads are here"
    assert_nothing_refused_is_shown(node)


def assert_nothing_refused_is_shown(node: Node) -> None:
    """No reader is shown an erased record, or another record of an erased or retired value."""
    erased = {r for (r,) in node.rows("SELECT record FROM tombstone WHERE effective = 1")}
    forgotten = {m for (m,) in node.rows("SELECT mac FROM tombstone_print")}
    retired = {m for (m,) in node.rows("SELECT mac FROM print WHERE refuses = 1")}
    page = list_records(
        node.store, node.readers, Filters(), limit=1000, cursor=None, now_us=node.now_us
    )
    for seen in page.records:
        assert seen.state in ("new", "current")
        assert seen.record not in erased
        assert set(seen.detail["sources"]).isdisjoint(erased)
        if seen.kind == "observation":
            macs = {p.mac for p in fingerprints(node.store.keys, seen.text)}
            assert macs.isdisjoint(forgotten | retired), f"{node.name}: a value that is refused"
    listed = {seen.record for seen in page.records}
    for word in {w for seen in page.records for w in seen.text.split()}:
        assert set(node.search(word)) <= listed


def assert_equal_nodes(*nodes: Node) -> None:
    """Nodes that may read the same and hold the same keys believe the same."""
    first = nodes[0]
    for other in nodes[1:]:
        why = f"{first.name} and {other.name} differ"
        assert_same_model(model_of(first), model_of(other), why)
        assert first.digest == other.digest


def erased_records(node: Node) -> list[RecordId]:
    """The records that are erased here."""
    return [RecordId(r) for (r,) in node.rows("SELECT record FROM record WHERE own = 'erased'")]
