INSERT INTO gristmill_failed (id, queue, key, failed_at) VALUES (?1, ?2, ?3, ?4);
