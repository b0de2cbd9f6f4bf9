SELECT id FROM gristmill_failed WHERE queue = ?1 AND failed_at <= ?2 ORDER BY failed_at LIMIT ?3;
