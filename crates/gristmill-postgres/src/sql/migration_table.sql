CREATE SCHEMA IF NOT EXISTS gristmill;
-- The steps that made the tables.
CREATE TABLE IF NOT EXISTS gristmill.migration (
    version  integer PRIMARY KEY,
    checksum text        NOT NULL,
    run_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- The functions, views and triggers that stand beside them, each with a checksum of
-- the statement that made it.
CREATE TABLE IF NOT EXISTS gristmill.definition (
    kind     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    checksum text        NOT NULL,
    made_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, name)
)
