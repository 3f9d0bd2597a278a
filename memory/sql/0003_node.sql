-- The keeper of this node: when each job ran last, and what its runs wrote. Local, like all here.

CREATE TABLE job (
    agent    BLOB NOT NULL,
    kind     TEXT NOT NULL,                  -- intake, review, expiry
    layer    TEXT NOT NULL,                  -- '' where the kind has none
    since_us INTEGER NOT NULL,               -- when it was first seen or last ran: due counts from it
    paused   INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    PRIMARY KEY (agent, kind, layer)
) STRICT, WITHOUT ROWID;

-- Runs, the oldest of which go first. Ids only, never a text.
CREATE TABLE job_run (
    run        BLOB PRIMARY KEY,             -- 16 random bytes
    agent      BLOB NOT NULL,
    kind       TEXT NOT NULL,
    layer      TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    ended_us   INTEGER NOT NULL,
    outcome    TEXT NOT NULL,                -- done, nothing, elsewhere, failed, …
    reason     TEXT NOT NULL,
    wrote      BLOB NOT NULL                 -- record ids, 16 bytes each
) STRICT, WITHOUT ROWID;
CREATE INDEX job_run_time ON job_run (started_us);
