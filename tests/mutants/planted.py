"""Bugs of one line each that the ordinary suites must find.

``old`` stands exactly once in ``file``; ``suites`` are run in their order until a test fails.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug: what it is, where, and which ordinary suites are to find it."""

    name: str
    file: str
    old: str
    new: str
    suites: tuple[str, ...]


MUTANTS = (
    Mutant(
        "the state is the last writer's, not the strongest",
        "memory/rows.py",
        "words = {f.word for f in counted if f.counts and f.successor is None}",
        "words = {f.word for f in counted[-1:] if f.counts and f.successor is None}",
        ("tests/memory/test_revise.py",),
    ),
    Mutant(
        "a cut is not looked at",
        "memory/judge.py",
        "            return all(seq <= self._ends[cut].seq for cut in path)\n",
        "            return True\n",
        ("tests/reference/test_cuts.py",),
    ),
    Mutant(
        "the cursor moves in a transaction of its own",
        "memory/logs.py",
        "        new = self._insert(row, entries, before, now_us, statement_times)\n",
        "        new = self._insert(row, entries, before, now_us, statement_times)"
        '; self._db.execute("COMMIT"); self._db.execute("BEGIN IMMEDIATE")\n',
        ("tests/memory/test_half_writes.py",),
    ),
    Mutant(
        "a place in the log is remembered from one commit to the next",
        "memory/authoring.py",
        "        log, tip, opening = self._own_log(self._clock_us)\n",
        "        log, tip, opening = self.__dict__.setdefault("
        '"place", self._own_log(self._clock_us))\n',
        ("tests/memory/test_authoring.py",),
    ),
    Mutant(
        "secure_delete is off",
        "memory/door.py",
        '"PRAGMA secure_delete=ON"',
        '"PRAGMA secure_delete=OFF"',
        ("tests/memory/test_erasure.py", "tests/memory/test_doors.py"),
    ),
    Mutant(
        "the word index is not optimised after an erasure",
        "memory/words.py",
        "    connection.execute(\"INSERT INTO words (words) VALUES ('optimize')\")\n",
        "",
        ("tests/memory/test_erasure.py",),
    ),
    Mutant(
        "the write-ahead log keeps what was erased",
        "memory/erasing.py",
        "wal_checkpoint(TRUNCATE)",
        "wal_checkpoint(PASSIVE)",
        ("tests/memory/test_erasure.py",),
    ),
    Mutant(
        "a commit is not synced to the disk",
        "memory/door.py",
        '"PRAGMA synchronous=FULL"',
        '"PRAGMA synchronous=NORMAL"',
        ("tests/memory/test_doors.py",),
    ),
    Mutant(
        "a failed transaction keeps what it had done",
        "memory/transaction.py",
        '("ROLLBACK",)',
        '("COMMIT",)',
        ("tests/memory/test_half_writes.py",),
    ),
    Mutant(
        "a gap in a log is tolerated by the store",
        "memory/logs.py",
        "        if before.seq and run.prev not in self.hash_at(row.id, before.seq):\n",
        "        if before.seq and before.seq <= row.tip.seq"
        " and run.prev not in self.hash_at(row.id, before.seq):\n",
        ("tests/memory/test_store_acceptance.py",),
    ),
    Mutant(
        "a gap in a log is tolerated by a pull",
        "sync/pull.py",
        "        return Missing.WAITING if header.seq - 1 > self._heights.get(header.log, 0)"
        " else None\n",
        "        return None\n",
        ("tests/unit/test_sync_hostile.py",),
    ),
    Mutant(
        "a run may begin inside a commit",
        "memory/logs.py",
        "        if self.commit_end(row.id, before) != before:\n",
        "        if False:\n",
        ("tests/memory/test_store_acceptance.py", "tests/unit/test_vectors_store.py"),
    ),
    Mutant(
        "a fork freezes what its later branches share",
        "memory/logs.py",
        "min(seq, row.fork_seq)",
        "max(seq, row.fork_seq)",
        ("tests/reference/test_cuts.py",),
    ),
    Mutant(
        "a pinned certificate may sign others",
        "keys/tls.py",
        "x509.BasicConstraints(ca=False, path_length=None)",
        "x509.BasicConstraints(ca=True, path_length=None)",
        ("tests/unit/test_tls.py", "tests/unit/test_certificate.py"),
    ),
    Mutant(
        "a pinned certificate is whatever its authority signed",
        "keys/tls.py",
        "    if der[:-SIGNATURE_BYTES] != start:\n",
        "    if False:\n",
        ("tests/unit/test_certificate.py",),
    ),
    Mutant(
        "a device that is a peer no more is let in",
        "node/server.py",
        "            self._certificates.pop(device, None)\n",
        "",
        ("tests/e2e/test_network_strangers.py",),
    ),
    Mutant(
        "a signature inside a run is kept without a look",
        "crdt/chain.py",
        '        return VerifiedEntry(header, payload, b"")\n',
        "        return VerifiedEntry(header, payload, given.signature)\n",
        ("tests/unit/test_entry_attacks.py", "tests/unit/test_sync_serve.py"),
    ),
    Mutant(
        "the signature at the end of a run is not verified",
        "crdt/chain.py",
        "    verify(header.device, ENTRY_DOMAIN, header.hash, given.signature)\n",
        "",
        ("tests/unit/test_entry_attacks.py",),
    ),
    Mutant(
        "a payload is not compared with its header",
        "crdt/chain.py",
        "        len(payload) != header.payload_len or hash256(payload) != header.payload_hash\n",
        "        len(payload) != header.payload_len\n",
        ("tests/unit/test_entry_attacks.py",),
    ),
    Mutant(
        "a change that does not regenerate is taken",
        "crdt/fold.py",
        "        if made is None or made != payload.change_hash:\n",
        "        if made is None:\n",
        ("tests/unit/test_fold.py",),
    ),
    Mutant(
        "a fingerprint is of the text as it was typed",
        "crdt/fingerprint.py",
        "    normalised = normalise(text)\n",
        "    normalised = text\n",
        ("tests/memory/test_remember.py",),
    ),
    Mutant(
        "the last operation of an entry is dropped",
        "crdt/document.py",
        "            for key, verb, kind, value in ops:\n",
        "            for key, verb, kind, value in tuple(ops)[:-1] or ops:\n",
        ("tests/unit/test_document.py",),
    ),
    Mutant(
        "a second edit in a commit drops the first",
        "memory/authoring.py",
        "        self._ops[record].update({op.key: op for op in ops})\n",
        "        self._ops[record] = {op.key: op for op in ops}\n",
        ("tests/memory/test_authoring.py",),
    ),
    Mutant(
        "entries fold in the order of their wall clocks",
        "crdt/fold.py",
        "    ordered = sorted(entries, key=lambda s: (s.time_ms, s.header.hash))\n",
        "    return sorted(entries, key=lambda s: (s.header.wall_ms, s.header.hash))\n",
        ("tests/unit/test_fold.py", "tests/unit/test_entry_attacks.py"),
    ),
    Mutant(
        "a record time is the wall clock's, though it builds on something later",
        "memory/logs.py",
        "            time_ms = max(time_ms, header.wall_ms)\n",
        "            time_ms = header.wall_ms\n",
        ("tests/memory/test_times.py", "tests/unit/test_vectors_store.py"),
    ),
    Mutant(
        "a read does not look at its scope's agent",
        "memory/scope.py",
        "        if self.agent != agent:\n",
        "        if False:\n",
        ("tests/memory/test_reading.py",),
    ),
    Mutant(
        "a read shows every state to everybody",
        "memory/query.py",
        '    where = "1" if scope.every_state else LIVE\n',
        '    where = "1"\n',
        ("tests/memory/test_reading.py", "tests/memory/test_revise.py"),
    ),
    Mutant(
        "what has expired is still found",
        "memory/filters.py",
        '    " AND (r.expires IS NULL OR r.expires > :now)"\n',
        "",
        ("tests/memory/test_times.py",),
    ),
    Mutant(
        "the lock of a home is shared",
        "node/lock.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("tests/unit/test_lock.py",),
    ),
    Mutant(
        "a node opens an agent without asking the marker",
        "node/handle.py",
        "        self.author.renew = self.doubt is not None\n",
        "",
        ("tests/e2e/test_network_live.py", "tests/e2e/test_two_processes.py"),
    ),
    Mutant(
        "the marker believes a database that was restored",
        "node/marker.py",
        "        if own.get(entry.incarnation, 0) < entry.seq:\n",
        "        if False:\n",
        ("tests/unit/test_marker.py",),
    ),
    Mutant(
        "a doubt opens no new incarnation",
        "memory/authoring.py",
        "        if incarnation is not None and not self.renew:\n",
        "        if incarnation is not None:\n",
        ("tests/memory/test_authoring.py",),
    ),
    Mutant(
        "what is erased keeps its payload, and is served",
        "memory/tables.py",
        '"UPDATE entry SET payload = NULL WHERE record = ? AND payload IS NOT NULL"',
        '"UPDATE entry SET payload = payload WHERE record = ? AND payload IS NOT NULL"',
        ("tests/unit/test_sync_serve.py", "tests/memory/test_erasure.py"),
    ),
    Mutant(
        "the payload of something erased enters when a peer sends it",
        "memory/wants.py",
        "            if not fits or tables.is_withheld(header.record):\n",
        "            if not fits:\n",
        ("tests/memory/test_erasure.py", "tests/memory/test_store_acceptance.py"),
    ),
    Mutant(
        "the run of something erased enters with its payload",
        "memory/erasing.py",
        "        and tables.is_withheld(e.header.record)\n",
        "        and False\n",
        ("tests/memory/test_erasure.py", "tests/memory/test_store_acceptance.py"),
    ),
    Mutant(
        "what was derived at two removes from something erased is shown",
        "memory/standing.py",
        'if self._one("SELECT 1 FROM tombstone WHERE record = ? AND effective = 1", source)',
        "if source in self._sources(record) and self._one("
        '"SELECT 1 FROM tombstone WHERE record = ? AND effective = 1", source)',
        ("tests/reference/test_values.py",),
    ),
    Mutant(
        "an erased value may be written again",
        "memory/writing.py",
        "        if erased:\n",
        "        if False:\n",
        ("tests/memory/test_erasure.py", "tests/memory/test_forget.py"),
    ),
    Mutant(
        "a running answer goes on after the right to read is gone",
        "sync/serve.py",
        "    while may_read():\n",
        "    while begun or may_read():\n",
        ("tests/unit/test_sync_serve.py",),
    ),
    Mutant(
        "an approval shows more than the bytes it names",
        "memory/rows.py",
        "    chosen = [e for e in entries if e.header.hash in approved]\n",
        "    chosen = list(entries)\n",
        ("tests/memory/test_review.py",),
    ),
    Mutant(
        "a grant has no end",
        "keys/authority.py",
        "            if now_ms is None or not until or now_ms < until:\n",
        "            if True:\n",
        ("tests/reference/test_authority.py", "tests/unit/test_authority_attacks.py"),
    ),
    Mutant(
        "a web page may call the local interface",
        "node/localapi.py",
        "        if hdrs.ORIGIN in request.headers or request.host not in HOSTS:\n",
        "        if False:\n",
        ("tests/unit/test_local_api.py",),
    ),
    Mutant(
        "a key file may be open to others",
        "keys/keyfile.py",
        "    if found.st_mode & _OTHERS:\n",
        "    if False:\n",
        ("tests/unit/test_keyfile.py",),
    ),
)
