-- The shop's own tables. What is synced is never deleted from its table, so an
-- offset means the same row for everyone.
CREATE TABLE IF NOT EXISTS offer (
    ean             INTEGER PRIMARY KEY,
    price           INTEGER NOT NULL,
    -- Counts changes; what was not synced since the last one is due.
    version         INTEGER NOT NULL DEFAULT 1,
    synced_version  INTEGER NOT NULL DEFAULT 0,
    -- How often a batch had it in hand, and how often it was marked as synced.
    taken           INTEGER NOT NULL DEFAULT 0,
    synced          INTEGER NOT NULL DEFAULT 0,
    -- The task that has it in hand, until it is synced or that task is gone.
    batch           INTEGER
);
CREATE INDEX IF NOT EXISTS offer_due ON offer (ean) WHERE synced_version < version;
CREATE INDEX IF NOT EXISTS offer_batch ON offer (batch) WHERE batch IS NOT NULL;
CREATE TABLE IF NOT EXISTS process (
    id      INTEGER PRIMARY KEY,
    checks  INTEGER NOT NULL DEFAULT 0
);
-- What each batch took and when, for whoever wants to see who took what, and that
-- no two took the same at the same time. One without an end was killed.
CREATE TABLE IF NOT EXISTS slice (
    task    INTEGER NOT NULL,
    worker  TEXT NOT NULL,
    kind    TEXT NOT NULL,
    number  INTEGER,
    first   INTEGER,
    last    INTEGER,
    rows    INTEGER NOT NULL,
    marked  INTEGER,
    began   INTEGER NOT NULL,
    ended   INTEGER
);
