SELECT version, checksum FROM gristmill_migration ORDER BY version;
