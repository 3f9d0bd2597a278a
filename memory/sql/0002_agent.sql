-- Kinds beyond observations and turns: what a record is found by beside its id and its words.

-- Names (folded), channels and roots. A part of the read model; the digest covers what it is made of.
CREATE TABLE named (
    what  TEXT NOT NULL,                     -- kind, name, channel, root, pinned
    value TEXT NOT NULL,
    n     INTEGER NOT NULL REFERENCES record (n),
    PRIMARY KEY (what, value, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX named_record ON named (n);
-- What weighs most in a layer, for the context block.
CREATE INDEX record_layer ON record (layer, weight, record) WHERE kind = 'observation';
CREATE INDEX record_session ON record (session) WHERE session IS NOT NULL;

-- The model is folded anew when the file is opened next.
DELETE FROM meta WHERE key = 'fold_keys';
