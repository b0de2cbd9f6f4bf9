INSERT INTO gristmill_migration (version, checksum, applied_at) VALUES (?1, ?2, ?3);
