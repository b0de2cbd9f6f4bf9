CREATE SCHEMA IF NOT EXISTS gristmill;
CREATE TABLE IF NOT EXISTS gristmill.migration (
    version  integer PRIMARY KEY,
    checksum text        NOT NULL,
    run_at   timestamptz NOT NULL DEFAULT clock_timestamp()
)
