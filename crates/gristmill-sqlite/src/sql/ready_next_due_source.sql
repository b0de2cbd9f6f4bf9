SELECT run_at FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = ?1 AND priority = ?2 AND run_at > ?3 AND source = ?4 ORDER BY run_at LIMIT 1;
