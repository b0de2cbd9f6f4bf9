SELECT version, checksum FROM gristmill.migration ORDER BY version
