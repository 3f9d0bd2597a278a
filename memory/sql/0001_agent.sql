-- One agent's memory: its signed logs, its statements, and the read model folded from them.
-- Log tables are the truth. Read-model tables always equal fold(logs, statements); `roost rebuild`
-- recreates them. Local tables are neither replicated nor covered by the digest.

-- Small facts about this file: agent id, digests kept current, whether folding waits for a key.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- ---- the log ----

-- One row per log (device, incarnation). The numbers are local; nothing outside knows them.
CREATE TABLE log (
    id          INTEGER PRIMARY KEY,
    device      BLOB NOT NULL,
    incarnation BLOB NOT NULL,
    heads       BLOB NOT NULL,               -- statement heads its opening cites, 32 bytes each
    tip_seq     INTEGER NOT NULL,            -- last entry of the branch we extend
    tip_hash    BLOB NOT NULL,
    fork_seq    INTEGER,                     -- last common commit end, NULL while there is one branch
    verdict     BLOB NOT NULL DEFAULT x'',   -- what the statements say of it, as last folded
    UNIQUE (device, incarnation)
) STRICT;

-- Every entry held. Two rows may share (log, seq): then the log is forked and both are proof.
CREATE TABLE entry (
    id           INTEGER PRIMARY KEY,        -- order of arrival here
    log          INTEGER NOT NULL REFERENCES log (id),
    seq          INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    header       BLOB NOT NULL,
    payload      BLOB,                       -- NULL: erased, or nowhere
    signature    BLOB NOT NULL,              -- x'' inside a run
    record       BLOB NOT NULL,
    payload_kind INTEGER NOT NULL,
    size         INTEGER NOT NULL,           -- bytes of header and payload as written
    time_ms      INTEGER NOT NULL,           -- record time (R14)
    received_us  INTEGER NOT NULL,           -- when this node got it: local
    reason       TEXT                        -- why it does not materialise (R5), NULL: it does
) STRICT;
CREATE UNIQUE INDEX entry_place ON entry (log, seq, hash);
CREATE INDEX entry_record ON entry (record);
CREATE INDEX entry_reason ON entry (reason) WHERE reason IS NOT NULL;

-- Verified statements (R16).
CREATE TABLE statement (
    id          BLOB PRIMARY KEY,
    data        BLOB NOT NULL,
    signature   BLOB NOT NULL,
    received_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tombstones: those in the log and those that came ahead of their chain (R30).
CREATE TABLE tombstone (
    hash          BLOB PRIMARY KEY,          -- hash of the tombstone entry
    record        BLOB NOT NULL,             -- the record it erases
    device        BLOB NOT NULL,
    incarnation   BLOB NOT NULL,
    seq           INTEGER NOT NULL,
    time_ms       INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    header        BLOB NOT NULL,
    payload       BLOB NOT NULL,
    signature     BLOB NOT NULL,
    opening       BLOB NOT NULL,             -- [header, payload, signature] of its log's first entry
    chained       INTEGER NOT NULL,          -- 1: its place in the chain is verified, or it is kept
    effective     INTEGER NOT NULL           -- 1: admitted and inside all cuts
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstone_record ON tombstone (record);
CREATE INDEX tombstone_ahead ON tombstone (device, incarnation) WHERE chained = 0;

-- Fingerprints that effective tombstones list.
CREATE TABLE tombstone_print (
    mac       BLOB NOT NULL,
    tombstone BLOB NOT NULL,
    PRIMARY KEY (mac, tombstone)
) STRICT, WITHOUT ROWID;

-- ---- the read model ----

-- One row per record that exists (or is erased). `state` is what readers are told.
CREATE TABLE record (
    n           INTEGER PRIMARY KEY,         -- local number, also the row of the word index
    record      BLOB NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    state       TEXT NOT NULL,               -- proposed new current deprecated superseded withheld returning erased
    own         TEXT NOT NULL,               -- the state its own facts give
    live        INTEGER NOT NULL,            -- 1: readers may see it (clock and duplicates aside)
    duplicate   BLOB,                        -- the canonical record of the same value, if another
    text        TEXT NOT NULL,
    category    TEXT NOT NULL,
    provenance  TEXT NOT NULL,
    source      TEXT,
    speaker     TEXT,
    session     TEXT,
    layer       TEXT NOT NULL,
    weight      REAL NOT NULL,
    title       TEXT,
    valid_from  INTEGER,                     -- microseconds UTC
    valid_to    INTEGER,
    expires     INTEGER,
    created_ms  INTEGER NOT NULL,            -- record time of the first version
    changed_ms  INTEGER NOT NULL,            -- record time of the last version
    device      BLOB NOT NULL,               -- author of the creation
    via         INTEGER NOT NULL,
    detail      BLOB NOT NULL,               -- canonical map of all the rest
    base_hash   BLOB NOT NULL                -- BLAKE2b-128 of all the digest covers but state and duplicate
) STRICT;
CREATE INDEX record_source ON record (source) WHERE source IS NOT NULL;

-- Tags of live and withheld records.
CREATE TABLE tag (
    tag TEXT NOT NULL,
    n   INTEGER NOT NULL REFERENCES record (n),
    PRIMARY KEY (tag, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_record ON tag (n);

-- Every version of every record: the fold over the prefixes (R14).
CREATE TABLE version (
    n        INTEGER NOT NULL REFERENCES record (n),
    version  INTEGER NOT NULL,
    entry    BLOB NOT NULL,                  -- entry or statement that made it
    time_ms  INTEGER NOT NULL,
    state    TEXT NOT NULL,
    device   BLOB NOT NULL,
    via      INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    content  BLOB NOT NULL,                  -- canonical map of the values after it; x'' once erased
    PRIMARY KEY (n, version)
) STRICT, WITHOUT ROWID;

-- Versions change only inside the fold (late arrivals, R14) and by erasure.
CREATE TABLE version_gate (open INTEGER NOT NULL) STRICT;
INSERT INTO version_gate VALUES (0);
CREATE TRIGGER version_no_update BEFORE UPDATE ON version
WHEN (SELECT open FROM version_gate) = 0
BEGIN SELECT RAISE(ABORT, 'versions are append-only'); END;
CREATE TRIGGER version_no_delete BEFORE DELETE ON version
WHEN (SELECT open FROM version_gate) = 0
BEGIN SELECT RAISE(ABORT, 'versions are append-only'); END;

-- Fingerprints of records that take part in R27; `refuses` 1: the record refuses the value.
CREATE TABLE print (
    mac     BLOB NOT NULL,
    n       INTEGER NOT NULL REFERENCES record (n),
    refuses INTEGER NOT NULL,
    PRIMARY KEY (mac, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX print_record ON print (n);

-- Links between records: `next` (target replaces n), `lifted` (it did, until a lift), `source` (n was
-- derived from target) and `origin` (n was imported from target).
CREATE TABLE link (
    target BLOB NOT NULL,
    what   TEXT NOT NULL,
    n      INTEGER NOT NULL REFERENCES record (n),
    PRIMARY KEY (target, what, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_record ON link (n);

-- The word index over our own token stream (terms.py); contentless: the text stays in `record`.
CREATE VIRTUAL TABLE words USING fts5 (
    terms, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- ---- local ----

-- Times a value was written again while live (R29).
CREATE TABLE reinforced (
    record  BLOB PRIMARY KEY,
    times   INTEGER NOT NULL,
    last_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Erasures that still have to be cleaned out of the files (checkpoint, index merge).
CREATE TABLE cleaning (
    record BLOB PRIMARY KEY,
    since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What peers are known to hold: their last vector, as they sent it.
CREATE TABLE receipt (
    device      BLOB PRIMARY KEY,
    vector      BLOB NOT NULL,
    received_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
