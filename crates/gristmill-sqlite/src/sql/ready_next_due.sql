SELECT run_at FROM gristmill_ready
 WHERE queue = ?1 AND priority = ?2 AND run_at > ?3 ORDER BY run_at LIMIT 1;
