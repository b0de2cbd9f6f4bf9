-- The store itself: its own values and its history.

-- name: meta_get
SELECT value FROM gristmill_meta WHERE key = :key;

-- name: meta_set
INSERT INTO gristmill_meta (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: migration_table
CREATE TABLE IF NOT EXISTS gristmill_migration (
    version    INTEGER PRIMARY KEY,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: migration_known
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'gristmill_migration';

-- name: migration_list
SELECT version, checksum FROM gristmill_migration ORDER BY version;

-- name: migration_record
INSERT INTO gristmill_migration (version, checksum, applied_at) VALUES (:version, :checksum, :applied_at);
