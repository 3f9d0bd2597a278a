"""Where a revocation cuts what its subject wrote and signed: by this node's arrival times (R18)."""

from __future__ import annotations

from collections.abc import Sequence

from keys.ids import EntryHash
from memory.logs import LogRow
from memory.store import AgentStore


def cuts_of(
    store: AgentStore, devices: Sequence[bytes], since_us: int | None
) -> list[list[object]]:
    """``[device, incarnation, seq, hash]`` per log of the devices.

    At the tip held now, or at the last commit that arrived here before ``since_us``; nobody's
    stamps enter. A forked log is cut at its last common commit.
    """
    out: list[list[object]] = []
    for row in store.logs.rows():
        if row.log.device in devices:
            seq, entry = _place(store, row, since_us)
            out.append([bytes(row.log.device), bytes(row.log.incarnation), seq, bytes(entry)])
    return sorted(out, key=repr)


def _place(store: AgentStore, row: LogRow, since_us: int | None) -> tuple[int, EntryHash]:
    until = row.tip.seq if row.fork_seq is None else row.fork_seq
    found = store.connection.execute(
        "SELECT seq, hash FROM entry WHERE log = ? AND seq <= ? AND signature <> x''"
        " AND received_us < ? ORDER BY seq DESC LIMIT 1",
        (row.id, until, since_us if since_us is not None else 2**62),
    ).fetchone()
    return (found[0], EntryHash(found[1])) if found else (0, EntryHash(bytes(32)))


def tombstones_past(
    store: AgentStore, devices: Sequence[bytes], since_us: int | None
) -> list[bytes]:
    """Effective tombstones that a cut would end; a revocation keeps them by name (R30)."""
    cuts = {(c[0], c[1]): c[2] for c in cuts_of(store, devices, since_us)}
    return [
        entry
        for entry, device, incarnation, seq in store.connection.execute(
            "SELECT hash, device, incarnation, seq FROM tombstone WHERE effective = 1 ORDER BY hash"
        )
        if device in devices and seq > cuts.get((device, incarnation), 0)
    ]


def statements_before(store: AgentStore, owner: bytes, since_us: int | None) -> list[bytes]:
    """What an owner signed about this agent and a removal keeps: all that arrived before (R17)."""
    arrived = {
        r[0]
        for r in store.connection.execute(
            "SELECT id FROM statement WHERE received_us < ?",
            (since_us if since_us is not None else 2**62,),
        )
    }
    return sorted(
        bytes(s.id)
        for s in store.statements()
        if s.agent and s.id in arrived and store.authority.owner_of_key(s.signer) == owner
    )
