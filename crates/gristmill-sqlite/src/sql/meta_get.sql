SELECT value FROM gristmill_meta WHERE key = ?1;
