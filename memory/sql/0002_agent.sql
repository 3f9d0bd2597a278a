-- Kinds beyond observations and turns: what a record is found by beside its id and its words.

-- Names (folded), channels and roots. A part of the read model; the digest covers what it is made of.
CREATE TABLE named (
    what  TEXT NOT NULL,                     -- kind, name, channel, root
    value TEXT NOT NULL,
    n     INTEGER NOT NULL REFERENCES record (n),
    PRIMARY KEY (what, value, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX named_record ON named (n);
CREATE INDEX record_session ON record (session) WHERE session IS NOT NULL;

-- The model is folded anew when the file is opened next.
DELETE FROM meta WHERE key = 'fold_keys';
