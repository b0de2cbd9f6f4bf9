SELECT id FROM {table}
 WHERE status IN (?1, ?2) AND status_at < ?3 AND id > ?4
 ORDER BY id LIMIT ?5
