-- This node's own affairs: whom it knows, what it was told, how it is set. Nothing here is
-- replicated, and nothing here is memory.

-- Other devices that were paired with this one. A removed one stays until it was told, and so that
-- a later pairing finds its local name again.
CREATE TABLE peer (
    device          BLOB PRIMARY KEY,        -- its public key, 32 bytes
    name            TEXT NOT NULL,           -- what it calls itself
    label           TEXT,                    -- what a person here calls it
    certificate     BLOB NOT NULL,           -- DER; the only one its key is trusted in
    owner           BLOB,                    -- its owner's public key, where it named one
    recovery        BLOB,                    -- that owner's recovery hash, for a grant to the owner
    added_us        INTEGER NOT NULL,
    last_seen_us    INTEGER,                 -- by our clock; NULL: never met since pairing
    clock_offset_ms INTEGER,                 -- its clock minus ours, as last measured
    removed_us      INTEGER,                 -- NULL: a peer
    told            INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Where a peer was or is. The same address can be known from several sources: an advert that ends
-- takes away only what it brought.
CREATE TABLE address (
    device          BLOB NOT NULL REFERENCES peer (device),
    address         TEXT NOT NULL,           -- host:port
    source          TEXT NOT NULL CHECK (source IN ('stored', 'mdns', 'typed')),
    added_us        INTEGER NOT NULL,
    last_success_us INTEGER,                 -- when the peer's own key last answered there
    PRIMARY KEY (device, address, source)
) STRICT, WITHOUT ROWID;

-- Agents this node knows of. An agent that was left is remembered, so that nothing brings it back.
CREATE TABLE agent (
    agent    BLOB PRIMARY KEY,
    name     TEXT,                           -- local name, NULL: the one of its founding statement
    accepted INTEGER NOT NULL CHECK (accepted IN (0, 1)),
    added_us INTEGER NOT NULL,
    left_us  INTEGER                         -- NULL: here
) STRICT, WITHOUT ROWID;

-- When pairing codes were shown. Kept here so that a restart grants no further guesses.
CREATE TABLE pairing_code (
    id       INTEGER PRIMARY KEY,
    shown_us INTEGER NOT NULL
) STRICT;

-- Everything else that this node remembers about itself, as text.
CREATE TABLE setting (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Statements of owners (certify, decertify, rotate): ours, and those that peers showed when they
-- paired. They belong to every agent's set that names their owner (R22).
CREATE TABLE owner_statement (
    id        BLOB PRIMARY KEY,
    owner     BLOB NOT NULL,
    data      BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX owner_statement_owner ON owner_statement (owner);
