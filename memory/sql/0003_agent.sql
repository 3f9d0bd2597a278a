-- Search: what readers may find and what is withheld are two indexes, so that no score depends on a
-- text that its reader may not see; and turns are ranked with what was said around them.

-- The word index of what is proposed, deprecated, superseded, withheld or returning: for a person's
-- `--explain` and for `--as-of`. Contentless like `words`, which now holds the rest.
CREATE VIRTUAL TABLE withheld_words USING fts5 (
    terms, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- The place of every turn in its session. A part of the read model; the digest covers what it is
-- made of.
CREATE TABLE turn (
    n       INTEGER PRIMARY KEY REFERENCES record (n),
    session TEXT NOT NULL,
    channel TEXT NOT NULL,                   -- empty: none
    at_ms   INTEGER NOT NULL,                -- record time of the first version
    seq     INTEGER NOT NULL,                -- of its creation: orders what one commit holds
    record  BLOB NOT NULL
) STRICT;
CREATE INDEX turn_place ON turn (session, channel, at_ms, seq, record);

-- The model is folded anew when the file is opened next.
DELETE FROM meta WHERE key = 'fold_keys';
