"""Whose clock was off: stamps more than a day from when an entry can have been written.

Both hints are local and outside the digest: when an entry came here is a column of this node's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crdt.entry import decode_header
from keys.ids import RecordId
from memory.store import AgentStore

OFF_MS: Final = 24 * 3600 * 1000
_AT_ONCE: Final = 500


def clock_suspects(
    store: AgentStore, records: Sequence[RecordId], now_us: int
) -> frozenset[RecordId]:
    """Those of ``records`` with an entry whose stamp is more than ``OFF_MS`` off.

    Ahead: its record time is a day after this node got it. Behind: its own stamp is a day before
    what it builds on, so that its record time was raised (R14). An entry that merely took long to
    arrive is neither.
    """
    found: set[RecordId] = set()
    for start in range(0, len(records), _AT_ONCE):
        some = records[start : start + _AT_ONCE]
        places = ", ".join("?" * len(some))
        rows = store.connection.execute(
            "SELECT record, header, time_ms, received_us FROM entry"  # noqa: S608 - placeholders
            f" WHERE record IN ({places})",
            some,
        )
        for record, header, time_ms, received_us in rows:
            here_ms = min(received_us, now_us) // 1000
            ahead = time_ms - here_ms > OFF_MS
            if ahead or time_ms - decode_header(header).wall_ms > OFF_MS:
                found.add(RecordId(record))
    return frozenset(found)
