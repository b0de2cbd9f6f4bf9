CREATE TABLE IF NOT EXISTS gristmill_migration (
    version    INTEGER PRIMARY KEY,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);
