INSERT INTO gristmill.migration (version, checksum) VALUES ($1, $2)
