DELETE FROM gristmill_done WHERE id IN (SELECT id FROM gristmill_done WHERE queue = ?1 AND resolved_at <= ?2 ORDER BY resolved_at LIMIT ?3);
