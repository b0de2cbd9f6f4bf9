-- The shop's own tables. What is synced is never deleted from its table, so an
-- offset means the same row for everyone; `synced` counts how often.
CREATE TABLE IF NOT EXISTS offer (
    ean     INTEGER PRIMARY KEY,
    price   INTEGER NOT NULL,
    synced  INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS process (
    id      INTEGER PRIMARY KEY,
    checks  INTEGER NOT NULL DEFAULT 0
);
-- What each batch took and when, for whoever wants to see that no two took the
-- same at the same time.
CREATE TABLE IF NOT EXISTS slice (
    task    INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    number  INTEGER,
    first   INTEGER,
    last    INTEGER,
    rows    INTEGER NOT NULL,
    began   INTEGER NOT NULL,
    ended   INTEGER
);
