-- Agents' tokens, what was refused, and the erasures that agents asked a person for.

-- A bearer token of one agent. Only a hash of its secret is here.
CREATE TABLE token (
    id               BLOB PRIMARY KEY,       -- 8 random bytes
    secret_hash      BLOB NOT NULL,
    agent            BLOB NOT NULL,
    session          TEXT NOT NULL,          -- the kind of its sessions
    channel          TEXT,                   -- NULL: every channel
    profile          TEXT NOT NULL,
    created_us       INTEGER NOT NULL,
    expires_us       INTEGER,                -- NULL: until it is revoked
    revoked_us       INTEGER,
    calls_per_minute INTEGER NOT NULL,
    bytes_per_minute INTEGER NOT NULL,
    records_per_hour INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Calls that were refused; the oldest go first. Never a text, never a parameter.
CREATE TABLE refusal (
    id        INTEGER PRIMARY KEY,
    at_us     INTEGER NOT NULL,
    code      TEXT NOT NULL,
    verb      TEXT NOT NULL,                 -- '?': none that there is
    principal TEXT NOT NULL,                 -- '?': no credential that is in force
    agent     BLOB,
    token     BLOB
) STRICT;

-- What an agent asked to forget that was not its own to erase: retired, and a person decides.
CREATE TABLE erasure_wish (
    agent  BLOB NOT NULL,
    record BLOB NOT NULL,
    at_us  INTEGER NOT NULL,
    token  BLOB,
    PRIMARY KEY (agent, record)
) STRICT, WITHOUT ROWID;
