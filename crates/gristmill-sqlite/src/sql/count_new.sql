INSERT OR IGNORE INTO gristmill_count (queue) VALUES (?1);
