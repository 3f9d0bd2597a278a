"""One record with very many changes: python -m tests.bench.changes.

Two devices, real stores on real files, one process; processor time. What one more change costs in
the beginning and in the end, then to pull the whole, to fold it, to show it and its history.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from crdt.chain import VerifiedEntry, VerifiedRun, verify_run
from crdt.entry import PayloadKind, Via, actor_id, decode_header, make_header
from crdt.facts import Stored
from crdt.fold import base_of
from crdt.log import ServedRun, Stretch, Tip
from crdt.payload import delete, encode_ops, put
from keys.ids import RecordId
from keys.limits import RUN_BYTES_TARGET, RUN_ENTRIES_MAX, SALT_BYTES
from keys.signing import ENTRY_DOMAIN, DeviceKey, random_bytes
from memory.authoring import Author
from memory.notes import add_tag
from memory.query import get, history
from memory.scope import Scope
from memory.store import AgentStore
from memory.writing import change, remember
from tests.bench.served import middle
from tests.bench.world import World, note

NOW_US = 1_800_000_000_000_000
EDITS = 6


def main() -> None:
    """Run once and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=3_800)
    sys.stdout.write(json.dumps(changes(parser.parse_args().changes)) + "\n")


def changes(count: int) -> dict[str, Any]:
    """Figures of one record with ``count`` changes after its creation."""
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
        world = World(Path(folder))
        a, author = world.open(0)
        b, _ = world.open(1)
        record = remember(author, note(1), Via.LOCAL, NOW_US).record
        first = [_edit(author, record, i) for i in range(EDITS)]
        _grow(a, world.devices[0], record, count - 2 * EDITS)
        last = [_edit(author, record, i) for i in range(EDITS)]
        scope = Scope(a.agent, every_state=True)
        pulled = _cpu(lambda: _pull(b, a))
        assert a.digest() == b.digest()
        return {
            "changes": count,
            "changes_first_edit_cpu_ms": _ms(middle(first)),
            "changes_last_edit_cpu_ms": _ms(middle(last)),
            "changes_pull_cpu_ms": _ms(pulled),
            "changes_refold_cpu_ms": _ms(_cpu(lambda: b.folder.refold([bytes(record)]))),
            "changes_show_cpu_ms": _ms(_cpu(lambda: get(b, scope, record, now_us=NOW_US))),
            "changes_history_cpu_ms": _ms(_cpu(lambda: history(b, scope, record))),
            "changes_versions": len(history(b, scope, record)),
        }


def _grow(store: AgentStore, key: DeviceKey, record: RecordId, count: int) -> None:
    """Append ``count`` changes as one device makes them, each citing the one before.

    The document is kept from one to the next; a store folds the record for each.
    """
    (row,) = store.logs.rows()
    entries = [
        Stored(decode_header(data), payload, time_ms)
        for _, data, payload, time_ms, _ in store.folder.tables.entries(record)
    ]
    base = base_of(store.agent, record, entries, store.folder.judge)
    deps, heads, tip = base.deps, base.changes, row.tip
    made: list[VerifiedEntry] = []
    for i in range(count):
        salt = random_bytes(SALT_BYTES)
        ops = [put("field.weight", 1.5 + i % 5)]
        done = base.document.apply(heads, actor_id(store.agent, row.log, tip.seq + 1, salt), ops)
        assert done is not None
        payload = encode_ops(salt, ops, done)
        header = make_header(
            store.agent,
            row.log,
            tip.seq + 1,
            tip.hash,
            record=record,
            payload_kind=PayloadKind.OPS,
            payload=payload,
            deps=deps,
            wall_ms=NOW_US // 1000,
            via=Via.LOCAL,
            commit_left=0,
        )
        made.append(VerifiedEntry(header, payload, key.sign(ENTRY_DOMAIN, header.hash)))
        deps, heads, tip = [header.hash], frozenset([done]), Tip(header.seq, header.hash)
    for start in range(0, count, RUN_ENTRIES_MAX):
        part = made[start : start + RUN_ENTRIES_MAX]
        run = VerifiedRun(row.log, part[0].header.seq, part[0].header.prev, tuple(part))
        store.append_runs([run], NOW_US)


def _edit(author: Author, record: RecordId, number: int) -> float:
    """Processor seconds of one change: a tag that comes or goes."""
    op = add_tag("coming") if number % 2 == 0 else delete("tag.coming")
    return _cpu(lambda: change(author, record, [op], via=Via.LOCAL, now_us=NOW_US))


def _pull(to: AgentStore, source: AgentStore) -> None:
    runs: list[ServedRun] = []
    for stretch in source.plan(to.vector()):
        rest: Stretch | None = stretch
        while rest is not None:
            run, rest = source.read_run(rest, RUN_BYTES_TARGET)
            runs.append(run)
    verified = [verify_run(to.agent, [e.raw for e in run.entries]) for run in runs]
    to.append_runs(verified, NOW_US)


def _cpu(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


if __name__ == "__main__":
    main()
