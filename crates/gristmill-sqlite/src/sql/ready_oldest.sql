SELECT run_at FROM gristmill_ready WHERE queue = ?1 AND priority = ?2 ORDER BY run_at LIMIT 1;
